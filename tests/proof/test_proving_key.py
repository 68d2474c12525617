"""The proving key: out of reach of everybody but root, or not used at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from proving_lab import CANARY_KEY, OTHER_KEY

from pqcota_provision.errors import KeyUnusable
from pqcota_provision.proof.provingkey import read_proving_key


@pytest.fixture
def key_file(tmp_path: Path, skip_or_fail: Callable[[str], NoReturn]) -> Path:
    if os.geteuid() != 0:
        skip_or_fail("only root can make a file that belongs to root")
    path = tmp_path / "proving.key"
    path.write_text(CANARY_KEY.to_text() + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_key_that_only_root_can_read_is_used(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    assert read_proving_key(key_file).public == CANARY_KEY.public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o644, 0o666, 0o601])
def test_a_key_that_others_may_touch_is_refused_with_its_mode_and_the_right_one(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(KeyUnusable, match=f"has mode {mode:04o}; it must be 0600 or 0400"):
        read_proving_key(key_file)


def test_a_key_that_is_not_roots_is_refused(key_file: Path) -> None:
    os.chown(key_file, 65534, 0)
    with pytest.raises(KeyUnusable, match="belongs to user 65534; it must belong to root"):
        read_proving_key(key_file)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param(f"PQCOTA_SIGN_KEY={CANARY_KEY.to_text()}", id="a shell assignment"),
        pytest.param(CANARY_KEY.public.to_text(), id="a public key"),
        pytest.param(CANARY_KEY.to_text()[:44] + OTHER_KEY.to_text()[44:], id="two halves"),
        pytest.param("\xff" * 88, id="no ASCII"),
        pytest.param("A" * 100_000, id="large"),
    ],
)
def test_what_is_no_key_is_refused_without_being_shown(key_file: Path, content: str) -> None:
    key_file.write_text(content)
    with pytest.raises(KeyUnusable) as caught:
        read_proving_key(key_file)
    assert str(key_file) in str(caught.value)
    assert not content or content not in str(caught.value)


def _remove(path: Path) -> None:
    path.unlink()


def _make_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


def _make_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("change", [_remove, _make_a_directory, _make_a_pipe])
def test_a_key_that_is_no_file_is_named_and_does_not_hang(key_file: Path, change: Callable[[Path], None]) -> None:
    change(key_file)
    with pytest.raises(KeyUnusable, match="cannot be read"):
        read_proving_key(key_file)
