"""Turns an approved post-quantum migration plan into Ansible playbooks, and undoes them.

    plan = load_plan(Path("plan.signed.json").read_bytes())
    verify_approvals(plan, parse_key_map("reviewer-1=...")).require()
    playbook = generate(plan, level=Level.L2)

Names are imported on first use, so that a program pays only for what it touches.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pqcota_provision._version import __version__

if TYPE_CHECKING:
    from pqcota_provision.errors import PqcotaError
    from pqcota_provision.plan.approvals import ApprovalVerification, approve, verify_approvals
    from pqcota_provision.plan.canonical import canonical_bytes
    from pqcota_provision.plan.gates import check_approvable, check_executable
    from pqcota_provision.plan.keys import PrivateKey, PublicKey, parse_key_map
    from pqcota_provision.plan.model import FinalizedPlan, RemediationAction
    from pqcota_provision.plan.notices import Notice, NoticeKind
    from pqcota_provision.plan.protojson import dump_message, load_plan
    from pqcota_provision.plan.timestamp import Timestamp
    from pqcota_provision.playbook.generate import Direction, Playbook, generate
    from pqcota_provision.playbook.levels import Level

__all__ = [
    "ApprovalVerification",
    "Direction",
    "FinalizedPlan",
    "Level",
    "Notice",
    "NoticeKind",
    "Playbook",
    "PqcotaError",
    "PrivateKey",
    "PublicKey",
    "RemediationAction",
    "Timestamp",
    "__version__",
    "approve",
    "canonical_bytes",
    "check_approvable",
    "check_executable",
    "dump_message",
    "generate",
    "load_plan",
    "parse_key_map",
    "verify_approvals",
]

_HOMES = {
    "errors": ("PqcotaError",),
    "plan.approvals": ("ApprovalVerification", "approve", "verify_approvals"),
    "plan.canonical": ("canonical_bytes",),
    "plan.gates": ("check_approvable", "check_executable"),
    "plan.keys": ("PrivateKey", "PublicKey", "parse_key_map"),
    "plan.model": ("FinalizedPlan", "RemediationAction"),
    "plan.notices": ("Notice", "NoticeKind"),
    "plan.protojson": ("dump_message", "load_plan"),
    "plan.timestamp": ("Timestamp",),
    "playbook.generate": ("Direction", "Playbook", "generate"),
    "playbook.levels": ("Level",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
