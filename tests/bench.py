"""What ``make bench`` measures: how soon a small plan is done, and how long and how much memory a large one takes.

Each measurement is a whole process, as a user starts it. A table is printed; the exit status is 1 if a bound is missed.
Where other processes keep every core busy, the clock tells nothing, so then processor time has to keep the bound.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
    SnapshotReference,
)
from pqcota_provision.plan.protojson import dump_message
from pqcota_provision.plan.timestamp import Timestamp

START_UP_RUNS = 21
START_UP_RATIO = 12.0
LARGE = 10_000
LARGER = 100_000
LARGE_RUNS = 3
LARGE_SECONDS = 3.0
LARGE_MEGABYTES = 400.0
# A tenfold plan may cost this much more than ten times as much.
GROWTH = 1.3

COMMAND = Path(sys.executable).with_name("pqcota-provision")
KEY = PrivateKey(bytes(range(32)))
VARIABLES = {"PQCOTA_APPROVAL_KEYS": f"bench={KEY.public.to_text()}"}

HooksOf = Callable[[int], ActivationHooks | None]


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, and the bound it has to keep, if any."""

    what: str
    measured: float
    unit: str
    bound: float | None = None
    remark: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the bound is kept."""
        return self.bound is None or self.measured <= self.bound

    def line(self) -> str:
        """Return the row as it is printed."""
        bound = "" if self.bound is None else f"at most {self.bound:g}"
        verdict = "" if self.bound is None else "kept" if self.is_kept else "MISSED"
        return f"{self.what:<58} {self.measured:>9.3f} {self.unit:<5} {bound:<12} {verdict:<6} {self.remark}".rstrip()


@dataclass(frozen=True)
class Process:
    """What one process took: seconds on the clock, seconds of processor time, and its largest size in memory."""

    seconds: float
    processor_seconds: float
    megabytes: float

    @property
    def judged_seconds(self) -> float:
        """The seconds that have to keep a bound."""
        return self.processor_seconds if is_busy() else self.seconds


def is_busy() -> bool:
    """Tell whether other processes compete for the machine's cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


def run(arguments: Sequence[str | Path]) -> Process:
    """Run a command to its end and measure it; its standard output goes to a file, as with ``> playbook.yml``."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with tempfile.TemporaryFile() as product, tempfile.TemporaryFile() as messages:
        started = time.perf_counter()
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=product,
            stderr=messages,
            env={**environment, **VARIABLES},
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            messages.seek(0)
            raise RuntimeError(f"{arguments} ended in {process.returncode}: {messages.read(2000).decode()}")
    return Process(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def plan_of(actions: int, level: DeployAutomationLevel, hooks_of: HooksOf) -> FinalizedPlan:
    """Return an approved plan that injects a provider on that many nodes, one action each."""
    in_review = FinalizedPlan(
        id="bench",
        status=PlanStatus.IN_REVIEW,
        ruleset_version="rules/1",
        actions=tuple(
            RemediationAction(
                id=f"a{number}",
                target_node_id=f"node-{number}.example.net",
                finding_id=f"f-{number}",
                crypto_runtime=CryptoRuntime.OPENSSL,
                kind=RemediationKind.PROVIDER_INJECT,
                automation_level=level,
                target_algorithm="ML-KEM",
                provider_choice="oqsprovider",
                activation=hooks_of(number),
                evidence_sources=(
                    ActionEvidenceSource(
                        finding_id=f"f-{number}",
                        snapshot=SnapshotReference(
                            source_node_id=f"node-{number}.example.net", snapshot_id=f"snap-{number}"
                        ),
                    ),
                ),
            )
            for number in range(actions)
        ),
    )
    return approve(in_review, "bench", KEY, now=Timestamp(1_700_000_000))


def no_hooks(_: int) -> None:
    """Return nothing: the plan only places files."""


def same_hooks(_: int) -> ActivationHooks:
    """Return the same hooks for every node."""
    return ActivationHooks(
        pre="systemctl is-active --quiet shop",
        activate="install -m 0644 /opt/shop/pqc.conf /etc/systemd/system/shop.service.d/ && systemctl daemon-reload",
        deactivate="rm -f /etc/systemd/system/shop.service.d/pqc.conf && systemctl daemon-reload",
        restart="systemctl restart shop",
    )


def own_hooks(number: int) -> ActivationHooks:
    """Return hooks that no other node has."""
    drop_in = f"/etc/systemd/system/shop-{number}.service.d"
    return ActivationHooks(
        pre=f"systemctl is-active --quiet shop-{number}",
        activate=f"install -m 0644 /opt/shop/pqc.conf {drop_in}/ && systemctl daemon-reload",
        deactivate=f"rm -f {drop_in}/pqc.conf && systemctl daemon-reload",
        restart=f"systemctl restart shop-{number}",
    )


def own_scripts(number: int) -> ActivationHooks:
    """Return hooks of several lines that no other node has."""
    directory = f"/etc/systemd/system/shop-{number}.service.d"
    return ActivationHooks(
        pre=f"set -eu\nsystemctl is-active --quiet shop-{number}\nopenssl version\n",
        activate=f"set -eu\ninstall -d {directory}\nif test -f /opt/shop/pqc.conf; then\n"
        f"  install -m 0644 /opt/shop/pqc.conf {directory}/\nfi\nsystemctl daemon-reload\n",
        deactivate=f"set -eu\nrm -f {directory}/pqc.conf\nsystemctl daemon-reload\n",
        restart=f"set -eu\nsystemctl restart shop-{number}\nsystemctl is-active --quiet shop-{number}\n",
    )


L2, L3 = DeployAutomationLevel.L2_STAGE_INSTALL, DeployAutomationLevel.L3_FULL_AUTO
SHAPES: Mapping[str, tuple[DeployAutomationLevel, HooksOf]] = {
    "L2": (L2, no_hooks),
    "L3, the same hooks": (L3, same_hooks),
    "L3, hooks of each node's own": (L3, own_hooks),
    "L3, scripts of each node's own": (L3, own_scripts),
}


def start_up(directory: Path) -> Iterator[Row]:
    """Compare a plan of one action, approval verified, with an interpreter that does nothing."""
    plan = write(directory, 1, L3, same_hooks)
    idle: list[float] = []
    working: list[float] = []
    # In turns, so that both meet the same load.
    for _ in range(START_UP_RUNS):
        idle.append(run([sys.executable, "-c", "pass"]).seconds)
        working.append(run([COMMAND, plan]).seconds)
    yield Row("python -c pass, median", statistics.median(idle), "s")
    yield Row("one action, approval verified, median", statistics.median(working), "s")
    ratio = statistics.median(working) / statistics.median(idle)
    yield Row("the second as a multiple of the first", ratio, "times", START_UP_RATIO)


def scale(directory: Path) -> Iterator[Row]:
    """Measure large plans of each shape, and how the first grows."""
    processor_seconds: dict[str, float] = {}
    for shape, (level, hooks_of) in SHAPES.items():
        best, megabytes = best_of(write(directory, LARGE, level, hooks_of))
        processor_seconds[shape] = best.processor_seconds
        remark = f"{best.seconds:.2f} s by the clock, {best.processor_seconds:.2f} s of processor time"
        yield Row(f"{LARGE} actions, {shape}", best.judged_seconds, "s", LARGE_SECONDS, remark)
        yield Row(f"{LARGE} actions, {shape}, memory", megabytes, "MB", LARGE_MEGABYTES)
    shape, (level, hooks_of) = next(iter(SHAPES.items()))
    best, megabytes = best_of(write(directory, LARGER, level, hooks_of))
    yield Row(f"{LARGER} actions, {shape}", best.judged_seconds, "s")
    yield Row(f"{LARGER} actions, {shape}, memory", megabytes, "MB")
    growth = best.processor_seconds / processor_seconds[shape]
    yield Row(f"from {LARGE} to {LARGER} actions, processor time", growth, "times", GROWTH * LARGER / LARGE)


def best_of(plan: Path) -> tuple[Process, float]:
    """Return the fastest run, and the most memory that any run took."""
    runs = [run([COMMAND, plan]) for _ in range(LARGE_RUNS)]
    return min(runs, key=lambda done: done.judged_seconds), max(done.megabytes for done in runs)


def write(directory: Path, actions: int, level: DeployAutomationLevel, hooks_of: HooksOf) -> Path:
    """Write an approved plan to a file and return its path."""
    path = directory / "plan.json"
    # In a process of its own: what this one takes up would count as its children's memory.
    writer = multiprocessing.get_context("fork").Process(target=_write, args=(path, actions, level, hooks_of))
    writer.start()
    writer.join()
    if writer.exitcode != 0:
        raise RuntimeError(f"no plan of {actions} actions could be written")
    return path


def _write(path: Path, actions: int, level: DeployAutomationLevel, hooks_of: HooksOf) -> None:
    path.write_text(dump_message(plan_of(actions, level, hooks_of)), "utf-8")


def records() -> Iterator[Row]:
    """Measure the records on a Postgres of their own, where the wheel that brings one is installed."""
    try:
        import bench_records
    except ImportError as error:
        print(f"records are left out: {error}")
        return
    for measurement in bench_records.measure():
        yield Row(measurement.what, measurement.seconds, "s", measurement.limit)


def main() -> int:
    """Print the table; return 1 if a bound is missed."""
    missed = 0
    with tempfile.TemporaryDirectory() as directory:
        for rows in (start_up(Path(directory)), scale(Path(directory)), records()):
            for row in rows:
                print(row.line(), flush=True)
                missed += not row.is_kept
    if missed:
        print(f"{missed} bounds are missed.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
