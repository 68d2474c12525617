"""Records, plans and findings to bend."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pqcota_provision.plan.evidence import CONTENT_FORMAT
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    CryptoRuntime,
    CryptoState,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    ProvisioningRecord,
    ProvisioningStatus,
    RemediationAction,
    RemediationKind,
    SnapshotContentReference,
    SnapshotReference,
    SnapshotResolution,
)
from pqcota_provision.plan.timestamp import Timestamp

NOW = Timestamp.parse("2026-01-02T03:04:05.678901234Z")
DIGEST = "0123456789abcdef" * 4

RECORD = ProvisioningRecord(
    id="plan-1:a1",
    node_id="node-1",
    app_keys=("payments", "ledger"),
    action_id="a1",
    plan_id="plan-1",
    before=CryptoState(modules=("jca:SUN", "openssl@3.0.13"), provider_chain=("SUN",)),
    status=ProvisioningStatus.STAGED,
    at=NOW,
    snapshot_resolutions=(
        SnapshotResolution(
            submitted=SnapshotReference(source_node_id="node-1", snapshot_id="snap-1"), resolved_snapshot_id="snap-1"
        ),
        SnapshotResolution(legacy_plan_snapshot_id="snap-0", reason="there is none"),
    ),
)

ACTION = RemediationAction(
    id="a1",
    target_node_id="node-1",
    finding_id="f-1",
    crypto_runtime=CryptoRuntime.OPENSSL,
    kind=RemediationKind.CONFIG_ONLY,
    automation_level=DeployAutomationLevel.L2_STAGE_INSTALL,
    target_algorithm="ML-KEM",
)

PLAN = FinalizedPlan(
    id="plan-1",
    status=PlanStatus.FINALIZED,
    actions=(ACTION,),
    approval_signatures=("a label",),
    ruleset_version="rules/1",
    finalized_at=NOW,
)


def record(number: int = 1, **changes: Any) -> ProvisioningRecord:
    """Return the record of an action with that number, changed."""
    return replace(RECORD, **{"id": f"plan-1:a{number}", "action_id": f"a{number}", **changes})


def by_id(snapshot_id: str, *, node: str = "node-1", finding: str = "f-1") -> ActionEvidenceSource:
    """Return evidence that names its snapshot by id."""
    return ActionEvidenceSource(
        finding_id=finding, snapshot=SnapshotReference(source_node_id=node, snapshot_id=snapshot_id)
    )


def by_content(
    digest: str = DIGEST, *, node: str = "node-1", finding: str = "f-1", ruleset: str = "rules/1"
) -> ActionEvidenceSource:
    """Return evidence that names its snapshot by content."""
    content = SnapshotContentReference(format_version=CONTENT_FORMAT, digest=digest, ruleset_version=ruleset)
    return ActionEvidenceSource(finding_id=finding, snapshot=SnapshotReference(source_node_id=node, content=content))


def plan_of(*actions: RemediationAction, **changes: Any) -> FinalizedPlan:
    """Return a plan of these actions."""
    return replace(PLAN, actions=actions, **changes)


def action(number: int = 1, *sources: ActionEvidenceSource, **changes: Any) -> RemediationAction:
    """Return an action with that number and this evidence, changed."""
    return replace(ACTION, **{"id": f"a{number}", "evidence_sources": sources, **changes})


def openssl_finding(finding_id: str = "f-1", *apps: str, lib: str = "openssl", version: str = "3.0.13") -> object:
    """Return a finding about OpenSSL as pqcota-inventory writes it."""
    return {
        "id": finding_id,
        "cryptoRuntime": "CRYPTO_RUNTIME_OPENSSL",
        "appKeys": list(apps),
        "openssl": {"lib": lib, "version": version, "fork": "openssl", "bindingMode": "dynamic"},
        "severity": {"not": "ours"},
    }


def jca_finding(finding_id: str, *providers: str) -> object:
    """Return a finding about a JVM as pqcota-inventory writes it."""
    return {
        "id": finding_id,
        "cryptoRuntime": 2,
        "appKeys": [],
        "jca": {"jdkVendor": "Temurin", "jdkVersion": "17", "providerSet": list(providers), "registrationMode": "x"},
    }
