"""Saving pictures: names, links, twins, full disks, two at once."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lerobot_tool_bridge import observations
from lerobot_tool_bridge.core import patterns
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.observations import (
    LABEL_PATTERN,
    MAX_BYTES,
    MAX_CHARACTERS,
    Observations,
    check_label,
)

PNG = b"\x89PNG\r\n\x1a\n the rest of a picture"


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


BY_PATTERN = ["../x", "a/b", "a\\b", "/etc/x", "..", ".", ".ssh", "-rf", "~root", "%2e%2e%2fx"]
BY_PATTERN += ["a:b", 'say "x"', "a*", "what?", "<x>", "a|b", " x", ""]
BY_CHECK = [
    "x\n",
    "x\0",
    "a\tb",
    "\x9bx",
    "photo\u202egnp.sh",
    "a\u2066b",
    "a\u200eb",
    "a\u200bb",
    "a\u2028b",
    "a\ufeffb",
    "a\U000e0041b",
    "a\ufffeb",
    "a\ue000b",
    "x ",
    "x.",
    "\u3000x",
    "x\u00a0",
    ".png",
    "CON",
    "con",
    "Nul.tar",
    "com1",
    "LPT9.x",
    "COM¹",
    "aux .b",
    "x" * (MAX_CHARACTERS + 1),
    "杯" * (MAX_BYTES // 3 + 1),
    "🥤" * (MAX_BYTES // 4 + 1),
]


@pytest.mark.parametrize("label", BY_PATTERN + BY_CHECK)
def test_bad_labels_are_refused_with_a_sentence(label: str) -> None:
    with pytest.raises(Rejection) as error:
        check_label(label)
    assert error.value.code == "invalid_arguments"
    assert error.value.message.startswith("label ")
    assert error.value.message.endswith(".")
    assert error.value.message.isprintable()


@pytest.mark.parametrize("label", BY_PATTERN)
def test_pattern_keeps_models_from_the_usual_ones(label: str) -> None:
    assert not re.fullmatch(LABEL_PATTERN, label)


@pytest.mark.parametrize(
    "label",
    [
        "cup",
        "front view",
        "杯子",
        "café",
        "प्याला",
        "नीला\u200dकप",
        "می\u200cخواهم",
        "чашка 2",
        "كوب",
        "कप (left), no. 3",
        "v1.2",
        "a-b_c",
        "👩\u200d🚀",
        "x",
        "it's 20 € & more!",
        "CONE",
        "company",
        "x" * MAX_CHARACTERS,
        "杯" * (MAX_BYTES // 3),
    ],
)
def test_labels_of_people_are_saved_as_they_are(label: str, tmp_path: Path) -> None:
    assert re.fullmatch(LABEL_PATTERN, label)
    stem = check_label(label)
    assert Observations(tmp_path).save(stem, PNG, {}) == f"{stem}.png"
    assert Observations(tmp_path).save(stem, PNG, {}) == f"{stem}_2.png"
    assert (tmp_path / f"{stem}.png").read_bytes() == PNG


def test_pattern_is_bounded_and_portable() -> None:
    """Model servers make grammars of it: no look-ahead, no classes or escapes of one engine."""
    assert patterns.problem(LABEL_PATTERN) == ""
    assert "(?" not in LABEL_PATTERN
    assert set(re.findall(r"\\.", LABEL_PATTERN)) == {r"\\"}


def test_the_ending_is_not_doubled() -> None:
    assert check_label("cup.png") == "cup"
    assert check_label("cup.PNG") == "cup"
    assert check_label("cup.jpg") == "cup.jpg"


def test_side_file(tmp_path: Path) -> None:
    Observations(tmp_path).save("杯子", PNG, {"label": "杯子", "stamp": 1.5})
    assert names(tmp_path) == ["杯子.json", "杯子.png"]
    text = (tmp_path / "杯子.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"label": "杯子", "stamp": 1.5, "file": "杯子.png"}
    assert "杯子" in text  # readable, not escaped


def test_folder_is_made_at_the_first_picture(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    saver = Observations(folder)
    assert not folder.exists()
    saver.save("cup", PNG, {})
    assert names(folder) == ["cup.json", "cup.png"]


@pytest.mark.parametrize("existing", ["cup.png", "cup.json", "CUP.PNG", "Cup.json"])
def test_existing_files_survive(existing: str, tmp_path: Path) -> None:
    (tmp_path / existing).write_bytes(b"mine")
    assert Observations(tmp_path).save("cup", PNG, {}) == "cup_2.png"
    assert (tmp_path / existing).read_bytes() == b"mine"


def test_both_forms_of_an_accent_are_one_name(tmp_path: Path) -> None:
    (tmp_path / "cafe\u0301.png").write_bytes(b"mine")  # as macOS writes it
    saver = Observations(tmp_path)
    assert saver.save(check_label("caf\u00e9"), PNG, {}) == "caf\u00e9_2.png"
    assert saver.save(check_label("cafe\u0301"), PNG, {}) == "caf\u00e9_3.png"
    assert (tmp_path / "cafe\u0301.png").read_bytes() == b"mine"


def test_a_name_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cup.png").write_bytes(b"mine")
    (tmp_path / "cup_2.json").write_bytes(b"mine too")
    monkeypatch.setattr(os, "listdir", lambda folder: [])  # what the check saw before
    assert Observations(tmp_path).save("cup", PNG, {}) == "cup_3.png"
    assert (tmp_path / "cup.png").read_bytes() == b"mine"
    assert (tmp_path / "cup_2.json").read_bytes() == b"mine too"
    monkeypatch.undo()
    assert names(tmp_path) == ["cup.png", "cup_2.json", "cup_3.json", "cup_3.png"]


@pytest.mark.parametrize("suffix", ["png", "json"])
@pytest.mark.parametrize("target", ["victim", "nowhere"])
@pytest.mark.parametrize("seen", [True, False])
def test_planted_link_is_never_followed(
    suffix: str, target: str, seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "victim").write_bytes(b"precious")
    link = folder / f"cup.{suffix}"
    link.symlink_to(f"../{target}")
    if not seen:
        monkeypatch.setattr(os, "listdir", lambda folder: [])
    assert Observations(folder).save("cup", PNG, {}) == "cup_2.png"
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()
    assert link.is_symlink()


def test_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")
    with pytest.raises(ToolFailure, match="link") as error:
        Observations(tmp_path / "out").save("cup", PNG, {})
    assert str(tmp_path) not in error.value.message
    assert names(tmp_path / "elsewhere") == []


def test_folder_swapped_for_a_link_while_open(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    saver = Observations(folder)
    saver.save("cup", PNG, {})
    (tmp_path / "elsewhere").mkdir()
    folder.rename(tmp_path / "moved")
    folder.symlink_to("elsewhere")
    saver.save("cup", PNG, {})
    assert names(tmp_path / "elsewhere") == []
    assert "cup_2.png" in names(tmp_path / "moved")


def test_deleted_folder_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    saver = Observations(folder)
    saver.save("cup", PNG, {})
    for name in names(folder):
        (folder / name).unlink()
    folder.rmdir()
    saver.save("cup", PNG, {})
    assert names(folder) == ["cup.json", "cup.png"]


def test_two_at_once_are_both_kept(tmp_path: Path) -> None:
    savers = [Observations(tmp_path) for _ in range(8)]
    start = threading.Barrier(8)

    def save(number: int) -> str:
        start.wait()
        return savers[number].save("cup", PNG + b"%d" % number, {"number": number})

    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(save, range(8)))
    assert len(set(files)) == 8
    for number, file in enumerate(files):
        assert (tmp_path / file).read_bytes() == PNG + b"%d" % number
        side = json.loads((tmp_path / file.replace(".png", ".json")).read_text())
        assert side == {"number": number, "file": file}
    assert len(names(tmp_path)) == 16  # and no temporary file


def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolFailure, match="disk is full") as error:
        Observations(tmp_path).save("cup", PNG, {})
    assert str(tmp_path) not in error.value.message
    assert names(tmp_path) == []


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ToolFailure, match="no folder"):
        Observations(tmp_path / "out").save("cup", PNG, {})


def test_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def deny(path: str, flags: int, *args: int, **kwargs: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(ToolFailure, match="may not write") as error:
        Observations(tmp_path / "out").save("cup", PNG, {})
    assert "out" not in error.value.message


def test_folder_is_let_go(tmp_path: Path) -> None:
    def open_here() -> int:
        files = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
        return sum(os.path.exists(f) and os.path.realpath(f) == str(tmp_path) for f in files)

    observations = Observations(tmp_path)
    observations.save("cup", PNG, {})
    assert open_here() == 1
    del observations
    assert open_here() == 0


def test_memory_card_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    (tmp_path / "cup.png").symlink_to("../victim.png")
    monkeypatch.setattr(os, "listdir", lambda folder: [])
    assert Observations(tmp_path).save("cup", PNG, {}) == "cup_2.png"
    assert (tmp_path / "cup_2.png").read_bytes() == PNG
    monkeypatch.undo()
    assert names(tmp_path) == ["cup.png", "cup_2.json", "cup_2.png"]
    assert not (tmp_path.parent / "victim.png").exists()


def test_error_without_a_number_has_a_sentence() -> None:
    assert "OSError" in observations._sentence(OSError("odd"))
