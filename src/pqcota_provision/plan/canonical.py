"""The bytes an approval signs (SPEC 3)."""

from __future__ import annotations

from pqcota_provision.errors import PlanMalformed
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    ActivationHooks,
    FinalizedPlan,
    RemediationAction,
    wire_name,
)
from pqcota_provision.plan.timestamp import Timestamp

_UNSET_TIME = Timestamp(0)
_NO_HOOKS = ActivationHooks()


def canonical_bytes(plan: FinalizedPlan) -> bytes:
    """Return the plan's canonical form: each field in UTF-8 followed by one NUL byte.

    Raises PlanMalformed if a string itself holds a NUL, since two plans could then share one form, or half
    of a surrogate pair, which UTF-8 cannot hold. A plan that load_plan has read holds neither.
    """
    fields = [
        plan.id,
        wire_name(plan.status),
        plan.scope,
        plan.derived_from_snapshot_id,
        plan.ruleset_version,
        (plan.finalized_at or _UNSET_TIME).to_canonical_text(),
    ]
    for action in plan.actions:
        _add_action(fields, action)
    text = "\0".join(fields) + "\0"
    if text.count("\0") != len(fields):
        raise PlanMalformed("a string of the plan holds a NUL character, so its approval would be ambiguous")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise PlanMalformed("a string of the plan holds half of a surrogate pair, which is no character") from None


def _add_action(fields: list[str], action: RemediationAction) -> None:
    hooks = action.activation or _NO_HOOKS
    fields += (
        action.id,
        action.target_node_id,
        action.finding_id,
        wire_name(action.crypto_runtime),
        wire_name(action.kind),
        wire_name(action.automation_level),
        action.target_algorithm,
        action.provider_choice,
        action.config_artifact,
        action.rollback_note,
        str(action.priority),
        action.provider_class,
        hooks.pre,
        hooks.activate,
        hooks.deactivate,
        hooks.restart,
        str(len(action.evidence_sources)),
    )
    for source in action.evidence_sources:
        _add_evidence(fields, source)


def _add_evidence(fields: list[str], source: ActionEvidenceSource) -> None:
    reference = source.snapshot
    fields += (source.finding_id, reference.source_node_id if reference else "")
    if reference is not None and reference.snapshot_id is not None:
        fields += ("id", reference.snapshot_id)
    elif reference is not None and reference.content is not None:
        content = reference.content
        fields += ("content", content.format_version, content.digest, content.ruleset_version)
    else:
        fields.append("none")
