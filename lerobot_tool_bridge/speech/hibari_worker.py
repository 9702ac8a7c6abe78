"""The process that holds the voice: one JSON text a line in, one JSON answer a line out.

``{"text": "Hello."}`` is answered by ``{"seconds": 0.9, "silent": ""}`` when it has been played;
``silent`` says why nothing was heard, and ``error`` stands alone where something broke. The
process ends when its standard input does, so it never outlives the bridge by more than a text.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from lerobot_tool_bridge.speech.player import play


def answer(voice: Any, text: str) -> dict[str, Any]:
    """Speaks one text."""
    import numpy as np

    audio = voice(text)
    pcm = (np.clip(audio, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()
    rate = int(voice.sample_rate)
    return {
        "seconds": round(len(audio) / rate, 2),
        "silent": play(pcm, rate) if pcm else "",
    }


def load(name: str) -> Any:
    """Loads a voice that is on this machine.

    Raises:
        ValueError: There is no such voice here; hibari would download it in the middle of a call.
    """
    from hibari import Hibari, voices

    if name not in voices.VOICES:
        raise ValueError(f"there is no voice {name!r}; known: {', '.join(voices.VOICES)}.")
    try:
        voices.voice_path(name, download_missing=False)
    except FileNotFoundError:
        raise ValueError(
            f"voice {name!r} is not on this machine. Fetch it once: hibari --voice {name} Hello"
        ) from None
    return Hibari(name)


def main() -> None:
    """Serves standard input; sounds and messages of libraries can't get into the answers."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    voice = None
    for line in sys.stdin:
        try:
            voice = voice or load(sys.argv[1])
            reply = answer(voice, json.loads(line)["text"])
        except ValueError as error:
            reply = {"error": str(error)}
        except Exception as error:  # whatever a library raises is an answer, not the end
            reply = {"error": f"the voice failed ({type(error).__name__}). Tell the operator."}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
