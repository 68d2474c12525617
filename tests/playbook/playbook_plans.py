"""Plans of the shapes that generation tells apart, and a strategy for executable ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.plan.timestamp import Timestamp

HOOKS = ActivationHooks(pre="stop app", activate="enable pqc", deactivate="disable pqc", restart="start app")


def action(**fields: Any) -> RemediationAction:
    """Return an OpenSSL CONFIG_ONLY action at L2, changed by the given fields."""
    defaults: dict[str, Any] = {
        "id": "a1",
        "target_node_id": "node-1",
        "finding_id": "f-1",
        "crypto_runtime": CryptoRuntime.OPENSSL,
        "kind": RemediationKind.CONFIG_ONLY,
        "automation_level": DeployAutomationLevel.L2_STAGE_INSTALL,
        "target_algorithm": "ML-KEM",
    }
    return RemediationAction(**{**defaults, **fields})


def injection(**fields: Any) -> RemediationAction:
    """Return an OpenSSL PROVIDER_INJECT action at L2, changed by the given fields."""
    return action(**{"kind": RemediationKind.PROVIDER_INJECT, "provider_choice": "oqsprovider", **fields})


def jca_injection(**fields: Any) -> RemediationAction:
    """Return a JCA PROVIDER_INJECT action at L2, changed by the given fields."""
    return injection(**{"crypto_runtime": CryptoRuntime.JCA, "provider_choice": "BC", **fields})


def l3(**fields: Any) -> dict[str, Any]:
    """Return the fields that make an action reach L3 with all four hooks."""
    return {"automation_level": DeployAutomationLevel.L3_FULL_AUTO, "activation": HOOKS, **fields}


def plan(*actions: RemediationAction, **fields: Any) -> FinalizedPlan:
    """Return a finalized plan that leaves nothing out, with these actions."""
    defaults: dict[str, Any] = {
        "id": "p1",
        "status": PlanStatus.FINALIZED,
        "scope": "ring-0",
        "actions": actions,
        "approval_signatures": ("reviewer-1:ed25519:AAAA",),
        "derived_from_snapshot_id": "snap-1",
        "ruleset_version": "rules-1",
        "finalized_at": Timestamp(1_700_000_000),
    }
    return FinalizedPlan(**{**defaults, **fields})


_texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\t'\"{}%#\\"), max_size=30
)
_hooks = st.builds(ActivationHooks, pre=_texts, activate=_texts, deactivate=_texts, restart=_texts)
_actions = st.builds(
    RemediationAction,
    target_node_id=st.sampled_from(["n1", "n2", "10.0.0.7", "2001:db8::7"]),
    finding_id=_texts,
    crypto_runtime=st.sampled_from([*CryptoRuntime, 42]),
    kind=st.sampled_from([kind for kind in RemediationKind if kind]),
    automation_level=st.sampled_from(DeployAutomationLevel),
    target_algorithm=st.sampled_from(["ML-KEM", "ML-KEM-768", "Kyber", "HQC", "ML-DSA", ""]) | _texts,
    provider_choice=st.sampled_from(["", "oqsprovider", "BC", "acme-pqc", "acme_pqc", "fips"]),
    provider_class=st.sampled_from(["", "com.example.Provider"]),
    config_artifact=st.sampled_from(["", "", "", "x = 1", "x = 1\n"]) | _texts,
    rollback_note=_texts,
    activation=st.none() | _hooks,
)


def _with_ids(actions: list[RemediationAction]) -> FinalizedPlan:
    from dataclasses import replace

    return plan(*(replace(action, id=f"a{index}") for index, action in enumerate(actions)))


executable_plans: st.SearchStrategy[FinalizedPlan] = st.lists(_actions, min_size=1, max_size=7).map(_with_ids)
