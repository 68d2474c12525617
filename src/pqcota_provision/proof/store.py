"""Where proofs lie: a small protocol that an object store can stand in for, and a directory that follows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pqcota_provision.errors import ProofAlreadyThere, ProofStoreUnavailable
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.proof.files import create_once, make_directories, read_bounded, reason_of
from pqcota_provision.proof.statement import MAX_PROOF_BYTES, refuse_sha256
from pqcota_provision.text import quote

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class StoredProof:
    """The bytes at one place of a store, unjudged; app, sha256 and prover are what the place says."""

    app: str
    sha256: str
    prover: str
    place: str
    data: bytes


class ProofStore(Protocol):
    """The proofs of one organization. Create-only: what was put is never overwritten.

    Every method raises ProofStoreUnavailable where the store cannot be read or written.
    """

    def get(self, app: str, sha256: str, prover: str) -> bytes | None:
        """Return the bytes put for this build by this prover, or None."""

    def put(self, app: str, sha256: str, prover: str, data: bytes) -> None:
        """Keep the bytes, whole and durable; raises ProofAlreadyThere, and leaves what is there, if anything is."""

    def entries(self) -> Iterator[StoredProof]:
        """Yield everything that was put, in order of app, sha256 and prover."""


class DirectoryProofStore:
    """Proofs as files ``<organization>/<app>/<sha256>/<prover>.json`` below a directory.

    Names must be plain file names and the hash 64 hexadecimal digits; registry, policy and proofs are read so.
    """

    def __init__(self, directory: Path, organization: str) -> None:
        self._directory = directory
        self._root = directory / organization

    def __str__(self) -> str:
        return f"proof store {quote(str(self._directory))}"

    def exists(self) -> bool:
        """Tell whether the directory is there: the first proof makes it."""
        return os.path.exists(self._directory)

    def get(self, app: str, sha256: str, prover: str) -> bytes | None:
        """Return the bytes put for this build by this prover, or None."""
        path = self._path(app, sha256, prover)
        try:
            return read_bounded(path, MAX_PROOF_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(path, "read", error) from None

    def put(self, app: str, sha256: str, prover: str, data: bytes) -> None:
        """Keep the bytes, whole and durable; raises ProofAlreadyThere, and leaves what is there, if anything is."""
        path = self._path(app, sha256, prover)
        try:
            make_directories(path.parent, mode=0o755)
            create_once(path, data)
        except FileExistsError:
            raise ProofAlreadyThere(f"the {self} already holds {self._shown(path)}") from None
        except OSError as error:
            raise self._unavailable(path, "written", error) from None

    def entries(self) -> Iterator[StoredProof]:
        """Yield everything that was put, in order of app, sha256 and prover.

        A directory that does not exist is a store that cannot be read; one without the organization is empty.
        """
        if self._root.name not in self._names(self._directory):
            return
        for app in self._names(self._root):
            for sha256 in self._names(self._root / app):
                if refuse_sha256(sha256):
                    continue
                for name in self._names(self._root / app / sha256):
                    prover = name.removesuffix(_SUFFIX)
                    if name == prover or refuse_file_name(prover):
                        continue
                    path = self._root / app / sha256 / name
                    try:
                        data = read_bounded(path, MAX_PROOF_BYTES)
                    except OSError as error:
                        raise self._unavailable(path, "read", error) from None
                    yield StoredProof(app, sha256, prover, self._shown(path), data)

    def _names(self, directory: Path) -> list[str]:
        try:
            return sorted(name for name in os.listdir(directory) if not name.startswith("."))
        except NotADirectoryError:
            if directory == self._directory:
                raise self._unavailable(directory, "read", NotADirectoryError(20, "is no directory")) from None
            return []
        except OSError as error:
            raise self._unavailable(directory, "read", error) from None

    def _path(self, app: str, sha256: str, prover: str) -> Path:
        return self._root / app / sha256 / (prover + _SUFFIX)

    def _shown(self, path: Path) -> str:
        return quote(str(path.relative_to(self._directory)), 240)

    def _unavailable(self, path: Path, verb: str, error: OSError) -> ProofStoreUnavailable:
        what = f"{self._shown(path)} in the {self}" if path != self._directory else f"the {self}"
        return ProofStoreUnavailable(f"{what} cannot be {verb}: {reason_of(error)}")
