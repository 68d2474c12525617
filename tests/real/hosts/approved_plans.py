"""Plans on their way to a playbook: written as JSON, approved with a fresh key, verified, generated."""

from __future__ import annotations

import json
import secrets
from typing import Any

from pqcota_provision import (
    Direction,
    Level,
    PrivateKey,
    Timestamp,
    approve,
    generate,
    load_plan,
    verify_approvals,
)

APPROVER = "reviewer-1"
NOW = Timestamp.parse("2025-11-30T12:00:00.123456789Z")


def action(node: str, kind: str = "CONFIG_ONLY", runtime: str = "OPENSSL", **fields: Any) -> dict[str, Any]:
    """Return one action in protobuf JSON; fields as in the contract."""
    return {
        "id": "act-1",
        "targetNodeId": node,
        "findingId": "finding-1",
        "cryptoRuntime": f"CRYPTO_RUNTIME_{runtime}",
        "kind": f"REMEDIATION_KIND_{kind}",
        "targetAlgorithm": "ML-KEM-768",
        **fields,
    }


def in_review(*actions: dict[str, Any], **fields: Any) -> str:
    """Return a plan as its author hands it to approval."""
    return json.dumps(
        {
            "id": "plan-1",
            "status": "PLAN_STATUS_IN_REVIEW",
            "scope": "test hosts",
            "derivedFromSnapshotId": "snapshot-1",
            "rulesetVersion": "2025.11",
            "actions": actions,
            **fields,
        },
        ensure_ascii=False,
    )


def playbook(
    *actions: dict[str, Any], level: Level = Level.L2, direction: Direction = Direction.FORWARD, **fields: Any
) -> str:
    """Return the playbook of a plan with these actions, approved and verified."""
    key = PrivateKey(secrets.token_bytes(32))
    plan = approve(load_plan(in_review(*actions, **fields)), APPROVER, key, now=NOW)
    verify_approvals(plan, {APPROVER: key.public}).require()
    return generate(plan, level=level, direction=direction).text


def rollback(*actions: dict[str, Any], level: Level = Level.L2, **fields: Any) -> str:
    """Return the rollback playbook of a plan with these actions."""
    return playbook(*actions, level=level, direction=Direction.ROLLBACK, **fields)
