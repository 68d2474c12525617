"""Looking at a node: its units, its processes and the files they have mapped."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pqcota_provision.errors import NodeUnreadable
from pqcota_provision.plan.timestamp import NANOS_PER_SECOND
from pqcota_provision.proof.files import open_regular, reason_of
from pqcota_provision.text import quote

SYSTEMCTL_SECONDS = 20.0
UNIT_PROPERTIES = ("LoadState", "ActiveState", "InvocationID", "MainPID", "ActiveEnterTimestampMonotonic")

_DELETED = " (deleted)"
_NANOS_PER_MICRO = 1000
_START_TIME_FIELD = 22
_CHUNK = 1 << 20
_INVOCATION = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment on the three clocks that a look compares, in nanoseconds.

    ``wall`` since 1970, ``monotonic`` as systemd stamps units, ``boot`` as the kernel stamps processes.
    """

    wall: int
    monotonic: int
    boot: int


@dataclass(frozen=True, slots=True)
class UnitState:
    """What systemd says of a unit; ``active_enter`` is in nanoseconds of the monotonic clock."""

    load_state: str
    active_state: str
    invocation_id: str
    main_pid: int
    active_enter: int


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What makes a mapped file the same at a later look: the inode, and when it was last written to or changed."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int
    links: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        """Return the identity in a stat result."""
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink
        )

    @property
    def untouched_since(self) -> int:
        """When the bytes were last written to, in nanoseconds since 1970.

        The inode's change time also tells of a writer that set the modification time back. Unlinking sets it
        too, so it says nothing about a file that was replaced while it was mapped.
        """
        return max(self.modified, self.changed) if self.links else self.modified


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A file that a process has mapped; ``place`` is the range of one of its mappings."""

    pid: int
    place: str
    executable: bool
    deleted: bool
    identity: FileIdentity


class Node(Protocol):
    """All that a look needs from the machine. Every method raises NodeUnreadable where it cannot tell."""

    def now(self) -> Moment:
        """Return the present moment."""

    def unit(self, name: str) -> UnitState:
        """Return what systemd says of the unit."""

    def start_time(self, pid: int) -> int:
        """Return when the process started, in nanoseconds of the boot clock."""

    def mapped_files(self, pid: int, path: str) -> tuple[MappedFile, ...]:
        """Return the distinct files that the process has mapped under the path, be they deleted since or not."""

    def sha256(self, mapped: MappedFile) -> str:
        """Return the hash of the mapped bytes, never of what lies at the path by now."""


class LinuxNode:
    """The machine this runs on. Needs root: only root may open another process's mapped files.

    ``show_unit`` returns the text of ``systemctl show`` for a unit, ``clock`` the present moment.
    """

    def __init__(
        self, *, clock: Callable[[], Moment], show_unit: Callable[[str], str] | None = None, proc: Path = Path("/proc")
    ) -> None:
        self._clock = clock
        self._show_unit = show_unit or systemctl_show
        self._proc = proc
        self._nanos_per_tick = NANOS_PER_SECOND // os.sysconf("SC_CLK_TCK")

    def now(self) -> Moment:
        """Return the present moment."""
        return self._clock()

    def unit(self, name: str) -> UnitState:
        """Return what systemd says of the unit."""
        return parse_unit(self._show_unit(name))

    def start_time(self, pid: int) -> int:
        """Return when the process started, in nanoseconds of the boot clock."""
        # The second field is the command in parentheses, and may itself hold both spaces and parentheses.
        _, _, rest = self._read(pid, "stat").rpartition(")")
        return int(rest.split()[_START_TIME_FIELD - 3]) * self._nanos_per_tick

    def mapped_files(self, pid: int, path: str) -> tuple[MappedFile, ...]:
        """Return the distinct files that the process has mapped under the path, be they deleted since or not."""
        names = {path, os.path.realpath(path)}
        names |= {name + _DELETED for name in names}
        found: dict[tuple[str, str], tuple[str, bool, bool]] = {}
        for line in self._read(pid, "maps").split("\n"):
            fields = line.split(" ", 5)
            if len(fields) < 6 or fields[5].lstrip(" ") not in names:
                continue
            place, permissions, _, device, inode, name = fields
            first = found.get((device, inode), (place, False, False))
            executable = first[1] or "x" in permissions
            found[device, inode] = (first[0], executable, name.endswith(_DELETED))
        mapped = []
        for place, executable, deleted in found.values():
            handle = self._open(pid, place)
            try:
                identity = FileIdentity.of(os.fstat(handle))
            finally:
                os.close(handle)
            mapped.append(MappedFile(pid, _padless(place), executable, deleted, identity))
        return tuple(mapped)

    def sha256(self, mapped: MappedFile) -> str:
        """Return the hash of the mapped bytes; raises NodeUnreadable also if they changed meanwhile."""
        digest = hashlib.sha256()
        with open(self._open(mapped.pid, mapped.place), "rb", buffering=0) as file:
            try:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
            except OSError as error:
                raise NodeUnreadable(
                    f"the mapped bytes of process {mapped.pid} cannot be read: {reason_of(error)}"
                ) from None
            if FileIdentity.of(os.fstat(file.fileno())) != mapped.identity:
                raise NodeUnreadable(f"the file that process {mapped.pid} has mapped changed while it was hashed")
        return digest.hexdigest()

    def _read(self, pid: int, name: str) -> str:
        try:
            return (self._proc / str(pid) / name).read_bytes().decode("utf-8", "surrogateescape")
        except OSError as error:
            raise NodeUnreadable(f"process {pid} cannot be looked at: {reason_of(error)}") from None

    def _open(self, pid: int, place: str) -> int:
        try:
            return open_regular(self._proc / str(pid) / "map_files" / _padless(place))
        except OSError as error:
            raise NodeUnreadable(f"a file that process {pid} has mapped cannot be opened: {reason_of(error)}") from None


def parse_unit(text: str) -> UnitState:
    """Read the ``Name=value`` lines of ``systemctl show``; raises NodeUnreadable where one is missing or malformed."""
    values = dict(line.split("=", 1) for line in text.split("\n") if "=" in line)
    missing = [name for name in UNIT_PROPERTIES if name not in values]
    if missing:
        raise NodeUnreadable(f"systemctl did not tell the unit's {', '.join(missing)}")
    numbers = values["MainPID"], values["ActiveEnterTimestampMonotonic"]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise NodeUnreadable("systemctl gave something else than a number for a process or a time of the unit")
    invocation = values["InvocationID"]
    return UnitState(
        values["LoadState"],
        values["ActiveState"],
        invocation if _INVOCATION.fullmatch(invocation) else "",
        int(numbers[0]),
        int(numbers[1]) * _NANOS_PER_MICRO,
    )


def systemctl_show(unit: str) -> str:
    """Return what ``systemctl show`` prints for a unit; raises NodeUnreadable."""
    command = ["systemctl", "show", f"--property={','.join(UNIT_PROPERTIES)}", "--", unit]
    try:
        done = subprocess.run(  # noqa: S603 - the unit's name is checked by the registry and stands behind --
            command, capture_output=True, check=False, timeout=SYSTEMCTL_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise NodeUnreadable(f"systemctl gave no answer within {SYSTEMCTL_SECONDS:g} s") from None
    except OSError as error:
        raise NodeUnreadable(f"systemctl cannot be run: {reason_of(error)}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise NodeUnreadable(f"systemctl failed with status {done.returncode}: {quote(said, 200)}")
    return done.stdout.decode("utf-8", "replace")


def _padless(place: str) -> str:
    """Return a range as map_files names it: maps pads short addresses with zeros, map_files does not."""
    return "-".join(f"{int(part, 16):x}" for part in place.split("-"))
