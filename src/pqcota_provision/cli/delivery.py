"""What a command hands over: files and standard output, all of it or nothing (SPEC 9)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Hashable, Iterable, Iterator, Mapping

from pqcota_provision.cli.common import STANDARD_STREAM, reason_of, write_all, write_output
from pqcota_provision.errors import OutputFailed, UsageProblem
from pqcota_provision.text import quote

STANDARD_OUTPUT = 1


class Delivery:
    """Collects what a command writes, and hands it over at the end."""

    def __init__(self) -> None:
        self._files: list[_StagedFile] = []
        self._streams: list[tuple[str, tuple[str, ...]]] = []
        self._standard_output: tuple[str, ...] | None = None

    def add(self, path: str | None, parts: Iterable[str]) -> None:
        """Take the text of a file, or of standard output where the path is None or ``-``.

        A regular file is written beside its target at once, so that a full disk is found before anything is
        handed over. Raises OutputFailed, naming the file.
        """
        if path is None or path == STANDARD_STREAM or _own_descriptor(path) == STANDARD_OUTPUT:
            self._standard_output = tuple(parts)
            return
        with _naming(path):
            if _is_stream(path):
                self._streams.append((path, tuple(parts)))
            else:
                self._files.append(file := _StagedFile(path))
                file.write(parts)

    def hand_over(self) -> None:
        """Write pipes and devices, put every file in its place, write standard output.

        Raises OutputFailed, or OutputClosed; then every file is as it was before.
        """
        try:
            for path, parts in self._streams:
                with _naming(path):
                    _write_stream(path, parts)
            for file in self._files:
                is_last_step = file is self._files[-1] and self._standard_output is None
                with _naming(file.path):
                    file.put_in_place(keep_previous=not is_last_step)
            if self._standard_output is not None:
                write_output(self._standard_output)
        except BaseException:
            for file in reversed(self._files):
                file.put_back()
            raise

    def discard(self) -> None:
        """Remove what was written beside the targets."""
        for file in self._files:
            file.discard()


@contextlib.contextmanager
def delivery() -> Iterator[Delivery]:
    """Yield a Delivery; what it has not handed over by the end leaves no trace."""
    collected = Delivery()
    try:
        yield collected
    finally:
        collected.discard()


def refuse_shared_places(places: Mapping[str, str | None]) -> None:
    """Raise UsageProblem if a path is empty, or if two of a command's files are one and the same.

    ``places`` maps what each is called to its path; None is standard output.
    """
    names: dict[Hashable, str] = {}
    for name, path in places.items():
        if path == "":
            raise UsageProblem(f"{name} is empty", remedy="Name a file.")
        place = _place(path)
        other = name if place is None else names.setdefault(place, name)
        if other != name:
            raise UsageProblem(f"{other} and {name} are the same file", remedy="Name two different files.")


def _place(path: str | None) -> Hashable | None:
    """Return what is the same for two names of one place; None for a device, which many can write to."""
    if path is None or path == STANDARD_STREAM:
        path = "/dev/stdout"
    descriptor = _own_descriptor(path)
    place: str | int = path
    try:
        place = os.path.realpath(path) if descriptor is None else descriptor
        status = os.stat(place)
    except OSError:
        return place
    except ValueError:
        # No name of a file at all; writing to it will say so.
        return None
    if stat.S_ISREG(status.st_mode):
        return (status.st_dev, status.st_ino)
    return None if stat.S_ISCHR(status.st_mode) and descriptor is None else place


class _StagedFile:
    """A regular file written beside its target, which it replaces in one step."""

    def __init__(self, path: str) -> None:
        import tempfile

        self.path = path
        self._target = os.path.realpath(path)
        self._previous = ""
        self._is_in_place = False
        self._handle, self._temporary = tempfile.mkstemp(prefix=".pqcota-", dir=os.path.dirname(self._target))

    def write(self, parts: Iterable[str]) -> None:
        with open(self._handle, "wb") as file:
            write_all(file, parts)
            file.flush()
            self._take_over_owner_and_mode(file.fileno())
            os.fsync(file.fileno())

    def _take_over_owner_and_mode(self, descriptor: int) -> None:
        try:
            previous = os.stat(self._target)
        except FileNotFoundError:
            os.fchmod(descriptor, 0o666 & ~_umask())
            return
        # Only root may give a file away; for anyone else the directory's rule stands.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, previous.st_uid, previous.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(previous.st_mode))

    def put_in_place(self, *, keep_previous: bool) -> None:
        if keep_previous:
            self._keep_previous()
        os.replace(self._temporary, self._target)
        self._is_in_place = True

    def _keep_previous(self) -> None:
        name = f"{self._temporary}.previous"
        try:
            os.link(self._target, name)
        except FileNotFoundError:
            return
        except OSError:
            # A file system without hard links, or somebody else's file.
            os.rename(self._target, name)
        self._previous = name

    def put_back(self) -> None:
        with contextlib.suppress(OSError):
            if self._previous:
                os.replace(self._previous, self._target)
            elif self._is_in_place:
                os.unlink(self._target)

    def discard(self) -> None:
        for name in (self._temporary, self._previous):
            with contextlib.suppress(OSError):
                os.unlink(name)


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise OutputFailed(f"{quote(path)} cannot be written: {reason_of(error)}") from None


def _is_stream(path: str) -> bool:
    """Tell whether a path is an open file of this process, a pipe or a device; a directory is an error."""
    if _own_descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if not path.endswith("/"):
            return False
        mode = stat.S_IFDIR
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


def _own_descriptor(path: str) -> int | None:
    """Return the number of the open file that a path like ``/dev/stderr`` or ``/dev/fd/3`` leads to."""
    try:
        for _ in range(40):
            directory, name = os.path.split(path)
            if name.isdecimal() and os.path.realpath(directory) in (os.path.realpath("/proc/self/fd"), "/dev/fd"):
                return int(name)
            path = os.path.join(directory, os.readlink(path))
    except (OSError, ValueError):
        pass
    return None


def _write_stream(path: str, parts: Iterable[str]) -> None:
    descriptor = _own_descriptor(path)
    # Opened anew, a file that others write to would lose its end or have it written over.
    with open(path if descriptor is None else os.dup(descriptor), "wb") as file:
        write_all(file, parts)


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
