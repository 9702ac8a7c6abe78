"""Calls out of data sets: forms of elements, where the rows are, what can't be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from lerobot_tool_bridge.cli import replay  # noqa: E402
from lerobot_tool_bridge.core.catalog import Catalogue  # noqa: E402
from lerobot_tool_bridge.core.check import check_message  # noqa: E402
from lerobot_tool_bridge.core.errors import LoadError  # noqa: E402
from lerobot_tool_bridge.core.registry import Registry  # noqa: E402
from lerobot_tool_bridge.dataset.reader import read_episode  # noqa: E402
from lerobot_tool_bridge.dataset.rows import row_message  # noqa: E402
from lerobot_tool_bridge.ports import Ports  # noqa: E402

CASES = [json.loads(x) for x in (Path(__file__).parents[1] / "cases/field_cases.jsonl").open()]
FPS = 10


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def row(*calls: Any, role: str = "assistant", content: str | None = None) -> dict[str, Any]:
    fields = {"role": role, "content": content, "style": None, "camera": None}
    return {**fields, "tool_calls": list(calls) or None}


def as_json(column: Any) -> Any:
    """The same with calls of Arrow's JSON type, which pyarrow does not make out of lists."""
    rows = column.values
    calls = rows.field("tool_calls")
    typed = pa.ExtensionArray.from_storage(pa.json_(), calls.values)
    lists = pa.ListArray.from_arrays(calls.offsets, typed, mask=calls.is_null())
    names = [f.name for f in rows.type]
    fields = [lists if n == "tool_calls" else rows.field(n) for n in names]
    return pa.ListArray.from_arrays(column.offsets, pa.StructArray.from_arrays(fields, names))


def write_data(
    folder: Path,
    episode: int,
    start: int,
    events: dict[int, list[Any]],
    frames: int = 20,
    file: int = 0,
    kind: Any = None,
) -> None:
    """One file with one episode; ``kind`` is the Arrow type of a call, a struct if None."""
    cells = [events.get(i, []) for i in range(frames)]
    if kind is not None:
        cells = [
            [
                {**r, "tool_calls": r["tool_calls"] and [json.dumps(c) for c in r["tool_calls"]]}
                for r in c
            ]
            for c in cells
        ]
        fields = [pa.field(n, pa.string()) for n in ("role", "content", "style", "camera")]
        struct = pa.struct([*fields, pa.field("tool_calls", pa.list_(pa.string()))])
        column = pa.array(cells, pa.list_(struct))
        if kind != pa.string():
            column = as_json(column)
    else:
        column = pa.array(cells)
    table = pa.table(
        {
            "timestamp": pa.array([i / FPS for i in range(frames)], pa.float32()),
            "frame_index": list(range(frames)),
            "episode_index": [episode] * frames,
            "index": list(range(start, start + frames)),
            "language_events": column,
        }
    )
    path = folder / f"data/chunk-000/file-{file:03d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=7)


def write_meta(folder: Path, *episodes: dict[str, Any], **info: Any) -> None:
    (folder / "meta/episodes/chunk-000").mkdir(parents=True)
    content = {"codebase_version": "v3.0", "fps": FPS, "features": {}, **info}
    (folder / "meta/info.json").write_text(json.dumps(content))
    if episodes:
        pq.write_table(
            pa.Table.from_pylist(list(episodes)),
            folder / "meta/episodes/chunk-000/file-000.parquet",
        )


def entry(index: int, start: int, end: int, file: int = 0) -> dict[str, Any]:
    return {
        "episode_index": index,
        "data/chunk_index": 0,
        "data/file_index": file,
        "dataset_from_index": start,
        "dataset_to_index": end,
    }


MIXED = {
    3: [row(call("say", text="hi")), row(content="grab the cup", role="user")],
    12: [row(call("record_observation", label="cup"), call("say", text="done"))],
}


@pytest.mark.parametrize("kind", ["struct", "string", "json"])
def test_every_form_of_elements(tmp_path: Path, kind: str) -> None:
    types = {"struct": None, "string": pa.string(), "json": pa.json_()}
    write_meta(tmp_path, entry(0, 0, 20))
    write_data(tmp_path, 0, 0, MIXED, kind=types[kind])
    episode = read_episode(tmp_path)
    assert (episode.frames, episode.warnings) == (20, ())
    assert [round(e.time, 3) for e in episode.events] == [0.3, 1.2]
    registry = Registry.load(Ports(), offline=True)
    seen = []
    for event in episode.events:
        message, calls = row_message(event.row)
        assert len({c.id for c in calls}) == len(calls)
        verdict = check_message(json.loads(json.dumps(message)), registry)
        assert verdict["outcome"] == "execute"
        seen += [(c["name"], c["arguments"]) for c in verdict["calls"]]
    # a struct column pads say with label=null and record_observation with text=null
    assert seen == [
        ("say", {"text": "hi"}),
        ("record_observation", {"label": "cup"}),
        ("say", {"text": "done"}),
    ]


def test_a_null_where_a_value_is_needed_stays_an_error(tmp_path: Path) -> None:
    write_meta(tmp_path, entry(0, 0, 20))
    write_data(tmp_path, 0, 0, {1: [row(call("say", text=None, voice="x"))]}, kind=pa.string())
    (event,) = read_episode(tmp_path).events
    (verdict,) = check_message(row_message(event.row)[0], Registry.load(Ports(), offline=True))[
        "calls"
    ]
    assert verdict["code"] == "invalid_arguments"


def test_calls_that_can_not_be_read_are_not_sent(tmp_path: Path) -> None:
    good = row(call("say", text="hi"))
    write_meta(tmp_path, entry(0, 0, 20))
    write_data(tmp_path, 0, 0, {1: [good], 2: [good]}, kind=pa.string())
    path = tmp_path / "data/chunk-000/file-000.parquet"
    rows = pq.read_table(path).to_pylist()
    rows[1]["language_events"][0]["tool_calls"] = ['{"type": "function"', None]
    rows[2]["language_events"][0]["tool_calls"] = [
        '{"function": {"name": "say", "arguments": {"text": NaN}}}'
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    for event in read_episode(tmp_path).events:
        message, (bad,) = row_message(event.row)
        assert bad.fault is not None
        assert message["tool_calls"] == []


# --- F03 ----------------------------------------------------------------------------------------


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """The case's data set: episode 1 is in a file that its metadata do not name."""
    (case,) = (c for c in CASES if c["id"] == "F03")
    data = case["input"]["dataset"]
    write_meta(tmp_path, *data["meta/episodes"])
    write_data(tmp_path, 0, 0, {5: [row(call("say", text="zero"))]}, frames=120)
    write_data(tmp_path, 1, 120, {5: [row(call("say", text="one"))]}, frames=120, file=1)
    return tmp_path


def test_f03_rows_are_chosen_by_episode_with_one_warning_of_both_values(moved: Path) -> None:
    episode = read_episode(moved, 1)
    (event,) = episode.events
    assert event.row["tool_calls"][0]["function"]["arguments"] == {"text": "one"}
    assert episode.frames == 120
    (warning,) = episode.warnings
    assert "file-000.parquet" in warning
    assert "file-001.parquet" in warning
    zero = read_episode(moved, 0)
    assert zero.warnings == ()
    assert [e.row["tool_calls"][0]["function"]["arguments"] for e in zero.events] == [
        {"text": "zero"}
    ]


def test_f03_scrambled_ranges_are_a_warning_too(tmp_path: Path) -> None:
    write_meta(tmp_path, entry(0, 7, 27))
    write_data(tmp_path, 0, 0, {5: [row(call("say", text="zero"))]})
    (warning,) = read_episode(tmp_path, 0).warnings
    assert "frames 7 to 27" in warning
    assert "frames 0 to 20" in warning


def test_f03_rows_nowhere_are_an_error_and_status_1(
    moved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_data(moved, 0, 120, {5: [row(call("say", text="zero again"))]}, file=1)
    with pytest.raises(LoadError) as error:
        read_episode(moved, 1)
    assert error.value.code == "no_episode"
    assert replay.main([str(moved), "--episode", "1", "--dry-run"]) == 1
    said = capsys.readouterr()
    assert "no rows of episode 1; there are 0" in said.err
    assert "zero" not in said.out


def test_f03_one_file_with_several_episodes(tmp_path: Path) -> None:
    write_meta(tmp_path)
    for episode in (0, 1):
        write_data(tmp_path, episode, 20 * episode, {5: [row(call("say", text=str(episode)))]})
        (tmp_path / "data/chunk-000/file-000.parquet").rename(tmp_path / f"{episode}.parquet")
    both = pa.concat_tables([pq.read_table(tmp_path / f"{i}.parquet") for i in (0, 1)])
    pq.write_table(both, tmp_path / "data/chunk-000/file-000.parquet", row_group_size=15)
    for episode in (0, 1):
        (event,) = read_episode(tmp_path, episode).events
        assert event.row["tool_calls"][0]["function"]["arguments"] == {"text": str(episode)}
        assert event.time == pytest.approx(0.5)


# --- what can't be read -------------------------------------------------------------------------


def _old(folder: Path) -> None:
    write_meta(folder, codebase_version="v2.1")


def _empty(folder: Path) -> None:
    write_meta(folder)


def _torn(folder: Path) -> None:
    write_meta(folder)
    write_data(folder, 0, 0, {})
    path = folder / "data/chunk-000/file-000.parquet"
    path.write_bytes(path.read_bytes()[:200])


def _plain(folder: Path) -> None:
    write_meta(folder)
    write_data(folder, 0, 0, {})
    path = folder / "data/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).drop(["language_events"]), path)


def _unnumbered(folder: Path) -> None:
    write_meta(folder)
    write_data(folder, 0, 0, {})
    path = folder / "data/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).drop(["episode_index"]), path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "no meta/info.json"),
        (_old, "version v2.1"),
        (_empty, "no files"),
        (_torn, "can't be read"),
        (_plain, "not annotated"),
        (_unnumbered, "no column episode_index"),
    ],
)
def test_sets_that_can_not_be_replayed(tmp_path: Path, make: Any, said: str) -> None:
    make(tmp_path)
    with pytest.raises(LoadError, match=said):
        read_episode(tmp_path)


def test_without_timestamps_the_frames_tell_the_time(tmp_path: Path) -> None:
    write_meta(tmp_path)
    write_data(tmp_path, 0, 0, MIXED)
    path = tmp_path / "data/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).drop(["timestamp"]), path)
    assert [e.time for e in read_episode(tmp_path).events] == [0.3, 1.2]


# --- the command --------------------------------------------------------------------------------


def test_dry_run_lists_what_would_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = {
        2: [row(call("say", text="hi"))],
        4: [row(call("arm_grab_object", x=2.0, y=0.0, z=0.01))],
        6: [row(call("fly", height=3))],
    }
    write_meta(tmp_path, entry(0, 0, 20), tools=[])
    write_data(tmp_path, 0, 0, events, kind=pa.string())
    assert replay.main([str(tmp_path), "--dry-run"]) == 1
    first, say, grab, fly, last = capsys.readouterr().out.splitlines()
    assert first == "episode 0: 20 frames, 3 tool calls"
    assert say == '    0.20 s  say(text="hi")  good'
    assert "would fail: unreachable" in grab
    assert "would fail: unknown_tool" in fly
    assert last == "2 would fail"


def test_an_episode_without_calls_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_meta(tmp_path)
    write_data(tmp_path, 0, 0, {}, kind=pa.string())
    assert replay.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "episode 0: 20 frames, 0 tool calls\n"


def test_f01_the_sets_catalogue_is_read_beside_it(tmp_path: Path) -> None:
    write_meta(tmp_path, tools=None)
    assert [t.name for t in Catalogue.load(tmp_path).tools] == ["say"]


@pytest.mark.parametrize("words", [[], ["x", "--speed", "0"], ["x", "--episode", "a"]])
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        replay.main(words)
    assert error.value.code == 2
