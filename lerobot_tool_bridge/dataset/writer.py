"""A session as a data set: what was called and what was answered, in LeRobot's form.

``session.jsonl`` has one message a line, written at once, so that a crash loses nothing. At the
end a LeRobot data set (v3) of one episode is made of it where pyarrow is there: one row a frame,
the messages in the frame in which they came. It has no observations: those are the recorder's of
the robot, to be joined by time.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import LoadError, UnreadableMessage
from lerobot_tool_bridge.dataset.reader import SESSION
from lerobot_tool_bridge.dataset.rows import EVENTS, FIELDS

_PERSISTENT = "language_persistent"
_DATA, _EPISODES = "data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet"


class SessionWriter:
    """Writes one session.

    Args:
        folder: New or empty.
        fps: Frames a second of the data set.
        task: What the session is about, in words.

    Raises:
        LoadError: ``bad_file``: the folder has something in it, or can't be written.
    """

    def __init__(self, folder: str | Path, fps: int = 30, task: str = "") -> None:
        self.folder = Path(folder).expanduser()
        self._fps, self._task = fps, task
        self._rows: list[dict[str, Any]] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if any(self.folder.iterdir()):
                raise LoadError(
                    "bad_file", f"{self.folder} is not empty. Give a new folder to each session."
                )
            self._file: TextIO = (self.folder / SESSION).open("x", encoding="utf-8")
        except OSError as error:
            raise LoadError(
                "bad_file", f"{self.folder} can't be written: {error.strerror}."
            ) from None

    @property
    def messages(self) -> int:
        """How many were kept."""
        return len(self._rows)

    def called(self, time: float, payload: bytes | str | Mapping[str, Any]) -> list[str]:
        """Keeps an assistant message, whatever wire form its calls have.

        Args:
            time: Seconds from the session's start.
            payload: As it came.

        Returns:
            What was not kept, and why: calls that could not be read are nothing to learn from.
        """
        try:
            message = decode(payload)
        except UnreadableMessage as error:
            return [f"a message that can't be read: {error}"]
        if message.ignored:
            return ["a message of another role than assistant"]
        calls = [
            {
                "id": c.id,
                "type": "function",
                "function": {"name": c.name, "arguments": c.arguments or {}},
            }
            for c in message.calls
            if c.fault is None
        ]
        lost = [
            f"a call of {c.name or 'no name'}: {c.fault.message}"
            for c in message.calls
            if c.fault is not None
        ]
        text = _content(payload)
        if calls or text:
            self._keep(time, {"role": "assistant", "content": text, "tool_calls": calls or None})
        return lost

    def answered(self, time: float, message: Mapping[str, Any]) -> None:
        """Keeps the answer to a call."""
        self._keep(
            time,
            {
                "role": "tool",
                "content": str(message.get("content", "")),
                "tool_calls": None,
                "tool_call_id": str(message.get("tool_call_id", "")),
                "name": str(message.get("name", "")),
            },
        )

    def close(self, tools: list[Any] | None = None) -> str:
        """Makes the data set.

        Args:
            tools: The catalogue that was offered.

        Returns:
            A sentence about what was written.
        """
        self._file.close()
        what = f"{len(self._rows)} messages in {self.folder / SESSION}"
        self._write_info(tools)
        if not importlib.util.find_spec("pyarrow"):
            return (
                f"{what}; no parquet, as pyarrow is not installed "
                "(pip install 'lerobot_tool_bridge[dataset]')"
            )
        self._write_parquet()
        return f"{what}, and as a data set beside it"

    def _keep(self, time: float, message: dict[str, Any]) -> None:
        frame = int(max(0.0, time) * self._fps)
        event = {"role": "", "content": None, "style": None, "camera": None, **message}
        row = {
            "timestamp": round(time, 4),
            "frame_index": frame,
            "episode_index": 0,
            "index": frame,
            "task_index": 0,
            EVENTS: [event],
        }
        self._rows.append(row)
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._file.flush()

    @property
    def _frames(self) -> int:
        return self._rows[-1]["frame_index"] + 1 if self._rows else 0

    def _write_info(self, tools: list[Any] | None) -> None:
        def number(kind: str) -> dict[str, Any]:
            return {"dtype": kind, "shape": [1], "names": None}

        info = {
            "codebase_version": "v3.0",
            "robot_type": None,
            "total_episodes": 1,
            "total_frames": self._frames,
            "total_tasks": 1,
            "fps": self._fps,
            "splits": {"train": "0:1"},
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
            "video_path": None,
            "features": {
                "timestamp": number("float32"),
                **{n: number("int64") for n in _NUMBERS},
                **{n: number("language") for n in (_PERSISTENT, EVENTS)},
            },
            "tools": tools or [],
        }
        file = self.folder / "meta" / "info.json"
        file.parent.mkdir()
        file.write_text(json.dumps(info, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def _write_parquet(self) -> None:
        import pyarrow as pa

        events: list[list[dict[str, Any]]] = [[] for _ in range(self._frames)]
        for row in self._rows:
            for event in row[EVENTS]:
                calls = event["tool_calls"]
                texts = calls and [json.dumps(c, ensure_ascii=False) for c in calls]
                frame = {**{f: event[f] for f in FIELDS}, "tool_calls": texts}
                events[row["frame_index"]].append(frame)
        frames = range(self._frames)
        event_type, persistent_type = _types()
        columns = {
            "timestamp": pa.array([f / self._fps for f in frames], pa.float32()),
            "frame_index": pa.array(frames, pa.int64()),
            "episode_index": pa.array([0] * self._frames, pa.int64()),
            "index": pa.array(frames, pa.int64()),
            "task_index": pa.array([0] * self._frames, pa.int64()),
            _PERSISTENT: pa.array([[] for _ in frames], pa.list_(persistent_type)),
            EVENTS: pa.array(events, pa.list_(event_type)),
        }
        self._write(_DATA, pa.table(columns))
        episode = {
            "episode_index": [0],
            "tasks": [[self._task]],
            "length": [self._frames],
            "data/chunk_index": [0],
            "data/file_index": [0],
            "dataset_from_index": [0],
            "dataset_to_index": [self._frames],
        }
        self._write(_EPISODES, pa.table(episode))
        index = {"index_columns": ["task"], "column_indexes": [], "columns": []}
        tasks = pa.table({"task_index": pa.array([0], pa.int64()), "task": [self._task]})
        self._write(
            "meta/tasks.parquet", tasks.replace_schema_metadata({"pandas": json.dumps(index)})
        )

    def _write(self, name: str, table: Any) -> None:
        import pyarrow.parquet

        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, file)


def _content(payload: bytes | str | Mapping[str, Any]) -> str | None:
    """The words of a message that ``decode`` has read."""
    whole = json.loads(payload) if isinstance(payload, bytes | str) else payload
    content = whole.get("content") if isinstance(whole, Mapping) else None
    return content if isinstance(content, str) and content else None


_NUMBERS = ("frame_index", "episode_index", "index", "task_index")


def _types() -> tuple[Any, Any]:
    """Arrow types of an event row and of a persistent row; a call is a JSON text."""
    import pyarrow as pa

    role = pa.field("role", pa.string(), nullable=False)
    content, style, camera = (pa.field(n, pa.string()) for n in ("content", "style", "camera"))
    calls = pa.field("tool_calls", pa.list_(pa.string()))
    time = pa.field("timestamp", pa.float32(), nullable=False)
    return (
        pa.struct([role, content, style, camera, calls]),
        pa.struct([role, content, style, time, camera, calls]),
    )
