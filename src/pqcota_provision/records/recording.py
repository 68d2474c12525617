"""From a plan and a history to the records that an undo starts from (SPEC 10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pqcota_provision.plan.evidence import evidence_problems
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    FinalizedPlan,
    ProvisioningRecord,
    ProvisioningStatus,
    RemediationAction,
    SnapshotReference,
    SnapshotResolution,
)
from pqcota_provision.plan.notices import Notice, NoticeId, action_notice
from pqcota_provision.records.history import ContentKey
from pqcota_provision.text import join_names, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pqcota_provision.plan.timestamp import Timestamp
    from pqcota_provision.records.history import History
    from pqcota_provision.records.snapshot import Snapshot

_NODES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Recording:
    """The records of a plan, one an action, and what is to be said about them.

    ``notices`` are blanks; ``remarks`` are sentences about what the history lacks.
    """

    records: tuple[ProvisioningRecord, ...]
    notices: tuple[Notice, ...]
    remarks: tuple[str, ...]
    resolved: int
    unresolved: int


def record_plan(plan: FinalizedPlan, *, history: History, now: Timestamp) -> Recording:
    """Return the records of a plan that is about to be carried out at ``now``; nothing is kept yet.

    Raises RecordsUnavailable if the history cannot be read.
    """
    findings = _look_up(plan, history)
    records = []
    notices: list[Notice] = []
    resolved = unresolved = 0
    for action in plan.actions:
        outcomes = list(_resolve(plan, action, findings))
        for outcome in outcomes:
            if outcome.found is not None:
                resolved += 1
            else:
                unresolved += 1
            if outcome.remedy:
                notices.append(_unresolved_notice(action, outcome))
        records.append(_record(plan, action, outcomes, findings, now))
    return Recording(tuple(records), tuple(notices), tuple(_remarks(plan, findings)), resolved, unresolved)


@dataclass(frozen=True, slots=True)
class _Looked:
    """Everything a plan's references and nodes were found as."""

    organization: str
    exists: bool
    latest: Mapping[str, Snapshot]
    by_id: Mapping[str, Snapshot]
    by_content: Mapping[ContentKey, Snapshot]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One resolution; a remedy is there where something was looked up in vain."""

    resolution: SnapshotResolution
    what: str
    found: Snapshot | None = None
    remedy: str = ""


def _look_up(plan: FinalizedPlan, history: History) -> _Looked:
    if not history.exists():
        return _Looked(history.organization, False, {}, {}, {})
    nodes: dict[str, None] = {}
    ids: dict[str, None] = {}
    contents: dict[ContentKey, None] = {}
    for action in plan.actions:
        nodes[action.target_node_id] = None
        if not action.evidence_sources and plan.derived_from_snapshot_id:
            ids[plan.derived_from_snapshot_id] = None
        malformed = {problem.index for problem in evidence_problems(action)}
        for index, source in enumerate(action.evidence_sources):
            reference = source.snapshot
            if index in malformed or reference is None:
                continue
            if reference.snapshot_id is not None:
                ids[reference.snapshot_id] = None
            elif (key := _content_key(reference)) is not None:
                contents[key] = None
    return _Looked(
        history.organization,
        True,
        history.latest(tuple(nodes)),
        history.by_id(tuple(ids)) if ids else {},
        history.by_content(tuple(contents)) if contents else {},
    )


def _content_key(reference: SnapshotReference) -> ContentKey | None:
    content = reference.content
    if content is None:
        return None
    return ContentKey(reference.source_node_id, content.ruleset_version, content.digest)


def _resolve(plan: FinalizedPlan, action: RemediationAction, looked: _Looked) -> Iterator[_Outcome]:
    if not action.evidence_sources:
        if plan.derived_from_snapshot_id:
            yield _resolve_legacy(plan.derived_from_snapshot_id, action, looked)
        return
    malformed = {problem.index: problem.reason for problem in evidence_problems(action)}
    for index, source in enumerate(action.evidence_sources):
        reference = source.snapshot
        if index in malformed or reference is None:
            yield _Outcome(
                SnapshotResolution(
                    submitted=reference, reason=f"not looked up: the evidence source {malformed[index]}"
                ),
                f"evidenceSources[{index}]",
            )
        else:
            yield _resolve_reference(f"evidenceSources[{index}]", source, reference, looked)


def _resolve_reference(
    what: str, source: ActionEvidenceSource, reference: SnapshotReference, looked: _Looked
) -> _Outcome:
    node = quote(reference.source_node_id)
    if reference.snapshot_id is not None:
        shown = f"snapshot {quote(reference.snapshot_id)}"
        snapshot = looked.by_id.get(reference.snapshot_id)
        missing = f"there is no {shown} in {_where(looked)}"
        remedy = "Correct the snapshotId, or bring that snapshot into the history with pqcota-inventory."
    else:
        key = _content_key(reference)
        snapshot = None if key is None else looked.by_content.get(key)
        missing = f"no snapshot of the node {node} in {_where(looked)} has that content under that rulesetVersion"
        remedy = "Correct the content reference, or bring that snapshot into the history with pqcota-inventory."
    if snapshot is None:
        reason = missing
    elif snapshot.node_id != reference.source_node_id:
        reason = f"the snapshot {quote(snapshot.id)} is one of the node {quote(snapshot.node_id)}, not of {node}"
        remedy = "Pair the snapshot with its own node: correct sourceNodeId or snapshotId."
    elif source.finding_id not in snapshot.app_keys:
        reason, remedy = _finding_absent(snapshot, source.finding_id)
    else:
        return _Outcome(SnapshotResolution(submitted=reference, resolved_snapshot_id=snapshot.id), what, found=snapshot)
    return _Outcome(SnapshotResolution(submitted=reference, reason=reason), what, remedy=remedy)


def _resolve_legacy(snapshot_id: str, action: RemediationAction, looked: _Looked) -> _Outcome:
    what = "derivedFromSnapshotId"
    snapshot = looked.by_id.get(snapshot_id)
    if snapshot is None:
        reason = f"there is no snapshot {quote(snapshot_id)} in {_where(looked)}"
        remedy = "Correct derivedFromSnapshotId, or bring that snapshot into the history with pqcota-inventory."
    elif action.finding_id and action.finding_id not in snapshot.app_keys:
        reason, remedy = _finding_absent(snapshot, action.finding_id)
    else:
        resolution = SnapshotResolution(legacy_plan_snapshot_id=snapshot_id, resolved_snapshot_id=snapshot.id)
        return _Outcome(resolution, what, found=snapshot)
    return _Outcome(SnapshotResolution(legacy_plan_snapshot_id=snapshot_id, reason=reason), what, remedy=remedy)


def _finding_absent(snapshot: Snapshot, finding_id: str) -> tuple[str, str]:
    unreadable = f"; {_findings(snapshot.unreadable)} in it could not be read" if snapshot.unreadable else ""
    return (
        f"the snapshot {quote(snapshot.id)} does not hold the finding {quote(finding_id)}{unreadable}",
        "Name the snapshot that the finding was made in, or the finding's id as it stands there.",
    )


def _where(looked: _Looked) -> str:
    history = f"the history of the organization {quote(looked.organization)}"
    return history if looked.exists else f"{history}, which this database does not hold"


def _unresolved_notice(action: RemediationAction, outcome: _Outcome) -> Notice:
    return action_notice(
        action,
        NoticeId.REFERENCE_UNRESOLVED,
        f"{outcome.what} is kept unresolved: {outcome.resolution.reason}.",
        outcome.remedy,
    )


def _record(
    plan: FinalizedPlan, action: RemediationAction, outcomes: list[_Outcome], looked: _Looked, now: Timestamp
) -> ProvisioningRecord:
    latest = looked.latest.get(action.target_node_id)
    return ProvisioningRecord(
        id=f"{plan.id}:{action.id}",
        node_id=action.target_node_id,
        app_keys=_app_keys(action, latest, outcomes),
        action_id=action.id,
        plan_id=plan.id,
        before=None if latest is None else latest.state,
        status=ProvisioningStatus.STAGED,
        at=now,
        snapshot_resolutions=tuple(outcome.resolution for outcome in outcomes),
    )


def _app_keys(action: RemediationAction, latest: Snapshot | None, outcomes: list[_Outcome]) -> tuple[str, ...]:
    # An id may stand for something else on another node, so no other node's snapshot is asked.
    for snapshot in (latest, *(outcome.found for outcome in outcomes)):
        if (
            snapshot is not None
            and snapshot.node_id == action.target_node_id
            and action.finding_id in snapshot.app_keys
        ):
            return snapshot.app_keys[action.finding_id]
    return ()


def _remarks(plan: FinalizedPlan, looked: _Looked) -> Iterator[str]:
    if not looked.exists:
        yield (
            "the database holds no history (no table pqcota_snapshots), so the records say nothing about "
            "what the nodes look like now; pqcota-inventory keeps one."
        )
        return
    targets = dict.fromkeys(action.target_node_id for action in plan.actions)
    unknown = [node for node in targets if node not in looked.latest]
    if unknown:
        yield (
            f"there is no snapshot of {_nodes(unknown)} in {_where(looked)}, so the records say "
            "nothing about what they look like now."
        )
    incomplete = [node for node in targets if node in looked.latest and looked.latest[node].unreadable]
    if incomplete:
        count = sum(looked.latest[node].unreadable for node in incomplete)
        yield (
            f"{_findings(count)} in the latest snapshots of {_nodes(incomplete)} "
            "could not be read, so what the records say about these nodes is incomplete."
        )


def _findings(count: int) -> str:
    return f"{count} finding{'' if count == 1 else 's'}"


def _nodes(node_ids: list[str]) -> str:
    return join_names([quote(node_id) for node_id in node_ids], _NODES_SHOWN)
