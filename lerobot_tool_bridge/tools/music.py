"""``music_list``, ``music_play``, ``music_stop``, ``music_play_random`` and the volume."""

from __future__ import annotations

import asyncio
import difflib
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lerobot_tool_bridge import music
from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import MusicPort

_MOST = 100
_LONGEST = 80

_WORDS: Mapping[int, str] = {
    0: """mute|muted|silent|silence|off
        mudo|silêncio|silencio|sem som|desligado
        静音|无声|ミュート|無音|消音""",
    10: """very quiet|very quietly|very soft|very softly|very low|whisper|barely audible
        muito baixo|muito baixinho|baixíssimo|sussurro|quase inaudível
        很小声|非常小声|极小声|很轻|最小声|とても小さく|とても小さい|すごく小さい|ごく小さい|最小""",
    25: """quiet|quietly|low|small
        baixo|baixa|baixinho|pequeno
        小声|小聲|低声|静かに|静か|小さく|小さい|小さめ|小音量""",
    35: """soft|softly|gentle|gently|background|not too loud|not so loud|a bit quiet
        suave|suavemente|de fundo|não muito alto|não tão alto|um pouco baixo
        轻声|柔和|不要太大声|别太大声|不太大声|やさしく|控えめ|大きすぎない|うるさくない""",
    50: """normal|medium|moderate|standard|average|middle|half|default
        médio|média|medio|moderado|padrão|metade|meio
        正常|标准|適中|适中|中等|一般|普通|ふつう|標準|中くらい|ほどほど""",
    75: """loud|loudly|high
        alto|alta|forte
        大声|大聲|响亮|高声|大きく|大きい|大きめ|大音量|うるさく""",
    90: """very loud|very loudly|very high|really loud
        muito alto|muito alta|muito forte|bem alto|altíssimo
        很大声|非常大声|超大声|とても大きく|とても大きい|すごく大きい|爆音""",
    100: """maximum|max|full|full volume|loudest|as loud as possible
        máximo|máxima|maximo|no máximo|volume total
        最大声|最大音量|最大|最响|最高|一番大きく""",
}
_STEPS: Mapping[int, str] = {
    15: """louder|turn up|turn it up|volume up|increase|higher
        mais alto|mais alta|aumenta|aumente|aumentar|mais forte
        大声一点|大声点|再大声|大点声|响一点|もっと大きく|もう少し大きく|音量を上げ|上げて""",
    -15: """quieter|softer|turn down|turn it down|volume down|decrease|lower|less loud
        mais baixo|mais baixa|diminui|diminua|diminuir|abaixa|abaixe|menos alto
        小声一点|小声点|再小声|小点声|轻一点|もっと小さく|もう少し小さく|もっと静かに|音量を下げ|下げて""",
}
_PERCENT = re.compile(
    r"(?<![\d.,-])(\d{1,3})\s*(?:%|percent|por cento|パーセント)|百分之(\d{1,3})"
)


def _table() -> dict[str, tuple[int, bool]]:
    """What each word means: a volume, or (True) a step."""
    table = {}
    for words, is_step in ((_WORDS, False), (_STEPS, True)):
        for value, text in words.items():
            for word in re.split(r"[|\n]", text):
                table[music.plain(word)] = (value, is_step)
    return table


_TABLE = _table()
# the longest words first, whole ones where words have ends
_ANY = re.compile(
    "|".join(
        rf"\b{re.escape(w)}\b" if w[0] < "\u0250" else re.escape(w)
        for w in sorted(_TABLE, key=len, reverse=True)
    )
)


class _MusicTool(Tool):
    """Music from a folder. It plays while the robot moves, and softly while it speaks.

    Settings:
        music_dir: The folder with the music (.mp3, .ogg, .flac, .wav). Without it no music tool
            is offered. For all of them: music: {music_dir: ...}.
    """

    family = "music"
    resources = frozenset({"music"})
    timeout = 15.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": {}, "additionalProperties": False}

    def missing(self) -> str:
        folder = self._folder
        if folder is None:
            return "It needs a folder with music. Set music: {music_dir: ...} in the tools file."
        if not folder.is_dir():
            return "The music_dir of the tools file is no folder."
        if not music.installed():
            return "It needs miniaudio. Install it with: pip install miniaudio"
        return ""

    @property
    def _folder(self) -> Path | None:
        given = self.settings.get("music_dir")
        return Path(str(given)).expanduser() if given else None

    @property
    def _player(self) -> MusicPort:
        if self.ports.music is None:
            raise ToolFailure("unavailable", "This robot has no music player.")
        return self.ports.music

    async def _pieces(self) -> dict[str, Path]:
        folder = self._folder
        if folder is None:
            raise ToolFailure("unavailable", self.missing())
        found = await asyncio.to_thread(music.pieces, folder)
        if not found:
            raise ToolFailure("not_found", "There is no music in the folder. Tell the operator.")
        return found

    async def _play(self, name: str, path: Path) -> str:
        player = self._player
        playing = await asyncio.to_thread(player.play, name, path)
        minutes, seconds = divmod(round(playing.seconds), 60)
        text = f"Playing {_title(name)} ({minutes}:{seconds:02d}) at volume {player.volume} %."
        if playing.silent:
            text += f" Nothing is heard: {playing.silent}."
        return text

    def _set(self, volume: int) -> str:
        player = self._player
        player.volume = volume
        playing = player.playing
        if playing is None:
            return f"The volume is {volume} %. No music plays now."
        text = f"The volume is {volume} %; {_title(playing.name)} plays."
        return f"{text} Nothing is heard: {playing.silent}." if playing.silent else text


class MusicList(_MusicTool):
    name = "music_list"

    @property
    def description(self) -> str:
        return "List the music that music_play can play, by name."

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        names = [show.plain(name, _LONGEST) for name in await self._pieces()]
        more = f" There are {len(names) - _MOST} more." if len(names) > _MOST else ""
        playing = self.ports.music.playing if self.ports.music is not None else None
        now = f" {_title(playing.name)} plays now." if playing is not None else ""
        return f"Music: {'; '.join(names[:_MOST])}.{more}{now}"


class MusicPlay(_MusicTool):
    name = "music_play"

    @property
    def description(self) -> str:
        return (
            "Play one piece of music by its name in music_list, in place of what plays now. "
            "Answers as soon as it plays; it goes on until it ends or music_stop."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "music_name": {
                    "type": "string",
                    "description": "The name, as music_list tells it.",
                    "minLength": 1,
                    "maxLength": 255,
                }
            },
            "required": ["music_name"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        found = await self._pieces()
        name = _find(arguments["music_name"], found)
        return await self._play(name, found[name])


class MusicPlayRandom(_MusicTool):
    name = "music_play_random"

    @property
    def description(self) -> str:
        return "Play any piece of music, another one than plays now, and tell which."

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        found = await self._pieces()
        playing = self._player.playing
        others = [n for n in found if playing is None or n != playing.name] or list(found)
        name = random.choice(others)
        return await self._play(name, found[name])


class MusicStop(_MusicTool):
    name = "music_stop"

    @property
    def description(self) -> str:
        return "Stop the music. It stops music only; stop ends motion."

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        stopped = await asyncio.to_thread(self._player.stop)
        return "No music played." if stopped is None else f"Stopped {_title(stopped.name)}."


class MusicVolumeSet(_MusicTool):
    name = "music_volume_set"

    @property
    def description(self) -> str:
        return "Set the volume of the music in percent. Speech stays as loud as it is."

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "volume": {
                    "type": "integer",
                    "description": "Percent; 0 is silent.",
                    "minimum": 0,
                    "maximum": 100,
                }
            },
            "required": ["volume"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return self._set(arguments["volume"])


class MusicVolumeSetSmart(_MusicTool):
    name = "music_volume_set_smart"

    @property
    def description(self) -> str:
        return (
            "Set the volume of the music by words for loudness, in English, Portuguese, Chinese "
            "or Japanese: for instance very quiet, quiet, soft, normal, loud, very loud, maximum, "
            "louder, quieter. For a number use music_volume_set."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "description": {
                    "type": "string",
                    "description": "How loud, in a few words.",
                    "minLength": 1,
                    "maxLength": 200,
                }
            },
            "required": ["description"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return self._set(volume_of(arguments["description"], self._player.volume))


def volume_of(description: str, now: int) -> int:
    """The volume that words mean, percent.

    Args:
        description: The words.
        now: The volume now, for words such as louder.

    Raises:
        Rejection: ``invalid_arguments``: no words for loudness, or some that contradict.
    """
    text = music.plain(description)
    meanings = {_TABLE[match] for match in _ANY.findall(text)}
    for match in _PERCENT.finditer(text):
        meanings.add((int(match[1] or match[2]), False))
    if len(meanings) != 1:
        why = "says more than one loudness" if meanings else "has no word for loudness"
        raise Rejection(
            "invalid_arguments",
            f"description: {show.text(description)} {why}. Say one such as quiet, normal, loud or "
            "louder, or use music_volume_set.",
        )
    ((value, is_step),) = meanings
    volume = now + value if is_step else value
    if is_step or 0 <= volume <= 100:
        return max(0, min(100, volume))
    raise Rejection(
        "invalid_arguments", f"description: {volume} % given, 0 to 100 percent allowed."
    )


def _title(name: str) -> str:
    return show.text(name, _LONGEST)


def _find(wanted: str, found: Mapping[str, Path]) -> str:
    """The piece that a name means.

    Raises:
        Rejection: ``not_found``: none, or more than one.
    """
    if wanted in found:
        return wanted
    key = music.plain(wanted)
    alike = [n for n, path in found.items() if key in (music.plain(n), music.plain(path.name))]
    if len(alike) == 1:
        return alike[0]
    # some of the words of a name will do, where they fit one alone
    within = alike or [n for n in found if len(key) > 2 and key in music.plain(n)]
    if len(within) == 1:
        return within[0]
    plain = {music.plain(n): n for n in found}
    close = within or [plain[n] for n in difflib.get_close_matches(key, plain, n=3)]
    text = f"There is no music {_title(wanted)}."
    if within:
        text = f"{_title(wanted)} fits more than one piece."
    if close:
        text += f" Did you mean {show.listed([_title(n) for n in close[:5]], 'or')}?"
    raise Rejection("not_found", f"{text} music_list tells what there is.")
