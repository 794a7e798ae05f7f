"""Files that came from elsewhere: read whole, if they are what they are said to be, and none outside their folder."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from halfeven.conformance.engine.sound import Damaged, refuse

__all__ = ["LARGEST", "read", "read_json"]

LARGEST = 1 << 32  # bytes of one file
_JSON = 1 << 26
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def read(folder: Path, name: str, size: int | None = None, largest: int = LARGEST) -> bytes:
    """The bytes of a file in ``folder``, ``size`` of them.

    Raises:
        Damaged: the name leads elsewhere, it is no regular file, or it has another size; the message has the path.
    """
    path = folder / name
    if not name or name.startswith(".") or not _NAME.issuperset(name):
        refuse(f"{folder}: the file name {name[:80]!r} is not accepted: give letters, digits, '.', '_' and '-'")
    try:  # neither a link, nor a pipe that nobody writes into
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        msg = f"{path} cannot be read: {'a link is not followed' if path.is_symlink() else error.strerror}"
        raise Damaged(msg) from None
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            refuse(f"{path} is no regular file")
        if found.st_size > largest or (size is not None and found.st_size != size):
            wanted = f"{size}" if size is not None else f"{largest} or fewer"
            refuse(f"{path} has {found.st_size} bytes: {wanted} are accepted")
        return file.read(found.st_size)


def read_json(folder: Path, name: str) -> Any:
    """The JSON in a file, without names that are given twice, and without numbers that JSON does not have.

    Raises:
        Damaged: as ``read``, or it is no such JSON.
    """
    data = read(folder, name, largest=_JSON)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else f"{error}"[:200]
        msg = f"{folder / name} is no JSON that is read here: {what}"
        raise Damaged(msg) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        msg = f"the name {next(n for n in names if names.count(n) > 1)!r:.80} is given twice"
        raise ValueError(msg)
    return found


def _no_number(word: str) -> None:
    msg = f"{word} is no number of JSON"
    raise ValueError(msg)
