"""What a node remembers: healthy history, refusals, census and markers, one small file a record.

A record of its own file needs no lock: two passes, or a pass and a refusal, never rewrite each other's.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pqcota_provision.errors import NodeStateUnusable
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.census import Census, CensusEntry
from pqcota_provision.proof.files import (
    make_directories,
    read_bounded,
    reason_of,
    remove_abandoned,
    write_atomically,
)
from pqcota_provision.text import quote

DIRECTORY_MODE = 0o700
MAX_RECORD_BYTES = 1 << 20

_SUFFIX = ".json"
_RIGHTS_OF_OTHERS = 0o077

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class HealthyBuild:
    """A build that met the conditions on this node.

    ``how`` says how that was seen (``live``: mapped by the running service), ``at`` when it was seen first and
    ``last_at`` when last, both in UTC.
    """

    app: str
    provider: str
    sha256: str
    version: str
    how: str
    at: str
    last_at: str

    def document(self) -> dict[str, str]:
        """Return the record as it is written."""
        return {name: getattr(self, field) for name, field in _HEALTHY_BUILD.items()}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A build that this node refused: it is never proven here, whichever app runs it."""

    app: str
    sha256: str
    reason: str
    at: str

    def document(self) -> dict[str, str]:
        """Return the record as it is written."""
        return {name: getattr(self, field) for name, field in _REFUSAL.items()}


class NodeState:
    """The state directory of a node; its healthy history is that of one organization.

    Every method raises NodeStateUnusable where the directory cannot be read or written.
    """

    def __init__(self, directory: Path, organization: str) -> None:
        self._directory = directory
        self._healthy = directory / "healthy" / organization
        self._refusals = directory / "refusals"
        self._markers = directory / "proof-required"
        self._census = directory / f"census{_SUFFIX}"

    def prepare(self, *, now: Timestamp) -> None:
        """Make the directory, its owner's alone, and remove what killed writers left behind.

        One that is there and that others may enter, or own, is refused and left as it is: what lies in it may be
        theirs, or it may be another directory altogether.
        """
        try:
            make_directories(self._directory, mode=DIRECTORY_MODE)
            status = os.stat(self._directory)
            if status.st_uid != os.geteuid() or status.st_mode & _RIGHTS_OF_OTHERS:
                raise NodeStateUnusable(
                    f"the state directory {quote(str(self._directory))} belongs to user {status.st_uid} and has mode "
                    f"{stat.S_IMODE(status.st_mode):04o}; it must belong to root with mode {DIRECTORY_MODE:04o}"
                )
            remove_abandoned(self._directory, now=now.seconds)
        except OSError as error:
            raise self._unusable(self._directory, "used", error) from None

    def record_healthy(self, build: HealthyBuild) -> bool:
        """Keep that a build met the conditions; return whether it was not in the history yet."""
        path = self._healthy / build.app / (build.sha256 + _SUFFIX)
        try:
            known = self._read(path, _healthy_build)
        except NodeStateUnusable:
            # The new evidence stands by itself.
            known = None
        self._write(path, replace(build, at=known.at).document() if known else build.document())
        return known is None

    def healthy_builds(self, app: str = "") -> tuple[HealthyBuild, ...]:
        """Return the healthy history of an app, or of every app, in the order in which builds entered it."""
        apps = [app] if app else self._names(self._healthy)
        builds = [build for name in apps for build in self._read_all(self._healthy / name, _healthy_build)]
        return tuple(sorted(builds, key=lambda build: (build.app, build.at, build.sha256)))

    def refuse(self, refusal: Refusal) -> None:
        """Keep a refusal; a later one of the same build and app takes its place."""
        self._write(self._refusals / refusal.app / (refusal.sha256 + _SUFFIX), refusal.document())

    def refusals(self) -> tuple[Refusal, ...]:
        """Return every refusal of this node, by app and hash."""
        return tuple(
            refusal for app in self._names(self._refusals) for refusal in self._read_all(self._refusals / app, _refusal)
        )

    def keep_census(self, census: Census) -> None:
        """Keep a census in place of the one before it."""
        self._write(self._census, census.document())

    def census(self) -> Census | None:
        """Return the last census, or None if none was ever taken."""
        return self._read(self._census, _census)

    def mark_required(self, app: str) -> None:
        """Leave the marker that this node once required a proof for the app."""
        if app not in self.required_apps():
            self._write_bytes(self._markers / app, b"")

    def required_apps(self) -> tuple[str, ...]:
        """Return the apps with a marker."""
        return tuple(self._names(self._markers))

    def _write(self, path: Path, document: Mapping[str, Any]) -> None:
        self._write_bytes(path, (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode("utf-8"))

    def _write_bytes(self, path: Path, data: bytes) -> None:
        try:
            make_directories(path.parent, mode=DIRECTORY_MODE)
            write_atomically(path, data)
        except OSError as error:
            raise self._unusable(path, "written", error) from None

    def _read(self, path: Path, build: Callable[[Any], Record]) -> Record | None:
        try:
            data = read_bounded(path, MAX_RECORD_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(path, "read", error) from None
        try:
            return build(json.loads(data))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise NodeStateUnusable(f"{quote(str(path), 240)} is no record of this kind") from None

    def _read_all(self, directory: Path, build: Callable[[Any], Record]) -> Iterator[Record]:
        for name in self._names(directory):
            record = self._read(directory / name, build) if name.endswith(_SUFFIX) else None
            if record is not None:
                yield record

    def _names(self, directory: Path) -> list[str]:
        try:
            return sorted(name for name in os.listdir(directory) if not name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable(directory, "read", error) from None

    @staticmethod
    def _unusable(path: Path, verb: str, error: OSError) -> NodeStateUnusable:
        return NodeStateUnusable(f"{quote(str(path), 240)} cannot be {verb}: {reason_of(error)}")


_HEALTHY_BUILD = {
    "app": "app",
    "provider": "provider",
    "sha256": "sha256",
    "version": "version",
    "how": "how",
    "at": "at",
    "lastAt": "last_at",
}
_REFUSAL = {"app": "app", "sha256": "sha256", "reason": "reason", "at": "at"}


def _healthy_build(document: Any) -> HealthyBuild:
    return HealthyBuild(**_texts(document, _HEALTHY_BUILD))


def _refusal(document: Any) -> Refusal:
    return Refusal(**_texts(document, _REFUSAL))


def _census(document: Any) -> Census:
    modules = tuple(
        CensusEntry(
            **_texts(entry, {"name": "name", "sha256": "sha256"}),
            owner=int(entry["owner"]),
            group=int(entry["group"]),
            mode=int(entry["mode"], 8),
        )
        for entry in document["modules"]
    )
    return Census(**_texts(document, {"directory": "directory", "takenAt": "taken_at"}), modules=modules)


def _texts(document: Any, names: Mapping[str, str]) -> dict[str, str]:
    values = {field: document[name] for name, field in names.items()}
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError("a field is no text")
    return values
