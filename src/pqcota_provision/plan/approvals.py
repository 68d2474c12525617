"""Approvals: signing a plan's canonical bytes and judging the signatures on it (SPEC 3 and 4)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from pqcota_provision.errors import ApprovalsNotVerified, KeyUnusable, UsageProblem
from pqcota_provision.plan.canonical import canonical_bytes
from pqcota_provision.plan.gates import check_approvable
from pqcota_provision.plan.keys import SIGNATURE_SIZE, PrivateKey, PublicKey, decode_base64, shared_key_problem
from pqcota_provision.plan.model import FinalizedPlan, PlanStatus
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.text import is_unseen, quote

ALGORITHM = "ed25519"


class RejectedSignature(NamedTuple):
    """A signature that does not hold, and the reason as a clause."""

    approver: str
    reason: str


class ApprovalVerification(NamedTuple):
    """What the entries of ``approval_signatures`` are worth.

    ``approved`` holds each approver once, in plan order; ``rejected`` the signatures that do not hold;
    ``labels`` the entries that are no signature at all and prove nothing.
    """

    approved: tuple[str, ...]
    rejected: tuple[RejectedSignature, ...]
    labels: tuple[str, ...]

    def require(self) -> None:
        """Raise ApprovalsNotVerified if any signature was rejected or none holds (SPEC 4)."""
        if self.rejected:
            raise ApprovalsNotVerified(
                f"the signature of {quote(signature.approver)} {signature.reason}" for signature in self.rejected
            )
        if not self.approved:
            raise ApprovalsNotVerified(
                "no entry of approvalSignatures is a signature by a registered approver",
                remedy="Have the plan approved: pqcota-approve --approver ID PLAN.",
            )


def normalize_approver(approver: str) -> str:
    """Return the approver id trimmed; raises UsageProblem where it could not be verified later."""
    name = approver.strip()
    if not name:
        raise UsageProblem("the approver id is empty", remedy="Pass --approver ID.")
    for separator in ":,=":
        if separator in name:
            # The id itself is left out: a private key passed by mistake ends in '='.
            raise UsageProblem(
                f"the approver id holds '{separator}', which separates the parts of a signature or of the key map",
                remedy="Choose an id without ':', ',' and '='.",
            )
    if any(is_unseen(character) for character in name):
        raise UsageProblem(
            f"the approver id {quote(name)} holds a character that cannot be seen",
            remedy="Choose an id of visible characters.",
        )
    return name


def approve(
    plan: FinalizedPlan,
    approver: str,
    key: PrivateKey,
    *,
    now: Timestamp,
    registered: Mapping[str, PublicKey] | None = None,
) -> FinalizedPlan:
    """Return the plan with one more approval; the plan given is left as it is (SPEC 4).

    An IN_REVIEW plan becomes FINALIZED at ``now`` before it is signed; a FINALIZED one only gains the
    signature, or nothing where this very signature is there. A key that has already signed the plan under
    another approver is a refusal. With ``registered`` keys, so is a signature already on the plan that does
    not verify, a key other than the approver's own, and a key that is registered for another approver.

    Raises PlanNotApprovable, PlanNotActionable, ApprovalsNotVerified, KeyUnusable or UsageProblem.
    """
    name = normalize_approver(approver)
    check_approvable(plan)
    if registered is not None:
        _refuse_wrong_key(name, key.public, registered)
    if plan.status == PlanStatus.FINALIZED:
        if registered is not None:
            _refuse_rejected(plan, registered)
        finalized = plan
    else:
        finalized = replace(plan, status=PlanStatus.FINALIZED, finalized_at=now)
    encoded = base64.b64encode(key.sign(canonical_bytes(finalized))).decode("ascii")
    # Ed25519 is deterministic: the same signature is the same key.
    owners = {owner for owner, text in map(_split, finalized.approval_signatures) if owner and text == encoded}
    if name in owners:
        return finalized
    if owners:
        raise KeyUnusable(
            f"this key has already signed the plan as {quote(min(owners))}; one key stands for one approver",
            remedy="Sign with the approver's own key.",
        )
    signature = f"{name}:{ALGORITHM}:{encoded}"
    return replace(finalized, approval_signatures=(*finalized.approval_signatures, signature))


def _refuse_wrong_key(name: str, key: PublicKey, registered: Mapping[str, PublicKey]) -> None:
    _refuse_shared_keys(registered)
    own = registered.get(name)
    if own is not None and own != key:
        raise KeyUnusable(
            f"the private key is not the one registered for {quote(name)}",
            remedy="Sign with that approver's own key, or correct the key map.",
        )
    for owner, other in registered.items():
        if owner != name and other == key:
            raise KeyUnusable(
                f"the private key is the one registered for {quote(owner)}, not for {quote(name)}",
                remedy="Sign with the approver's own key, or correct the key map.",
            )


def _refuse_shared_keys(registered: Mapping[str, PublicKey]) -> None:
    owners: dict[PublicKey, str] = {}
    for name, key in registered.items():
        owner = owners.setdefault(key, name)
        if owner != name:
            raise KeyUnusable(shared_key_problem(owner, name))


def _refuse_rejected(plan: FinalizedPlan, registered: Mapping[str, PublicKey]) -> None:
    rejected = verify_approvals(plan, registered).rejected
    if rejected:
        raise ApprovalsNotVerified(
            f"the signature of {quote(signature.approver)}, already on the plan, {signature.reason}"
            for signature in rejected
        )


def verify_approvals(plan: FinalizedPlan, registered: Mapping[str, PublicKey]) -> ApprovalVerification:
    """Sort each approval entry into approved, rejected or label, by the approver's own key (SPEC 3).

    Raises KeyUnusable where two approvers share a key, since a renamed signature would then pass.
    """
    _refuse_shared_keys(registered)
    message = canonical_bytes(plan)
    approved: dict[str, None] = {}
    rejected: list[RejectedSignature] = []
    labels: list[str] = []
    for entry in plan.approval_signatures:
        approver, encoded = _split(entry)
        if not approver:
            labels.append(entry)
            continue
        key = registered.get(approver)
        signature = decode_base64(encoded)
        if key is None:
            rejected.append(RejectedSignature(approver, "has no registered key"))
        elif signature is None or len(signature) != SIGNATURE_SIZE:
            rejected.append(RejectedSignature(approver, "is not base64 of 64 bytes"))
        elif not key.verifies(signature, message):
            rejected.append(RejectedSignature(approver, "does not match this plan"))
        else:
            approved[approver] = None
    return ApprovalVerification(tuple(approved), tuple(rejected), tuple(labels))


def signature_labels(plan: FinalizedPlan) -> tuple[str, ...]:
    """Return the approval entries that do not have the form of a signature."""
    return tuple(entry for entry in plan.approval_signatures if not _split(entry)[0])


def _split(entry: str) -> tuple[str, str]:
    parts = entry.split(":", 2)
    if len(parts) != 3 or parts[1] != ALGORITHM:
        return "", ""
    return parts[0].strip(), parts[2]
