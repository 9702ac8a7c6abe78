"""The music tools on the real player, on the device that takes sound and has no card."""

from __future__ import annotations

import asyncio
import os
import struct
import unicodedata
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import wait_for

from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.music import LOWERED, MusicPlayer
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools import music as tools
from lerobot_tool_bridge.tools.say import Say

miniaudio = pytest.importorskip("miniaudio")


def write_tone(path: Path, seconds: float = 20.0) -> None:
    """A square wave at half of the full scale, mono."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(struct.pack("<h", 16000) * round(8000 * seconds))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "music"
    folder.mkdir()
    for name in ("Morning Song.wav", "évening.wav", "夜曲.wav"):
        write_tone(folder / name)
    (folder / "notes.txt").write_text("no music")
    (folder / "inner").mkdir()
    write_tone(folder / "inner" / "deep.wav", 0.1)
    write_tone(tmp_path / "secret.wav", 0.1)
    (folder / "link.wav").symlink_to(tmp_path / "secret.wav")
    return folder


@pytest.fixture
def player() -> Iterator[MusicPlayer]:
    player = MusicPlayer([miniaudio.Backend.NULL])
    yield player
    player.close()


@pytest.fixture
def call(folder: Path, player: MusicPlayer) -> Any:
    def call(kind: type[Tool], **arguments: Any) -> str:
        tool = kind(Ports(music=player), {"music_dir": str(folder)})
        assert not tool.missing()
        checked = Schema(tool.parameters).validate(arguments)
        return str(asyncio.run(tool.run(checked, CallContext("a"))))

    return call


def test_lists_what_lies_in_the_folder_itself(call: Any) -> None:
    assert call(tools.MusicList) == "Music: Morning Song; évening; 夜曲."


def test_plays_and_says_that_nothing_is_heard(call: Any, player: MusicPlayer) -> None:
    answer = call(tools.MusicPlay, music_name="Morning Song")
    assert answer == (
        'Playing "Morning Song" (0:20) at volume 50 %. Nothing is heard: this machine has no '
        "sound output that works."
    )
    assert player.playing is not None
    assert call(tools.MusicList).endswith('"Morning Song" plays now.')
    assert call(tools.MusicStop) == 'Stopped "Morning Song".'
    assert call(tools.MusicStop) == "No music played."


@pytest.mark.parametrize(
    "name",
    [
        "morning song",
        "Morning Song.wav",
        "MORNING SONG.WAV",
        " morning ",
        "夜曲",
        "夜曲.wav",
        "évening",
    ],
)
def test_names_as_models_write_them(call: Any, name: str) -> None:
    for form in ("NFC", "NFD"):
        assert call(tools.MusicPlay, music_name=unicodedata.normalize(form, name))


@pytest.mark.parametrize(
    "name",
    ["../secret", "../secret.wav", "inner/deep.wav", "link", "/etc/passwd", "notes", ".", "x\0y"],
)
def test_nothing_outside_of_the_folder(call: Any, player: MusicPlayer, name: str) -> None:
    with pytest.raises(Rejection, match="There is no music") as error:
        call(tools.MusicPlay, music_name=name)
    assert error.value.code == "not_found"
    assert player.playing is None


def test_a_name_that_is_not_clear(call: Any, folder: Path) -> None:
    write_tone(folder / "Morning Walk.wav", 0.1)
    with pytest.raises(Rejection, match="fits more than one piece") as error:
        call(tools.MusicPlay, music_name="morning")
    assert '"Morning Song" or "Morning Walk"' in error.value.message
    with pytest.raises(Rejection, match='Did you mean "évening"'):
        call(tools.MusicPlay, music_name="evning")
    write_tone(folder / "morning song.mp3", 0.1)
    assert "morning song.mp3; Morning Song.wav" in call(tools.MusicList)


def test_random_takes_another_one(call: Any, player: MusicPlayer) -> None:
    last = ""
    for _ in range(6):
        call(tools.MusicPlayRandom)
        assert player.playing is not None
        assert player.playing.name != last
        last = player.playing.name


def test_what_is_no_music_leaves_the_music_alone(
    call: Any, folder: Path, player: MusicPlayer
) -> None:
    (folder / "broken.mp3").write_bytes(b"no music at all" * 100)
    call(tools.MusicPlay, music_name="夜曲")
    with pytest.raises(ToolFailure, match="can't be read as music") as error:
        call(tools.MusicPlay, music_name="broken")
    assert str(folder) not in error.value.message
    assert player.playing is not None


def test_a_folder_that_is_gone_or_empty(call: Any, folder: Path) -> None:
    tool = tools.MusicList(Ports(), {"music_dir": str(folder)})
    for path in folder.glob("*.wav"):
        path.unlink()
    with pytest.raises(ToolFailure, match="no music in the folder"):
        call(tools.MusicList)
    os.rename(folder, folder.parent / "away")
    with pytest.raises(ToolFailure, match="can't be read") as error:
        asyncio.run(tool.run({}, CallContext("a")))
    assert str(folder) not in error.value.message


def test_it_ends_by_itself(call: Any, folder: Path, player: MusicPlayer) -> None:
    write_tone(folder / "short.wav", 0.3)
    call(tools.MusicPlay, music_name="short")
    wait_for(lambda: player.playing is None)


# --- volume ----------------------------------------------------------------------------------


def drive(player: MusicPlayer, seconds: float) -> np.ndarray:
    """What goes to the device in that time, the player's own device aside."""
    device = object()

    def stream() -> Any:
        frames = yield
        while True:
            frames = yield np.full(2 * frames, 16000, dtype=np.int16)

    decoded = stream()
    next(decoded)
    samples = player._samples(decoded, device)
    next(samples)
    return np.concatenate([samples.send(441) for _ in range(round(seconds * 100))])


def test_volume_fades_in_and_is_what_was_set(player: MusicPlayer, call: Any) -> None:
    assert call(tools.MusicVolumeSet, volume=100) == "The volume is 100 %. No music plays now."
    played = drive(player, 1.0)[:, 0].astype(int)
    assert abs(played[0]) < 100
    assert played[-1] == 16000
    assert np.abs(np.diff(played)).max() < 50  # no click
    call(tools.MusicVolumeSet, volume=50)
    assert drive(player, 1.0)[-1, 0] == 4000
    call(tools.MusicVolumeSet, volume=0)
    assert drive(player, 1.0)[-1, 0] == 0
    for wrong in (-1, 101, 50.5, "50"):
        with pytest.raises(Rejection):
            call(tools.MusicVolumeSet, volume=wrong)


def test_speech_lowers_the_music_while_it_talks(player: MusicPlayer) -> None:
    gains = []

    class Speaker:
        async def say(self, text: str) -> str:
            gains.append(player._wanted_gain)
            if text == "wait":
                await asyncio.sleep(60)
            if text == "break":
                raise ToolFailure("tool_error", "broke")
            return "Spoken."

    async def scene() -> None:
        player.volume = 100
        say = Say(Ports(speaker=Speaker(), music=player))
        assert await say.run({"text": "hello"}, CallContext("a")) == "Spoken."
        assert player._wanted_gain == 1.0
        task = asyncio.create_task(say.run({"text": "wait"}, CallContext("b")))
        while len(gains) < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ToolFailure):
            await say.run({"text": "break"}, CallContext("c"))
        assert player._wanted_gain == 1.0

    asyncio.run(scene())
    assert gains == [LOWERED] * 3


@pytest.mark.parametrize(
    ("words", "volume"),
    [
        ("very quiet", 10),
        ("Quietly, please", 25),
        ("make it loud", 75),
        ("VERY LOUD!", 90),
        ("not too loud", 35),
        ("full volume", 100),
        ("mute", 0),
        ("muito baixo", 10),
        ("baixinho", 25),
        ("não muito alto", 35),
        ("médio", 50),
        ("bem alto", 90),
        ("no máximo", 100),
        ("很小声", 10),
        ("小声", 25),
        ("轻声", 35),
        ("正常", 50),
        ("适中", 50),
        ("请大声播放", 75),
        ("很大声", 90),
        ("最大声", 100),
        ("とても小さく", 10),
        ("小さくして", 25),
        ("普通の音量", 50),
        ("大きく", 75),
        ("最大音量で", 100),
        ("30%", 30),
        ("about 45 percent", 45),
        ("louder", 75),
        ("a bit quieter", 45),
        ("mais alto", 75),
        ("mais baixo", 45),
        ("大声一点", 75),
        ("もっと小さく", 45),
    ],
)
def test_words_for_loudness(words: str, volume: int) -> None:
    assert tools.volume_of(words, 60) == volume


@pytest.mark.parametrize(
    "words",
    ["", "purple", "aloud", "saltos", "loud but quiet", "150%", "-20%", "3.50%", "loud 30%", "??"],
)
def test_words_that_are_not_clear_are_refused(words: str) -> None:
    with pytest.raises(Rejection) as error:
        tools.volume_of(words, 60)
    assert error.value.code == "invalid_arguments"


def test_steps_stay_in_range(call: Any, player: MusicPlayer) -> None:
    player.volume = 95
    assert call(tools.MusicVolumeSetSmart, description="louder").startswith("The volume is 100 %")
    player.volume = 5
    assert call(tools.MusicVolumeSetSmart, description="softer").startswith("The volume is 0 %")


# --- offered or not --------------------------------------------------------------------------

NAMES = {
    *("music_list", "music_play", "music_stop", "music_play_random"),
    *("music_volume_set", "music_volume_set_smart"),
}


def test_offered_where_a_folder_is_set(folder: Path) -> None:
    assert NAMES.isdisjoint(e.name for e in Registry.load(Ports()))
    registry = Registry.load(Ports(), {"music": {"music_dir": str(folder)}})
    found = {e.name: e for e in registry}
    assert set(found) >= NAMES
    for name in NAMES:
        assert found[name].resources == {"music"}
        assert not found[name].motion
    assert registry.problems == []
    assert "no folder" in tools.MusicPlay(Ports(), {"music_dir": "/nowhere"}).missing()


def test_nothing_is_loaded_before_the_first_piece() -> None:
    import subprocess
    import sys

    code = (
        "import sys, lerobot_tool_bridge.tools.music, lerobot_tool_bridge.music as m\n"
        "m.MusicPlayer().close()\n"
        "assert not {'miniaudio', 'numpy'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
