"""A plan that passes every gate, and the parts to bend it with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
    SnapshotReference,
)
from pqcota_provision.plan.timestamp import Timestamp

NOW = Timestamp.parse("2026-01-02T03:04:05.678901234Z")

ACTION = RemediationAction(
    id="a1",
    target_node_id="node-1",
    finding_id="f-1",
    crypto_runtime=CryptoRuntime.OPENSSL,
    kind=RemediationKind.PROVIDER_INJECT,
    automation_level=DeployAutomationLevel.L2_STAGE_INSTALL,
    target_algorithm="ML-KEM",
    provider_choice="oqsprovider",
    evidence_sources=(
        ActionEvidenceSource(
            finding_id="f-1", snapshot=SnapshotReference(source_node_id="node-1", snapshot_id="snap-1")
        ),
    ),
)

IN_REVIEW = FinalizedPlan(
    id="p1",
    status=PlanStatus.IN_REVIEW,
    scope="production",
    actions=(ACTION,),
    derived_from_snapshot_id="snap-1",
    ruleset_version="rules/1",
)

LABELLED = replace(IN_REVIEW, status=PlanStatus.FINALIZED, finalized_at=NOW, approval_signatures=("alice said yes",))


def with_action(plan: FinalizedPlan, **changes: Any) -> FinalizedPlan:
    """Return the plan with its first action changed."""
    return replace(plan, actions=(replace(plan.actions[0], **changes), *plan.actions[1:]))
