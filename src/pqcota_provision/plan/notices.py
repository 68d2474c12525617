"""Notices: what a plan leaves out or will not bring about, as data (SPEC 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from pqcota_provision.plan.approvals import signature_labels
from pqcota_provision.plan.evidence import evidence_problems
from pqcota_provision.plan.model import FinalizedPlan, RemediationAction
from pqcota_provision.text import quote


class NoticeKind(Enum):
    """A blank counts towards exit status 3, an advice does not."""

    BLANK = "blank"
    ADVICE = "advice"


class NoticeId(Enum):
    """The stable ids of all notices."""

    PLAN_ID_MISSING = "plan-id-missing"
    RULESET_MISSING = "ruleset-missing"
    FINALIZED_AT_MISSING = "finalized-at-missing"
    FINDING_MISSING = "finding-missing"
    SNAPSHOT_MISSING = "snapshot-missing"
    REFERENCE_INVALID = "reference-invalid"
    REFERENCE_UNRESOLVED = "reference-unresolved"
    LEVEL_UNSET = "level-unset"
    ACTIVATE_MISSING = "activate-missing"
    RESTART_MISSING = "restart-missing"
    DEACTIVATE_MISSING = "deactivate-missing"
    TARGET_UNSET = "target-unset"
    TARGET_SIGNATURE = "target-signature"
    TARGET_NO_GROUP = "target-no-group"
    PROVIDER_CLASS_UNKNOWN = "provider-class-unknown"
    FRAGMENTS_SPLIT = "fragments-split"
    PROVIDER_SHAPE = "provider-shape"
    RUNTIME_UNSUPPORTED = "runtime-unsupported"
    VARIABLE_CLASH = "variable-clash"
    FRAGMENT_INERT = "fragment-inert"
    FRAGMENT_HARMFUL = "fragment-harmful"
    PROVIDER_SLOT_TAKEN = "provider-slot-taken"
    MANUAL_STEP = "manual-step"
    APPROVAL_LABEL = "approval-label"


_ADVICE = frozenset((NoticeId.PROVIDER_SLOT_TAKEN, NoticeId.MANUAL_STEP, NoticeId.APPROVAL_LABEL))


class Notice(NamedTuple):
    """One notice: ``sentence`` says what will not happen, ``remedy`` how to mend it.

    ``action`` and ``node`` name what it is about, and are empty for the plan as a whole.
    """

    id: NoticeId
    sentence: str
    remedy: str
    action: str = ""
    node: str = ""

    @property
    def kind(self) -> NoticeKind:
        """Whether the notice is a blank or an advice."""
        return NoticeKind.ADVICE if self.id in _ADVICE else NoticeKind.BLANK


def has_blanks(notices: Iterable[Notice]) -> bool:
    """Tell whether any notice is a blank."""
    return any(notice.kind is NoticeKind.BLANK for notice in notices)


def action_notice(action: RemediationAction, notice_id: NoticeId, sentence: str, remedy: str) -> Notice:
    """Return a notice about one action and its node."""
    return Notice(notice_id, sentence, remedy, action=action.id, node=action.target_node_id)


def plan_notices(plan: FinalizedPlan) -> Iterator[Notice]:
    """Yield the notices about the plan's fields, evidence and approval entries; the same in both directions."""
    if not plan.id:
        yield Notice(
            NoticeId.PLAN_ID_MISSING,
            "The plan has no id, so its records and its rollback cannot be traced to it.",
            "Give the plan an id before it is approved.",
        )
    if not plan.ruleset_version:
        yield Notice(
            NoticeId.RULESET_MISSING,
            "The plan has no rulesetVersion, so nobody can tell by which rules it was judged.",
            "Set rulesetVersion before the plan is approved.",
        )
    if plan.finalized_at is None:
        yield Notice(
            NoticeId.FINALIZED_AT_MISSING,
            "The plan has no finalizedAt, so nobody can tell when it was approved.",
            "Let pqcota-approve finalize the plan; it sets the time and signs it.",
        )
    yield from approval_label_notices(plan)
    for action in plan.actions:
        yield from _evidence_notices(plan, action)


def approval_label_notices(plan: FinalizedPlan) -> Iterator[Notice]:
    """Yield a notice for each approval entry that is no signature."""
    for entry in signature_labels(plan):
        yield Notice(
            NoticeId.APPROVAL_LABEL,
            f"The approval entry {quote(entry, 48)} is a label, not a signature; it proves nothing.",
            "Remove the label, or have that person approve with pqcota-approve.",
        )


def _evidence_notices(plan: FinalizedPlan, action: RemediationAction) -> Iterator[Notice]:
    if not action.finding_id:
        yield action_notice(
            action,
            NoticeId.FINDING_MISSING,
            "The action names no findingId, so neither the reason for it nor the affected apps can be traced.",
            "Name the finding that the action answers to.",
        )
    if not action.evidence_sources and not plan.derived_from_snapshot_id:
        yield action_notice(
            action,
            NoticeId.SNAPSHOT_MISSING,
            "Neither the action nor the plan names a snapshot, so there is no basis to compare the node with.",
            "Add evidenceSources to the action, or derivedFromSnapshotId to the plan.",
        )
    for problem in evidence_problems(action):
        notice_id = NoticeId.FINDING_MISSING if problem.names_no_finding else NoticeId.REFERENCE_INVALID
        yield action_notice(
            action,
            notice_id,
            f"evidenceSources[{problem.index}] {problem.reason}, so it will not be looked up.",
            "Correct that source; docs/plan-fields.md describes a reference by id and by content.",
        )
