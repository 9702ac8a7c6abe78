"""Ways to speak: the real programs where they are installed, stand-ins for the rest."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import shutil
import struct
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from harness import wait_for

from lerobot_tool_bridge import speech
from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.ports import SpeakerPort
from lerobot_tool_bridge.speech import make_speaker, player
from lerobot_tool_bridge.speech.base import Speaker
from lerobot_tool_bridge.speech.espeak import EspeakSpeaker
from lerobot_tool_bridge.speech.hibari import HibariSpeaker
from lerobot_tool_bridge.speech.log import LogSpeaker

HIBARI = importlib.util.find_spec("hibari") is not None
needs_hibari = pytest.mark.skipif(not HIBARI, reason="hibari-tts (extra speech) is not installed")
needs_miniaudio = pytest.mark.skipif(
    importlib.util.find_spec("miniaudio") is None, reason="miniaudio is not installed"
)


class FakeSpeaker(LogSpeaker):
    def __init__(self, voice: str) -> None:
        self.voice = voice


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a shell script where a program is looked for."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def make(name: str, script: str) -> None:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return make


def say(speaker: Speaker, *texts: str) -> list[str]:
    """Says texts one after the other, and lets go of the speaker."""

    async def run() -> list[str]:
        try:
            return [await speaker.say(text) for text in texts]
        finally:
            await speaker.close()

    return asyncio.run(run())


async def cancel(coroutine: Coroutine[Any, Any, str], when: Callable[[], bool]) -> None:
    """Starts speaking, and cancels it when ``when()`` is true."""
    task = asyncio.create_task(coroutine)
    while not when():
        assert not task.done()
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# --- choosing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hibari", "espeak", "kind"),
    [
        (True, True, HibariSpeaker),
        (False, True, EspeakSpeaker),
        (False, False, LogSpeaker),
    ],
)
def test_auto_takes_the_best_that_is_there(
    hibari: bool,
    espeak: bool,
    kind: type,
    monkeypatch: pytest.MonkeyPatch,
    program: Callable[[str, str], None],
) -> None:
    program("espeak-ng", "true")
    monkeypatch.setattr(HibariSpeaker, "installed", staticmethod(lambda: hibari))
    monkeypatch.setattr(EspeakSpeaker, "installed", staticmethod(lambda: espeak))
    monkeypatch.setattr(HibariSpeaker, "__init__", lambda self, voice: None)
    assert type(make_speaker()) is kind


def test_backend_of_another_package() -> None:
    speaker = make_speaker(f"{__name__}:FakeSpeaker", "loud")
    assert isinstance(speaker, FakeSpeaker)
    assert speaker.voice == "loud"


@pytest.mark.parametrize("backend", ["nonsense", "no_such_module:f", f"{__name__}:no_such_name"])
def test_unknown_backend(backend: str) -> None:
    with pytest.raises(LoadError, match="speech backend"):
        make_speaker(backend)


@pytest.mark.parametrize("voice", ["-w/etc/passwd", "a b", "../x", "a/b"])
def test_voice_is_no_option_and_no_path(voice: str) -> None:
    with pytest.raises(LoadError, match="should be a name"):
        make_speaker("log", voice)


def test_missing_programs_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LoadError, match="apt install espeak-ng"):
        make_speaker("espeak")
    with pytest.raises(LoadError, match="pip install hibari-tts"):
        make_speaker("hibari")
    assert isinstance(make_speaker(), LogSpeaker)


def test_making_a_speaker_loads_nothing() -> None:
    """The bridge pays for speech with the first text, and in another process."""
    import subprocess

    code = (
        "import sys; from lerobot_tool_bridge.speech import make_speaker; make_speaker();"
        "sys.exit(any(m in sys.modules for m in ('hibari','onnxruntime','miniaudio','numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- the log --------------------------------------------------------------------------------


def test_log_says_that_nothing_was_heard(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        (answer,) = say(LogSpeaker(), "hello\n[ERROR] forged 杯子")
    assert answer.startswith("Nothing was heard: no speech program")
    assert "'hello\\n[ERROR] forged 杯子'" in caplog.text


def test_log_speaker_is_a_port() -> None:
    port: SpeakerPort = LogSpeaker()
    assert port


# --- espeak-ng ------------------------------------------------------------------------------


def test_espeak_gets_the_text_on_standard_input(
    program: Callable[[str, str], None], tmp_path: Path
) -> None:
    program("espeak-ng", f'echo "$@" > {tmp_path}/args; cat > {tmp_path}/text')
    text = "--version\n-w /tmp/x $(touch y) 杯子"
    (answer,) = say(make_speaker("espeak", "en-gb"), text)  # type: ignore[arg-type]
    assert answer.startswith("Spoken (")
    assert (tmp_path / "text").read_text() == text
    assert (tmp_path / "args").read_text() == "--stdin -ven-gb\n"


def test_espeak_without_sound_card(program: Callable[[str, str], None]) -> None:
    """What espeak-ng 1.51 does there: it complains and ends with status 0."""
    program(
        "espeak-ng",
        "cat >/dev/null; echo 'ALSA lib pcm.c:2666: Unknown PCM default' >&2;"
        "echo 'error: No such file or directory' >&2",
    )
    (answer,) = say(EspeakSpeaker(), "hello")
    assert answer.startswith("Nothing was heard: this machine has no sound output")


def test_espeak_that_breaks(program: Callable[[str, str], None]) -> None:
    program("espeak-ng", "exit 3")
    with pytest.raises(ToolFailure, match="status 3") as error:
        say(EspeakSpeaker(), "hello " * 20000)  # it does not even read its input
    assert error.value.code == "tool_error"


def test_cancel_kills_espeak_and_its_children(
    program: Callable[[str, str], None], tmp_path: Path
) -> None:
    program(
        "espeak-ng",
        f"sleep 600 & echo $! > {tmp_path}/pid.part; mv {tmp_path}/pid* {tmp_path}/pid; wait",
    )
    pid = tmp_path / "pid"
    asyncio.run(cancel(EspeakSpeaker().say("hello"), pid.exists))
    wait_for(lambda: not alive(int(pid.read_text())))


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_real_espeak() -> None:
    (answer,) = say(EspeakSpeaker(), "Hello.")
    assert answer.startswith(("Spoken (", "Nothing was heard: this machine"))


# --- hibari ---------------------------------------------------------------------------------


@needs_hibari
def test_hibari_speaks_or_says_why_not() -> None:
    answers = say(HibariSpeaker(), "Hello.", "I have put the cup on the shelf.")
    for answer in answers:
        assert answer.startswith(
            (
                "Spoken (",
                "Nothing was heard: this machine",
                "Nothing was heard: nothing that plays",
            )
        )


@needs_hibari
@pytest.mark.parametrize("text", ["杯子在桌上。", "Привет, мир", "كوب"])
def test_hibari_refuses_what_it_would_read_as_nonsense(text: str) -> None:
    with pytest.raises(ToolFailure, match="English") as error:
        say(HibariSpeaker(), text)
    assert error.value.code == "unsupported_text"


@needs_hibari
def test_hibari_finds_no_words_and_goes_on() -> None:
    async def run() -> str:
        speaker = HibariSpeaker()
        try:
            with pytest.raises(ToolFailure, match="no words"):
                await speaker.say("👍")
            return await speaker.say("Done.")
        finally:
            await speaker.close()

    assert asyncio.run(run())


@needs_hibari
@pytest.mark.parametrize("voice", ["nobody", "emma"])
def test_hibari_never_downloads(
    voice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIBARI_HOME", str(tmp_path))
    with pytest.raises(ToolFailure, match=f"voice '{voice}'"):
        say(HibariSpeaker(voice), "Hello.")
    assert os.listdir(tmp_path) == []


@needs_hibari
def test_cancel_kills_hibari_and_the_next_text_works() -> None:
    async def run() -> str:
        speaker = HibariSpeaker()
        await cancel(speaker.say("Hello."), lambda: speaker._worker is not None)
        assert speaker._worker is None
        try:
            return await speaker.say("Hello again.")
        finally:
            worker = speaker._worker
            await speaker.close()
            assert worker is not None
            assert not alive(worker.pid)

    assert asyncio.run(run())


@needs_hibari
def test_hibari_that_was_killed_comes_back() -> None:
    async def run() -> str:
        speaker = HibariSpeaker()
        try:
            task = asyncio.create_task(speaker.say("Hello."))
            while speaker._worker is None:
                await asyncio.sleep(0.01)
            speaker._worker.kill()
            with pytest.raises(ToolFailure, match="ended unexpectedly"):
                await task
            return await speaker.say("Hello again.")
        finally:
            await speaker.close()

    assert asyncio.run(run())


@needs_hibari
def test_hibari_ends_with_the_bridge(tmp_path: Path) -> None:
    """Killed without a chance to clean up, the bridge leaves no voice behind."""
    import subprocess

    code = (
        "import asyncio, os; from lerobot_tool_bridge.speech.hibari import HibariSpeaker as H\n"
        "async def main():\n"
        "    speaker = H(); await speaker.say('Hi.')\n"
        "    print(speaker._worker.pid, flush=True); os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    wait_for(lambda: not alive(int(out)))


# --- playing --------------------------------------------------------------------------------


@needs_miniaudio
def test_miniaudio_plays_every_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the backend that takes sound and has no card."""
    import miniaudio

    monkeypatch.setattr(miniaudio.Devices, "get_playbacks", lambda self: [{"name": "Null"}])
    taken = bytearray()
    samples = player._samples

    def spy(pcm: bytes, done: threading.Event) -> Any:
        generator = samples(pcm, done)
        part = next(generator)
        while True:
            frames = yield part
            try:
                part = generator.send(frames)
            except StopIteration:
                return
            taken.extend(part)

    monkeypatch.setattr(player, "_samples", spy)
    pcm = struct.pack("<12000h", *range(12000))
    assert player._miniaudio(pcm, 24000, [miniaudio.Backend.NULL]) == ""
    assert bytes(taken) == pcm


@needs_miniaudio
@pytest.mark.parametrize("names", [[], ["Dummy Output"]])
def test_sound_server_without_a_card(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import miniaudio

    monkeypatch.setattr(
        miniaudio.Devices, "get_playbacks", lambda self: [{"name": n} for n in names]
    )
    assert player._miniaudio(b"\0\0", 24000, [miniaudio.Backend.NULL]) == player.NO_OUTPUT


def test_aplay_where_there_is_no_miniaudio(
    program: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    program("aplay", f"cat > {tmp_path}/sound.wav")
    assert player.play(b"\1\0\2\0", 24000) == ""
    assert (tmp_path / "sound.wav").read_bytes().endswith(b"data\4\0\0\0\1\0\2\0")
    program("aplay", "cat > /dev/null; exit 1")
    assert player.play(b"\1\0\2\0", 24000) == player.NO_OUTPUT
    monkeypatch.setenv("PATH", "")
    assert player.play(b"\1\0\2\0", 24000).startswith("nothing that plays sound")


def test_backends_are_documented() -> None:
    assert speech.BACKENDS == ("auto", "hibari", "espeak", "log")
