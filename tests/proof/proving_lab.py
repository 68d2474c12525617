"""A node small enough for a test: real modules in real processes, and systemd's words about them as recorded."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.proof.census import take_census
from pqcota_provision.proof.configuration import Service, load_policy
from pqcota_provision.proof.node import LinuxNode, Moment
from pqcota_provision.proof.proving import ProvingPass
from pqcota_provision.proof.provingkey import read_proving_key
from pqcota_provision.proof.state import NodeState
from pqcota_provision.proof.store import DirectoryProofStore, ProofStore
from pqcota_provision.proof.verification import judge

DATA = Path(__file__).parent.parent / "data" / "proof"
RECORDED_ACTIVE = (DATA / "systemctl-show-active.txt").read_text()
RECORDED_NOT_FOUND = (DATA / "systemctl-show-not-found.txt").read_text()

CANARY_KEY = PrivateKey(bytes(range(32)))
OTHER_KEY = PrivateKey(bytes(range(1, 33)))

HOUR = 3600
NANOS = 10**9

_LOADER = """
import ctypes, sys
module = ctypes.CDLL(sys.argv[1])
print("loaded", flush=True)
sys.stdin.read()
"""
_READER = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print("loaded", flush=True)
sys.stdin.read()
"""


@contextmanager
def open_lab(
    directory: Path,
    factory: pytest.TempPathFactory,
    needs: Callable[[str], str],
    skip_or_fail: Callable[[str], NoReturn],
) -> Iterator[Lab]:
    """Give a test its lab, or skip it where there is no compiler or no root."""
    if os.geteuid() != 0:
        skip_or_fail("only root may read what another process has mapped")
    lab = Lab(directory, compile_modules(factory, needs("gcc")))
    try:
        yield lab
    finally:
        lab.close()


def compile_modules(factory: pytest.TempPathFactory, compiler: str) -> dict[str, Path]:
    """Return three builds of one module, compiled once a run."""
    directory = factory.getbasetemp() / "compiled-modules"
    builds = {build: directory / f"{build}.so" for build in ("first", "second", "third")}
    if not directory.exists():
        directory.mkdir()
        for build, path in builds.items():
            compile_module(compiler, path, build)
    return builds


def compile_module(compiler: str, path: Path, build: str) -> Path:
    """Build a shared library whose bytes differ from build to build."""
    source = f'const char pqcota_build[] = "{build}"; int pqcota_answer(void) {{ return pqcota_build[0]; }}\n'
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O0", "-x", "c", "-", "-o", str(path)],
        input=source.encode(),
        check=True,
        capture_output=True,
    )
    return path


class Daemon:
    """A process that has a file mapped until it is stopped."""

    def __init__(self, module: Path, *, as_data: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _READER if as_data else _LOADER, str(module)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"loaded\n"

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.communicate()


@dataclass
class FakeSystemd:
    """Answers as ``systemctl show`` was recorded to, for units whose processes the test started."""

    units: dict[str, dict[str, str]] = field(default_factory=dict)

    def started(self, unit: str, pid: int) -> None:
        """Note a new invocation of the unit."""
        self.units[unit] = {
            "MainPID": str(pid),
            "InvocationID": uuid.uuid4().hex,
            "ActiveEnterTimestampMonotonic": str(time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000),
        }

    def change(self, unit: str, **values: str) -> None:
        self.units[unit].update(values)

    def show(self, unit: str) -> str:
        if unit not in self.units:
            return RECORDED_NOT_FOUND
        text = RECORDED_ACTIVE
        for name, value in self.units[unit].items():
            text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
            assert count == 1
        return text


@dataclass(frozen=True)
class Ahead:
    """How many seconds each clock is ahead: of files, of units, of processes."""

    wall: int = 0
    monotonic: int = 0
    boot: int = 0


class Lab:
    """A staging directory, a service that runs a module from it, and a clock that can be put forward."""

    def __init__(self, directory: Path, modules: dict[str, Path]) -> None:
        self.staging = directory / "opt"
        self.staging.mkdir(mode=0o755)
        self.module = self.staging / "oqsprovider.so"
        self.modules = modules
        self.systemd = FakeSystemd()
        self.ahead = Ahead()
        self.node = LinuxNode(clock=self.present, show_unit=self.systemd.show)
        self.service = Service(
            app="payments", unit="payments.service", module=str(self.module), provider="oqsprovider", version="0.8.0"
        )
        self._daemons: dict[str, Daemon] = {}

    def present(self) -> Moment:
        """The present, put forward on each clock as the test asked for."""
        return Moment(
            time.time_ns() + self.ahead.wall * NANOS,
            time.clock_gettime_ns(time.CLOCK_MONOTONIC) + self.ahead.monotonic * NANOS,
            time.clock_gettime_ns(time.CLOCK_BOOTTIME) + self.ahead.boot * NANOS,
        )

    def let_pass(self, seconds: int) -> None:
        ahead = self.ahead
        self.ahead = Ahead(ahead.wall + seconds, ahead.monotonic + seconds, ahead.boot + seconds)

    def stage(self, build: str, name: str = "oqsprovider.so") -> Path:
        """Put a build into the staging directory the way a deployment does: beside, then renamed over."""
        target = self.staging / name
        beside = self.staging / f".{name}.new"
        beside.write_bytes(self.modules[build].read_bytes())
        beside.chmod(0o644)
        beside.rename(target)
        return target

    def start(self, unit: str = "payments.service", *, module: Path | None = None, as_data: bool = False) -> Daemon:
        """Start the unit anew: another process, another invocation."""
        self.stop(unit)
        daemon = self._daemons[unit] = Daemon(module or self.module, as_data=as_data)
        self.systemd.started(unit, daemon.pid)
        return daemon

    def put_clocks_right(self) -> None:
        """Take back what was let pass, so that what starts from here on is seen to be new."""
        self.ahead = Ahead()

    def stop(self, unit: str = "payments.service") -> None:
        daemon = self._daemons.pop(unit, None)
        if daemon is not None:
            daemon.stop()

    def close(self) -> None:
        for unit in list(self._daemons):
            self.stop(unit)


class Canary:
    """A node with its state, its store and its policy, and every word a pass said."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab = lab
        self.directory = directory
        self.state_directory = directory / "state"
        self.state = NodeState(self.state_directory, "acme")
        self.store: ProofStore = DirectoryProofStore(directory / "proofs", "acme")
        self.policy = f"after: 1h\nprove: {{prover: canary-1, key_file: {directory}/key, apps: [payments]}}\n"
        self.services: tuple[Service, ...] = (lab.service,)
        self.key_file = directory / "key"
        self.key_file.write_text(CANARY_KEY.to_text())
        self.key_file.chmod(0o600)
        self.said: list[str] = []

    def proving_pass(self, *, hourly: bool = False) -> ProvingPass:
        return ProvingPass(
            node=self.lab.node,
            state=self.state,
            store=self.store,
            read_services=self.read_services,
            read_policy=lambda: load_policy(self.policy),
            take_census=lambda taken_at: take_census(self.lab.staging, taken_at=taken_at),
            read_key=lambda path: read_proving_key(Path(path)),
            probe=lambda _: None,
            platform="linux/amd64",
            say=self.said.append,
            hourly=hourly,
        )

    def read_services(self) -> tuple[Service, ...]:
        return self.services

    def run(self, change: Callable[[], int] = lambda: 0, *, hourly: bool = False) -> list[str]:
        """Run one pass around a change and return what it said."""
        self.said.clear()
        self.proving_pass(hourly=hourly).around(change)
        return list(self.said)

    def sha256(self, build: str) -> str:
        return hashlib.sha256(self.lab.modules[build].read_bytes()).hexdigest()

    def healthy(self) -> list[str]:
        """The builds in the healthy history, by the name the lab knows them by."""
        names = {self.sha256(build): build for build in self.lab.modules}
        return [names[build.sha256] for build in self.state.healthy_builds("payments")]

    def proven(self) -> list[str]:
        """The builds with a proof that holds."""
        names = {self.sha256(build): build for build in self.lab.modules}
        root = self.directory / "proofs"
        return [
            names[stored.sha256]
            for stored in (self.store.entries() if root.exists() else ())
            if judge(stored, {"canary-1": CANARY_KEY.public}).holds
        ]
