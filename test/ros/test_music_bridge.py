"""Music in a running bridge: it plays beside other calls, and ends with the bridge."""

from __future__ import annotations

import signal
import struct
import wave
from pathlib import Path

import pytest
from bridge_client import BridgeProcess
from harness import Ros, Spawner

pytest.importorskip("miniaudio")


def test_music_plays_and_ends_with_the_bridge(ros: Ros, spawn: Spawner, tmp_path: Path) -> None:
    folder = tmp_path / "music"
    folder.mkdir()
    with wave.open(str(folder / "tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(struct.pack("<h", 0) * 8000 * 60)
    tools_file = tmp_path / "tools.yaml"
    tools_file.write_text(
        f'function_calling: {{tools: {{music: {{music_dir: "{folder}"}}}}}}', encoding="utf-8"
    )
    bridge = BridgeProcess(ros, spawn, robot="", tools_file=str(tools_file))
    assert bridge.call("music_list") == "Music: tone."
    assert bridge.call("music_play", music_name="Tone").startswith('Playing "tone" (1:00)')
    waiting = bridge.send("wait", seconds=0.3)
    assert bridge.call("music_volume_set_smart", description="小声").startswith("The volume is 25")
    assert bridge.answer(waiting) == "waited"
    assert '"tone" plays now' in bridge.call("music_list")
    bridge.process.signal(signal.SIGINT)
    assert bridge.process.wait() == 0, bridge.process.output
    assert "Traceback" not in bridge.process.output
