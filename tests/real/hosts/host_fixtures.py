"""Fixtures for tests on throwaway hosts; each test has its own, so that none sees what another left."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ansible_project import MakeProject, project_maker
from fleet import Fleet, NamespacesRefused, made_keys

from available import needs, skip_or_fail

NEEDED_COMMANDS = ("ansible-playbook", "ip", "mount", "nsenter", "setpriv", "ssh", "ssh-keygen", "sudo", "unshare")
NEEDED_FILES = ("/usr/sbin/sshd", "/usr/bin/python3")


@pytest.fixture(scope="session")
def host_keys() -> Iterator[Path]:
    """The key pairs of this test run, in a directory that goes with it; skips where no hosts can be made."""
    if os.geteuid() != 0:
        skip_or_fail("hosts in network namespaces need root")
    for command in NEEDED_COMMANDS:
        needs(command)
    for path in NEEDED_FILES:
        if not Path(path).exists():
            skip_or_fail(f"{path} is not installed")
    with tempfile.TemporaryDirectory(prefix="pqcota-keys-") as directory:
        keys = made_keys(Path(directory))
        try:
            with closing(Fleet(keys)) as attempt:
                attempt.add("attempt")
        except NamespacesRefused as refusal:
            skip_or_fail(str(refusal))
        yield keys


@pytest.fixture
def make_project(host_keys: Path, tmp_path: Path) -> Iterator[MakeProject]:
    """A function that makes hosts of the names given and an operator's directory with their inventory."""
    with project_maker(host_keys, tmp_path) as make:
        yield make
