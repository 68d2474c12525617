"""A stored record as lines that a person reads at a glance (SPEC 9)."""

from __future__ import annotations

from collections.abc import Iterator

from pqcota_provision.plan.model import (
    CryptoState,
    ProvisioningRecord,
    ProvisioningStatus,
    SnapshotReference,
    SnapshotResolution,
    wire_name,
)
from pqcota_provision.records.store import StoredRecord
from pqcota_provision.text import printable

_LABEL_WIDTH = 11


def record_lines(stored: StoredRecord) -> Iterator[str]:
    """Yield the lines of one record: what it is, then what it says, a line a thing.

    Whatever cannot be seen, or would steer a terminal, is escaped.
    """
    record = stored.record
    time = record.at or stored.stored_at
    yield "  ".join((_shown(record.id), status_name(record), *([time.to_json_text()] if time else [])))
    for label, text in _details(record):
        yield f"  {label.ljust(_LABEL_WIDTH)}{text}"
    if stored.newer_json is not None:
        yield f"  {'more'.ljust(_LABEL_WIDTH)}a newer version wrote this record; --json shows all of it"


def status_name(record: ProvisioningRecord) -> str:
    """Return a record's status without its prefix, or its number where it has no name."""
    return wire_name(record.status).removeprefix(ProvisioningStatus.prefix())


def _details(record: ProvisioningRecord) -> Iterator[tuple[str, str]]:
    yield "node", _shown(record.node_id)
    yield "plan", _shown(record.plan_id)
    yield "apps", _listed(record.app_keys) or "none known"
    yield from _state("before", record.before, "not known: the history held no snapshot of the node")
    for resolution in record.snapshot_resolutions:
        yield "snapshot", _resolution(resolution)
    if record.after is not None:
        yield from _state("after", record.after, "")
    if record.note:
        yield "note", printable(record.note)


def _state(label: str, state: CryptoState | None, if_unknown: str) -> Iterator[tuple[str, str]]:
    if state is None:
        yield label, if_unknown
        return
    yield label, _listed(state.modules) or "no module found"
    if state.provider_chain:
        yield "", "provider order " + ", ".join(map(printable, state.provider_chain))
    if state.config_digest:
        yield "", f"configuration {printable(state.config_digest)}"
    if state.config_snapshot_ref:
        yield "", f"configuration kept as {printable(state.config_snapshot_ref)}"


def _resolution(resolution: SnapshotResolution) -> str:
    if resolution.submitted is not None:
        submitted = _reference(resolution.submitted)
    elif resolution.legacy_plan_snapshot_id is not None:
        submitted = f"the plan's {_shown(resolution.legacy_plan_snapshot_id)}"
    else:
        submitted = "no reference"
    if resolution.resolved_snapshot_id:
        return f"{printable(resolution.resolved_snapshot_id)} (from {submitted})"
    return f"UNRESOLVED {submitted}: {printable(resolution.reason) or 'no reason was kept'}"


def _reference(reference: SnapshotReference) -> str:
    node = _shown(reference.source_node_id)
    if reference.snapshot_id is not None:
        return f"id {_shown(reference.snapshot_id)} of {node}"
    if reference.content is not None:
        ruleset = _shown(reference.content.ruleset_version)
        return f"content {_shown(reference.content.digest)} under {ruleset} of {node}"
    return f"a reference to {node} that names no snapshot"


def _listed(items: tuple[str, ...]) -> str:
    return ", ".join(map(printable, items))


def _shown(text: str) -> str:
    return printable(text) or "(none)"
