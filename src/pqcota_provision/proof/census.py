"""The census: which modules lie in the staging directory, who owns them and who may write to them."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pqcota_provision.errors import NodeUnreadable
from pqcota_provision.proof.files import open_regular, reason_of
from pqcota_provision.text import quote

ROOT = 0

_MODULE_SUFFIXES = (".so", ".jar")
_NOT_A_REGULAR_FILE = frozenset((errno.ELOOP, errno.EINVAL, errno.ENXIO))
_WRITABLE_BY_OTHERS = 0o022


@dataclass(frozen=True, slots=True)
class CensusEntry:
    """One module of the staging directory; owner and group are numbers, the mode its permission bits."""

    name: str
    sha256: str
    owner: int
    group: int
    mode: int


@dataclass(frozen=True, slots=True)
class Census:
    """The modules of a staging directory at a time, in order of their names."""

    directory: str
    taken_at: str
    modules: tuple[CensusEntry, ...]

    def document(self) -> dict[str, object]:
        """Return the census as it is written, modes in octal."""
        return {
            "directory": self.directory,
            "takenAt": self.taken_at,
            "modules": [
                {
                    "name": entry.name,
                    "sha256": entry.sha256,
                    "owner": entry.owner,
                    "group": entry.group,
                    "mode": f"{entry.mode:04o}",
                }
                for entry in self.modules
            ],
        }

    def objection_to(self, sha256: str) -> str:
        """Tell, as a clause, why the census does not vouch for these bytes; empty where it does.

        It vouches for bytes that lie in the directory in a file that belongs to root and that nobody else may
        write to: any other is a build that somebody else can make this node run.
        """
        holders = [entry for entry in self.modules if entry.sha256 == sha256]
        if not holders:
            return f"the census of {self.directory} does not hold these bytes"
        objections = [_objection(entry) for entry in holders]
        return "" if "" in objections else objections[0]


def take_census(directory: Path, *, taken_at: str) -> Census:
    """Hash every module in the staging directory; symbolic links and other special files are left out.

    Raises NodeUnreadable where the directory is not there, or is not root's alone to write to.
    """
    try:
        status = os.stat(directory)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        names = sorted(name for name in os.listdir(directory) if name.endswith(_MODULE_SUFFIXES))
    except OSError as error:
        raise NodeUnreadable(
            f"the staging directory {quote(str(directory))} cannot be read: {reason_of(error)}"
        ) from None
    if status.st_uid != ROOT or status.st_mode & _WRITABLE_BY_OTHERS:
        raise NodeUnreadable(
            f"the staging directory {quote(str(directory))} belongs to user {status.st_uid} and has mode "
            f"{stat.S_IMODE(status.st_mode):04o}; it must belong to root and be writable by root only"
        )
    return Census(str(directory), taken_at, tuple(_take(directory / name for name in names)))


def _take(paths: Iterable[Path]) -> Iterable[CensusEntry]:
    for path in paths:
        try:
            with open(open_regular(path, follow=False), "rb") as file:
                status = os.fstat(file.fileno())
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in _NOT_A_REGULAR_FILE:
                continue
            raise NodeUnreadable(f"the module {quote(str(path))} cannot be read: {reason_of(error)}") from None
        yield CensusEntry(path.name, digest, status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode))


def _objection(entry: CensusEntry) -> str:
    if entry.owner != ROOT:
        return f"{quote(entry.name)} belongs to user {entry.owner}, not to root"
    if entry.mode & _WRITABLE_BY_OTHERS:
        return f"{quote(entry.name)} has mode {entry.mode:04o}, so others than root may write to it"
    return ""
