"""The tool calls of one episode of a LeRobot data set (v3), or of a recorded session.

Rows are chosen by their ``episode_index``, in whatever file they are: replaying the wrong ones
moves an arm. pyarrow is imported when parquet is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.dataset.rows import EVENTS, call_rows

SESSION = "session.jsonl"
"""A recorded session's messages, one a line, in its folder."""

_DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_COLUMNS = ("episode_index", "frame_index", "index", "timestamp", EVENTS)


@dataclass(frozen=True, slots=True)
class Event:
    """A message with calls.

    Attributes:
        time: Seconds from the episode's start.
        row: As it stands in the data set; see ``rows``.
    """

    time: float
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode.

    Attributes:
        index: Its number.
        frames: How many frames it has.
        events: Its calls, in their order.
        warnings: What does not fit together, for the person.
    """

    index: int
    frames: int
    events: tuple[Event, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of the episode in one file; ``start`` and ``end`` are of their ``index``."""

    file: str
    rows: list[dict[str, Any]]

    @property
    def span(self) -> tuple[int, int] | None:
        numbers = [r["index"] for r in self.rows if isinstance(r.get("index"), int)]
        return (min(numbers), max(numbers) + 1) if numbers else None


def read_episode(path: str | Path, index: int = 0) -> Episode:
    """Reads the calls of one episode.

    Args:
        path: A data set's folder, or the ``.jsonl`` file of a recorded session.
        index: Which episode.

    Raises:
        LoadError: ``bad_file``, or ``no_episode`` where no file has a row of it.
    """
    source = Path(path).expanduser()
    if source.is_file() and source.suffix == ".jsonl":
        fps, warnings = 0.0, list[str]()
        pieces, known = _session(source, index)
    else:
        folder = _Folder(source)
        fps = folder.fps
        pieces, known = folder.pieces(index)
        warnings = folder.disagreements(index, pieces)
    if not pieces:
        some = sorted(known)
        there = f"there are {show.listed(map(str, some))}" if some else "there is none at all"
        raise LoadError("no_episode", f"{source} has no rows of episode {index}; {there}.")
    rows = [r for p in pieces for r in p.rows]
    timed = [(_time(row, fps, source), row) for row in rows]
    timed.sort(key=lambda t: t[0])
    events = [Event(t, r) for t, row in timed for r in call_rows(row.get(EVENTS))]
    return Episode(index, len(rows), tuple(events), tuple(warnings))


def _time(row: Mapping[str, Any], fps: float, source: Path) -> float:
    time = row.get("timestamp")
    if time is None and fps > 0 and isinstance(row.get("frame_index"), int):
        time = row["frame_index"] / fps
    good = isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time)
    if not good or time < 0:  # type: ignore[operator]
        raise LoadError(
            "bad_file",
            f"{source}: frame {row.get('frame_index')} has no time that can be used "
            f"(timestamp {time!r}).",
        )
    return float(time)  # type: ignore[arg-type]


# --- a session ----------------------------------------------------------------------------------


def _session(file: Path, index: int) -> tuple[list[_Piece], set[int]]:
    """The rows of an episode, and the episodes that there are."""
    rows = list(_lines(file))
    mine = [r for r in rows if r["episode_index"] == index]
    return ([_Piece(file.name, mine)] if mine else []), {r["episode_index"] for r in rows}


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                    if not isinstance(row["episode_index"], int):
                        raise TypeError
                except (ValueError, KeyError, TypeError):
                    raise LoadError(
                        "bad_file", f"{file}, line {number}, is no row with an episode_index."
                    ) from None
                yield row
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise LoadError("bad_file", f"{file} can't be read: {reason}.") from None


# --- a data set ---------------------------------------------------------------------------------


class _Folder:
    """A data set's folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        info = path / "meta" / "info.json"
        try:
            self._info = json.loads(info.read_text(encoding="utf-8"))
            version = str(self._info.get("codebase_version", "v3.0"))
        except FileNotFoundError:
            raise LoadError(
                "bad_file", f"{path} is no data set: it has no meta/info.json."
            ) from None
        except (OSError, ValueError, AttributeError) as error:
            raise LoadError("bad_file", f"{info} can't be read: {error}") from None
        if not version.startswith("v3"):
            raise LoadError(
                "bad_file",
                f"{path} is of version {version}; version 3 is read. Convert it with LeRobot's "
                "convert_dataset_v21_to_v30.",
            )
        fps = self._info.get("fps")
        self.fps = float(fps) if isinstance(fps, int | float) else 0.0

    def pieces(self, index: int) -> tuple[list[_Piece], set[int]]:
        """The rows of an episode, by file; and the episodes that there are."""
        files = sorted((self._path / "data").rglob("*.parquet"))
        session = self._path / SESSION
        if not files and session.is_file():  # recorded where there was no pyarrow
            return _session(session, index)
        if not files:
            raise LoadError("bad_file", f"{self._path} has no files data/**/*.parquet.")
        pieces, known, annotated = [], set[int](), False
        for file in files:
            name = file.relative_to(self._path).as_posix()
            rows, episodes, has_events = _parquet_rows(file, index)
            known |= episodes
            annotated = annotated or has_events
            if rows:
                pieces.append(_Piece(name, rows))
        if not annotated:
            raise LoadError(
                "bad_file",
                f"{self._path} has no column {EVENTS}: it is not annotated, so there is no tool "
                "call to replay.",
            )
        return pieces, known

    def disagreements(self, index: int, pieces: list[_Piece]) -> list[str]:
        """One sentence where the metadata have the episode elsewhere than it is."""
        entry = self._entry(index)
        if entry is None or not pieces:
            return []
        chunk, file = entry.get("data/chunk_index"), entry.get("data/file_index")
        start, end = entry.get("dataset_from_index"), entry.get("dataset_to_index")
        pattern = str(self._info.get("data_path") or _DATA_PATH)
        try:
            named = pattern.format(chunk_index=chunk, file_index=file)
        except (ValueError, KeyError, IndexError, TypeError):
            named = f"chunk {chunk}, file {file}"
        spans = [p.span for p in pieces if p.span is not None]
        found = (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None
        if [p.file for p in pieces] == [named] and found in (None, (start, end)):
            return []
        rows = f", frames {found[0]} to {found[1]}" if found else ""
        return [
            f"meta/episodes has episode {index} in {named}, frames {start} to {end}; its rows are "
            f"in {show.listed(p.file for p in pieces)}{rows}. Those are taken."
        ]

    def _entry(self, index: int) -> dict[str, Any] | None:
        for file in sorted((self._path / "meta" / "episodes").rglob("*.parquet")):
            table = _open(file)
            names = [n for n in table.schema_arrow.names if not n.startswith("stats/")]
            for row in _read(file, lambda t=table, n=names: t.read(columns=n)).to_pylist():
                if row.get("episode_index") == index:
                    return dict(row)
        return None


def _parquet_rows(file: Path, index: int) -> tuple[list[dict[str, Any]], set[int], bool]:
    """Rows of an episode in one file, the episodes that it has, whether it has the column."""
    import pyarrow.compute

    table = _open(file)
    names = table.schema_arrow.names
    if "episode_index" not in names:
        raise LoadError(
            "bad_file", f"{file} has no column episode_index, so its episodes can't be told apart."
        )
    columns = [c for c in _COLUMNS if c in names]
    rows: list[dict[str, Any]] = []
    known: set[int] = set()
    for group in range(table.num_row_groups):
        numbers = _read(
            file, lambda g=group: table.read_row_group(g, columns=["episode_index"])
        ).column(0)
        known.update(int(n) for n in numbers.unique().to_pylist() if n is not None)
        if index in known:
            mask = pyarrow.compute.equal(numbers, index)
            part = _read(file, lambda g=group: table.read_row_group(g, columns=columns))
            rows += part.filter(mask).to_pylist()
    return rows, known, EVENTS in names


def _open(file: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise LoadError(
            "no_pyarrow",
            "Reading parquet needs pyarrow: pip install 'lerobot_tool_bridge[dataset]'",
        ) from None
    return _read(file, lambda: pyarrow.parquet.ParquetFile(file))


def _read(file: Path, work: Any) -> Any:
    """pyarrow's errors as one of ours; a file that can't be read could hold the episode."""
    import pyarrow

    try:
        return work()
    except (pyarrow.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0][:200]
        raise LoadError("bad_file", f"{file} can't be read: {first}") from None
