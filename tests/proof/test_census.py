"""The census: which files count as modules, and for whose bytes it vouches."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from pqcota_provision.errors import NodeUnreadable
from pqcota_provision.proof.census import CensusEntry, take_census

TAKEN_AT = "2026-01-02T03:04:05Z"


@pytest.fixture
def staging(tmp_path: Path, skip_or_fail: Callable[[str], NoReturn]) -> Path:
    if os.geteuid() != 0:
        skip_or_fail("only root can make files that belong to root")
    directory = tmp_path / "opt"
    directory.mkdir(mode=0o755)
    return directory


def put(path: Path, data: bytes = b"module", mode: int = 0o644) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


def sha256(data: bytes = b"module") -> str:
    return hashlib.sha256(data).hexdigest()


def test_every_module_is_listed_with_hash_owner_and_mode(staging: Path) -> None:
    put(staging / "b.jar", b"jar", 0o600)
    os.chown(put(staging / "a.so"), 65534, 65533)
    census = take_census(staging, taken_at=TAKEN_AT)
    assert (census.directory, census.taken_at) == (str(staging), TAKEN_AT)
    assert census.modules == (
        CensusEntry("a.so", sha256(), 65534, 65533, 0o644),
        CensusEntry("b.jar", sha256(b"jar"), 0, 0, 0o600),
    )


def _a_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _a_dangling_link(path: Path) -> None:
    path.symlink_to("/nowhere")


def _a_directory(path: Path) -> None:
    path.mkdir()


def _a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_a_link, _a_dangling_link, _a_directory, _a_pipe])
def test_what_is_no_file_is_no_module_and_does_not_hang_the_census(staging: Path, make: Callable[[Path], None]) -> None:
    make(staging / "x.so")
    put(staging / "a.so")
    assert [entry.name for entry in take_census(staging, taken_at=TAKEN_AT).modules] == ["a.so"]


def test_other_files_are_left_out(staging: Path) -> None:
    put(staging / "README")
    put(staging / "a.so.bak")
    assert take_census(staging, taken_at=TAKEN_AT).modules == ()


@pytest.mark.parametrize(
    ("owner", "mode"),
    [
        pytest.param(65534, 0o755, id="somebody else's"),
        pytest.param(0, 0o775, id="writable by group"),
        pytest.param(0, 0o757, id="writable by others"),
        pytest.param(0, 0o1777, id="sticky and writable by all"),
    ],
)
def test_a_directory_in_which_others_can_exchange_files_gives_no_census(staging: Path, owner: int, mode: int) -> None:
    staging.chmod(mode)
    os.chown(staging, owner, 0)
    with pytest.raises(NodeUnreadable, match="must belong to root and be writable by root only"):
        take_census(staging, taken_at=TAKEN_AT)


def test_a_directory_that_is_not_there_gives_no_census(tmp_path: Path) -> None:
    with pytest.raises(NodeUnreadable, match="cannot be read: No such file or directory"):
        take_census(tmp_path / "opt", taken_at=TAKEN_AT)


@pytest.mark.parametrize(
    ("owner", "mode", "objection"),
    [
        pytest.param(0, 0o644, "", id="root's alone"),
        pytest.param(0, 0o600, "", id="root's only to read"),
        pytest.param(65534, 0o644, "belongs to user 65534, not to root", id="somebody else's"),
        pytest.param(0, 0o664, "has mode 0664, so others than root may write to it", id="writable by group"),
        pytest.param(0, 0o646, "has mode 0646, so others than root may write to it", id="writable by others"),
    ],
)
def test_bytes_that_others_can_exchange_are_not_vouched_for(
    staging: Path, owner: int, mode: int, objection: str
) -> None:
    path = put(staging / "a.so")
    os.chown(path, owner, 0)
    path.chmod(mode)
    said = take_census(staging, taken_at=TAKEN_AT).objection_to(sha256())
    assert said.endswith(objection)
    assert bool(said) == bool(objection)


def test_bytes_that_are_not_in_the_directory_are_not_vouched_for(staging: Path) -> None:
    put(staging / "a.so")
    assert "does not hold these bytes" in take_census(staging, taken_at=TAKEN_AT).objection_to(sha256(b"other"))


def test_one_sound_copy_is_enough(staging: Path) -> None:
    put(staging / "a.so", mode=0o666)
    put(staging / "b.so")
    assert take_census(staging, taken_at=TAKEN_AT).objection_to(sha256()) == ""
