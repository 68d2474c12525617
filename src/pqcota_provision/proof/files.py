"""Files that are there whole or not at all, whatever kills the writer."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"

_ABANDONED_AFTER = 3600


def reason_of(error: OSError) -> str:
    """Return what the operating system says is wrong, without the path."""
    return error.strerror or type(error).__name__


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Put the bytes at the path, in place of what was there; raises OSError and then leaves that as it was."""
    with _temporary_file(path, data, mode) as temporary:
        os.replace(temporary, path)
    sync_directory(path.parent)


def create_once(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put the bytes at the path if nothing is there, else raise FileExistsError; of two racing writers one wins."""
    with _temporary_file(path, data, mode) as temporary:
        os.link(temporary, path)
    sync_directory(path.parent)


@contextlib.contextmanager
def _temporary_file(path: Path, data: bytes, mode: int) -> Iterator[str]:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=TEMPORARY_SUFFIX, dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def make_directories(path: Path, *, mode: int) -> None:
    """Make the directory and its missing parents, each entry synced, so that a file put there stays found."""
    missing = []
    current = path
    while not current.exists():
        missing.append(current)
        current = current.parent
    for directory in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, mode)
        sync_directory(directory.parent)
    if not path.is_dir():
        raise NotADirectoryError(20, os.strerror(20), str(path))


def sync_directory(path: Path) -> None:
    """Make the directory's entries durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_abandoned(directory: Path, *, now: int) -> None:
    """Remove the temporary files below a directory that a killed writer left over an hour before ``now`` (seconds)."""
    for folder, _, names in os.walk(directory):
        for name in names:
            if not (name.startswith(".") and name.endswith(TEMPORARY_SUFFIX)):
                continue
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if os.lstat(path).st_mtime < now - _ABANDONED_AFTER:
                    os.unlink(path)


def open_regular(path: str | Path, *, follow: bool = True) -> int:
    """Return a descriptor of a regular file for reading; raises OSError, also for anything that is no such file."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(22, "is no regular file", str(path))
    return handle


def read_bounded(path: Path, limit: int) -> bytes:
    """Return a regular file's bytes; raises OSError, also if there are more than ``limit`` of them."""
    with open(open_regular(path), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(27, f"is larger than {limit} bytes", str(path))
    return data
