"""Where pictures are left: safe names, never over a file, never outside the folder.

A picture and its side file appear together: both are written under a temporary name in the same
folder and get their final names by hard links, which never replace anything and never follow a
link. The side file gets its name first, so that no picture is ever without one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure

LABEL_PATTERN = r'^[^/\\:*?"<>|%.~ -][^/\\:*?"<>|%]*$'
"""What a label may look like, for the schema: as much as every model server's grammar can read.
``check_label`` knows more, and says it better."""

LABEL_FORM = 'Any language, spaces inside; none of / \\ : * ? " < > | % and no . - ~ to begin with'
"""The same in words."""

LATEST = "latest"
"""Names the picture that was saved last, where one is read."""

NO_PICTURE = "no_such_picture"
"""Code of the failure when there is no picture of a name."""

PICTURES = (".png", ".jpg", ".jpeg")
MAX_PICTURE_BYTES = 64 * 1024 * 1024
_MAX_SIDE_BYTES = 256 * 1024
_TAKE = "Take one with record_observation first."

MAX_CHARACTERS = 120
MAX_BYTES = 240
"""A name has at most 255 bytes on every usual file system; a number and ``.json`` need room."""

_JOINERS = "\u200c\u200d"  # needed to write Persian, Hindi and emoji
_RESERVED = re.compile(r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9¹²³])\s*(\..*)?", re.I)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger(__name__)


def check_label(label: str) -> str:
    """Makes the stem of a file name out of a label.

    Args:
        label: As the model gave it. One trailing ``.png`` is not part of it.

    Returns:
        The label in Unicode's composed form (NFC), so that one word is one name.

    Raises:
        Rejection: ``invalid_arguments``; the sentence says what to change.
    """
    stem = unicodedata.normalize("NFC", re.sub(r"(?i)\.png\Z", "", label))
    problem = _problem(stem)
    if problem:
        raise Rejection(
            "invalid_arguments",
            f"label {problem}. Give a short plain name such as 'red cup' or 'shelf left'.",
        )
    return stem


def _problem(stem: str) -> str:
    if not stem.strip():
        return "is empty"
    if "/" in stem or "\\" in stem or stem == "..":
        return "must not contain a folder (/ or \\ or ..): the robot chooses where it saves"
    for character in stem:
        kind = unicodedata.category(character)
        if kind in ("Cc", "Cs", "Co", "Zl", "Zp") or (kind == "Cf" and character not in _JOINERS):
            return f"must not contain the invisible character U+{ord(character):04X}"
        if ord(character) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(character) <= 0xFDEF:
            return f"must not contain U+{ord(character):04X}, which is no character"
        if character in ':*?"<>|%':
            return f"must not contain {character}"
    if stem[0] in ".-~":
        return f"must not begin with {stem[0]}"
    if stem[0].isspace() or stem[-1].isspace() or stem[-1] == ".":
        return "must not begin or end with a space, or end with a dot"
    if _RESERVED.fullmatch(stem):
        return "is a name that some computers reserve for devices"
    if len(stem.encode()) > MAX_BYTES or len(stem) > MAX_CHARACTERS:
        return f"is too long (at most {MAX_CHARACTERS} characters and {MAX_BYTES} bytes)"
    return ""


class Observations:
    """A folder of pictures, each with a JSON side file.

    The folder is made and opened at the first picture and held open from then on, so that nobody
    can put another in its place. Methods block on the disk: call them in a thread, one at a time.

    Args:
        path: The folder. Its last part must not be a link.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def save(self, stem: str, png: bytes, facts: Mapping[str, Any]) -> str:
        """Saves a picture and its side file under the first name that is free.

        Args:
            stem: From ``check_label``.
            png: The file's content.
            facts: For the side file; ``file`` is added.

        Returns:
            The picture's file name: ``cup.png``, or ``cup_2.png`` where that exists.

        Raises:
            ToolFailure: The disk is full, or the folder can't be used.
        """
        try:
            return self._save(self._folder(), stem, png, facts)
        except OSError as error:
            _log.error("can't save a picture in %s: %s", self._path, error)
            raise ToolFailure("tool_error", _sentence(error)) from None

    # --- reading ------------------------------------------------------------------------------

    def newest(self, count: int = 1) -> list[str]:
        """Names of the pictures that were saved last, the newest first."""
        try:
            folder = self._folder(make=False)
            names = [n for n in os.listdir(folder) if n.lower().endswith(PICTURES)]
            stats = {n: os.stat(n, dir_fd=folder, follow_symlinks=False) for n in names}
        except OSError:
            return []
        return sorted(names, key=lambda n: (-stats[n].st_mtime_ns, n))[:count]

    def read(self, name: str) -> tuple[str, bytes, dict[str, Any]]:
        """A saved picture.

        Args:
            name: Of a picture of the folder, with or without its ending, or ``latest``.

        Returns:
            Its name, its bytes, and the facts of its side file; none where it has no good one.

        Raises:
            ToolFailure: ``no_such_picture``; says which there are.
        """
        newest = self.newest(5)
        if name.strip().lower() == LATEST:
            if not newest:
                raise ToolFailure(NO_PICTURE, f"There is no picture yet. {_TAKE}")
            name = newest[0]
        problem = _problem(name)
        names = [] if problem else [name, *(f"{name}{ending}" for ending in PICTURES)]
        for candidate in names:
            if not candidate.lower().endswith(PICTURES):
                continue
            with contextlib.suppress(OSError):
                data = self._content(candidate, MAX_PICTURE_BYTES)
                return candidate, data, self._facts(candidate)
        what = f"image_path {problem}." if problem else f"There is no picture {show.text(name)}."
        if not newest:
            raise ToolFailure(NO_PICTURE, f"{what} There is none at all yet. {_TAKE}")
        known = show.listed(show.text(n, 80) for n in newest)
        raise ToolFailure(NO_PICTURE, f"{what} The newest are {known}; or say {LATEST}.")

    def _content(self, name: str, limit: int) -> bytes:
        """A plain file of the folder, never what a link points to."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=self._folder(make=False)), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
                raise OSError(errno.EFBIG, "no plain file of a usual size")
            return file.read(limit)

    def _facts(self, picture: str) -> dict[str, Any]:
        try:
            side = self._content(f"{picture.rpartition('.')[0]}.json", _MAX_SIDE_BYTES)
            facts = json.loads(side)
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def close(self) -> None:
        """Lets go of the folder; the next picture opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()

    def _folder(self, make: bool = True) -> int:
        if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:  # somebody deleted it
            self.close()
        if self._fd < 0:
            if make:
                self._path.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._path, flags)
        return self._fd

    def _save(self, folder: int, stem: str, png: bytes, facts: Mapping[str, Any]) -> str:
        taken = {_key(name) for name in os.listdir(folder)}
        with _temporary(folder, png, sync=True) as picture:
            for name in _names(stem):
                # twins that differ in case or form alone are one file on other systems
                if _key(f"{name}.png") in taken or _key(f"{name}.json") in taken:
                    continue
                text = json.dumps({**facts, "file": f"{name}.png"}, ensure_ascii=False, indent=1)
                with _temporary(folder, text.encode() + b"\n") as side:
                    if not _publish(folder, side, f"{name}.json"):
                        continue
                    if _publish(folder, picture, f"{name}.png"):
                        return f"{name}.png"
                    os.unlink(f"{name}.json", dir_fd=folder)
        raise AssertionError("unreachable: there is always a next number")


def _names(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}_{number}"
        number += 1


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", name.casefold())


@contextlib.contextmanager
def _temporary(folder: int, content: bytes, sync: bool = False) -> Iterator[str]:
    """Writes a file under a name of its own, and takes that name away at the end."""
    name = f".{secrets.token_hex(8)}.part"
    file = os.open(name, _FILE, 0o644, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            if sync:  # robots lose power; a name must not outlive its content
                os.fsync(stream.fileno())
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _publish(folder: int, temporary: str, name: str) -> bool:
    """Gives a file its final name; False where that name is taken, be it by a dead link."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        return True
    # FAT and exFAT (memory cards) have no hard links: reserve the name, then move onto it
    try:
        os.close(os.open(name, _FILE, 0o644, dir_fd=folder))
    except FileExistsError:
        return False
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def _sentence(error: OSError) -> str:
    """What went wrong, without a path."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The picture was not saved: the robot's disk is full. Tell the operator."
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
        return (
            "The picture was not saved: the folder for pictures is a link or no folder at all. "
            "Tell the operator to set output_dir to a real folder."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            "The picture was not saved: the robot may not write into the folder for pictures. "
            "Tell the operator."
        )
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return f"The picture was not saved: {reason}. Tell the operator."
