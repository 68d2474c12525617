"""One look at a service: which bytes its main process runs, since when, and whether that is evidence yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pqcota_provision.errors import NodeUnreadable
from pqcota_provision.plan.timestamp import NANOS_PER_SECOND, Timestamp
from pqcota_provision.proof.configuration import Service
from pqcota_provision.proof.durations import format_duration
from pqcota_provision.proof.node import MappedFile, Moment, Node, UnitState

# A JVM maps the directory of a JAR, not its code.
_NEVER_EXECUTABLE = ".jar"


@dataclass(frozen=True, slots=True)
class LiveBuild:
    """What makes a live build the same at a later look: binding, invocation, main process and mapped file."""

    service: Service
    invocation_id: str
    main_pid: int
    start_time: int
    file: MappedFile


@dataclass(frozen=True, slots=True)
class Evidence:
    """A build that met every condition: the hash of its mapped bytes, and since when they have run."""

    sha256: str
    running_since: Timestamp


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a service found.

    ``live`` is None where the look did not get as far as a mapped module. There is either evidence or an
    obstacle, a clause that says which condition is not met.
    """

    service: Service
    live: LiveBuild | None = None
    evidence: Evidence | None = None
    obstacle: str = ""


def look_at(service: Service, after: int, node: Node, probe: Callable[[str], str | None]) -> Look:
    """Look at a service's live build and judge it: it must have run for ``after`` seconds, and be ready.

    Raises nothing: what cannot be seen is an obstacle.
    """
    live: LiveBuild | None = None
    try:
        unit = node.unit(service.unit)
        if obstacle := _unit_obstacle(service, unit):
            return Look(service, obstacle=obstacle)
        live, obstacle = _find_live_build(service, unit, node)
        if live is None:
            return Look(service, obstacle=obstacle)
        now = node.now()
        youngest, age = _age_of(live, unit, now)
        if age < after * NANOS_PER_SECOND:
            shown = format_duration(age // NANOS_PER_SECOND)
            return Look(service, live, obstacle=f"{youngest} for {shown} of {format_duration(after)}")
        sha256 = node.sha256(live.file)
        if service.ready and (answer := probe(service.ready)):
            return Look(service, live, obstacle=f"its ready probe {service.ready} {answer}")
        if not is_still_live(live, node):
            return Look(service, live, obstacle="it changed while it was looked at")
    except NodeUnreadable as unreadable:
        return Look(service, live, obstacle=str(unreadable))
    return Look(service, live, Evidence(sha256, Timestamp.from_nanoseconds(now.wall - age)))


def is_still_live(live: LiveBuild, node: Node) -> bool:
    """Tell whether the same process of the same invocation still has the same file mapped."""
    try:
        unit = node.unit(live.service.unit)
        return not _unit_obstacle(live.service, unit) and _find_live_build(live.service, unit, node)[0] == live
    except NodeUnreadable:
        return False


def _unit_obstacle(service: Service, unit: UnitState) -> str:
    if unit.load_state != "loaded":
        return f"systemd has no unit {service.unit} to run ({unit.load_state})"
    if unit.active_state != "active":
        return f"{service.unit} is {unit.active_state}, not active"
    if not unit.main_pid:
        return f"{service.unit} has no main process"
    if not unit.invocation_id or not unit.active_enter:
        return f"systemd does not tell since when {service.unit} is active"
    return ""


def _find_live_build(service: Service, unit: UnitState, node: Node) -> tuple[LiveBuild | None, str]:
    start_time = node.start_time(unit.main_pid)
    mapped = node.mapped_files(unit.main_pid, service.module)
    process = f"the main process of {service.unit}"
    if not mapped:
        return None, f"{process} has not mapped {service.module}"
    if len(mapped) > 1:
        return None, f"{process} has mapped {len(mapped)} different files as {service.module}"
    if not mapped[0].executable and not service.module.endswith(_NEVER_EXECUTABLE):
        return None, f"{process} has mapped {service.module} as data only, not as code"
    return LiveBuild(service, unit.invocation_id, unit.main_pid, start_time, mapped[0]), ""


def _age_of(live: LiveBuild, unit: UnitState, now: Moment) -> tuple[str, int]:
    """Return how long unit, process and bytes have all been what they are, and which of them is the youngest."""
    ages = {
        f"{live.service.unit} has been active": now.monotonic - unit.active_enter,
        "its main process has run": now.boot - live.start_time,
        f"{live.service.module} has been untouched": now.wall - live.file.identity.untouched_since,
    }
    return min(ages.items(), key=lambda item: item[1])
