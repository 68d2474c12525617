"""The sample plans, approved, and what is generated from them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pqcota_provision.plan.approvals import approve, verify_approvals
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.plan.protojson import load_plan
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.playbook.generate import Direction, Playbook, generate
from pqcota_provision.playbook.levels import Level

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLANS = EXAMPLES / "plans"
CASES = tuple(sorted(path.stem for path in PLANS.glob("*.json")))

OPENSSL = ("/etc/pqcota/openssl-pqc.cnf",)
JCA = ("/etc/pqcota/java.security.pqcota", "/etc/pqcota/jvm.pqcota")

# Case: exit status and notices forward, the same for rollback.
OUTCOMES: dict[str, tuple[int, list[str], int, list[str]]] = {
    "hand-written-fragment": (0, [], 0, []),
    "jca-bouncycastle": (0, ["provider-slot-taken"], 0, []),
    "jca-config-only": (0, [], 0, []),
    "jca-fips": (0, ["provider-slot-taken"], 0, []),
    "jca-own-provider": (0, ["provider-slot-taken"], 0, []),
    "jca-own-provider-without-class": (3, ["provider-class-unknown", "provider-slot-taken"], 0, []),
    "jdk-end-of-life": (0, ["manual-step"], 0, ["manual-step"]),
    "l3-activation-hooks": (0, ["provider-slot-taken"], 0, []),
    "l3-openssl-drop-in": (0, [], 0, []),
    "l3-without-hooks": (3, ["activate-missing", "restart-missing"], 3, ["activate-missing", "restart-missing"]),
    "level-left-open": (3, ["level-unset"], 3, ["level-unset"]),
    "openssl-1.1.1-fork-replace": (0, ["manual-step"], 0, ["manual-step"]),
    "openssl-3.0-provider-inject": (0, [], 0, []),
    "openssl-3.5-config-only": (0, [], 0, []),
    "openssl-own-provider": (0, [], 0, []),
    "signature-target": (3, ["target-signature"], 0, []),
    "split-fragments": (3, ["fragments-split"], 0, []),
    "two-nodes": (0, ["provider-slot-taken"], 0, []),
}

# Case: what is on the nodes afterwards.
PLACED: dict[str, tuple[str, ...]] = {
    "hand-written-fragment": OPENSSL,
    "jca-bouncycastle": ("/opt/pqcota/BC.jar", *JCA),
    "jca-config-only": JCA,
    "jca-fips": ("/opt/pqcota/BCFIPS.jar", *JCA),
    "jca-own-provider": ("/opt/pqcota/acme-pqc-jca.jar", *JCA),
    "jca-own-provider-without-class": ("/opt/pqcota/acme-pqc-jca.jar", *JCA),
    "jdk-end-of-life": (),
    "l3-activation-hooks": ("/opt/pqcota/BC.jar", *JCA),
    "l3-openssl-drop-in": OPENSSL,
    "l3-without-hooks": OPENSSL,
    "level-left-open": JCA,
    "openssl-1.1.1-fork-replace": (),
    "openssl-3.0-provider-inject": ("/opt/pqcota/oqsprovider.so", *OPENSSL),
    "openssl-3.5-config-only": OPENSSL,
    "openssl-own-provider": ("/opt/pqcota/acme-pqc.so", *OPENSSL),
    "signature-target": OPENSSL,
    "split-fragments": (
        "/opt/pqcota/oqsprovider.so",
        "/etc/pqcota/openssl-pqc.intranet-groups.cnf",
        "/etc/pqcota/openssl-pqc.ftp-oqsprovider.cnf",
    ),
    "two-nodes": ("/opt/pqcota/BC.jar", *OPENSSL, *JCA),
}

_KEY = PrivateKey(bytes(range(32)))
_NOW = Timestamp.parse("2026-03-04T09:30:00Z")


def in_review(case: str) -> FinalizedPlan:
    """Return a sample plan as it lies in its folder."""
    return load_plan((PLANS / f"{case}.json").read_bytes())


@lru_cache
def approved(case: str) -> FinalizedPlan:
    """Return a sample plan with an approval that holds."""
    return approve_in_test(in_review(case))


def approve_in_test(plan: FinalizedPlan) -> FinalizedPlan:
    """Return the plan with an approval, once that has been verified."""
    signed = approve(plan, "reviewer-1", _KEY, now=_NOW)
    verify_approvals(signed, {"reviewer-1": _KEY.public}).require()
    return signed


def playbook(case: str, level: Level = Level.L2, direction: Direction = Direction.FORWARD) -> Playbook:
    """Return what is generated from a sample plan."""
    return generate(approved(case), level=level, direction=direction)
