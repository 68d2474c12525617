"""Approvals: what is signed is what was approved, by whom it says, once."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import assume, given
from plan_samples import ACTION, IN_REVIEW, LABELLED, NOW, with_action
from plan_strategies import plan_texts, plans, timestamps

from pqcota_provision.errors import (
    ApprovalsNotVerified,
    KeyUnusable,
    PlanMalformed,
    PlanNotActionable,
    PlanNotApprovable,
    PqcotaError,
    UsageProblem,
)
from pqcota_provision.plan.approvals import (
    RejectedSignature,
    approve,
    normalize_approver,
    signature_labels,
    verify_approvals,
)
from pqcota_provision.plan.canonical import canonical_bytes
from pqcota_provision.plan.keys import PrivateKey, PublicKey
from pqcota_provision.plan.model import (
    FIELDS,
    ActionEvidenceSource,
    ActivationHooks,
    FinalizedPlan,
    PlanStatus,
    SnapshotContentReference,
    SnapshotReference,
    WireEnum,
)
from pqcota_provision.plan.protojson import dump_message, load_plan
from pqcota_provision.plan.timestamp import Timestamp

ALICE = PrivateKey(bytes(range(32)))
BOB = PrivateKey(bytes(range(1, 33)))
CAROL = PrivateKey(bytes(range(2, 34)))
REGISTERED: Mapping[str, PublicKey] = {"alice": ALICE.public, "bob": BOB.public}
LATER = Timestamp(NOW.seconds + 3600)


def approved_by(approver: str, key: PrivateKey, plan: FinalizedPlan = IN_REVIEW) -> FinalizedPlan:
    return approve(plan, approver, key, now=NOW)


APPROVED = approved_by("alice", ALICE)
[ALICES_SIGNATURE] = APPROVED.approval_signatures


def test_an_approved_plan_is_finalized_at_the_nanosecond_given() -> None:
    approved = approved_by("alice", ALICE)
    assert (approved.status, approved.finalized_at) == (PlanStatus.FINALIZED, NOW)
    assert '"finalizedAt": "2026-01-02T03:04:05.678901234Z"' in dump_message(approved)


def test_the_signature_holds_for_the_plan_as_finalized_with_any_ed25519_implementation() -> None:
    [entry] = approved_by("alice", ALICE).approval_signatures
    approver, algorithm, encoded = entry.split(":")
    assert (approver, algorithm) == ("alice", "ed25519")
    signed = canonical_bytes(replace(IN_REVIEW, status=PlanStatus.FINALIZED, finalized_at=NOW))
    Ed25519PublicKey.from_public_bytes(ALICE.public.data).verify(base64.b64decode(encoded), signed)


@given(plan=plans, now=timestamps)
def test_an_approved_plan_verifies_after_writing_and_reading(plan: FinalizedPlan, now: Timestamp) -> None:
    plan = replace(
        plan,
        status=PlanStatus.IN_REVIEW,
        approval_signatures=(),
        finalized_at=None,
        actions=tuple(
            replace(
                action,
                target_node_id="node-1",
                kind=ACTION.kind,
                automation_level=ACTION.automation_level,
                provider_choice="",
                provider_class="",
            )
            for action in plan.actions
        ),
    )
    assume(plan.actions)
    read = load_plan(dump_message(approve(plan, "alice", ALICE, now=now)))
    assert verify_approvals(read, REGISTERED).approved == ("alice",)


def test_a_second_approver_adds_nothing_but_a_signature() -> None:
    both = approve(APPROVED, "bob", BOB, now=LATER)
    assert replace(both, approval_signatures=()) == replace(APPROVED, approval_signatures=())
    assert both.approval_signatures[:-1] == APPROVED.approval_signatures
    assert verify_approvals(both, REGISTERED).approved == ("alice", "bob")


@pytest.mark.parametrize("approver", ["alice", " alice\t"])
def test_approving_twice_adds_nothing(approver: str) -> None:
    assert approve(APPROVED, approver, ALICE, now=LATER) == APPROVED


def test_approving_twice_adds_nothing_where_the_first_signature_is_written_with_spaces() -> None:
    spaced = replace(APPROVED, approval_signatures=(f"  {ALICES_SIGNATURE.replace(':', ' :', 1)}",))
    assert approve(spaced, "alice", ALICE, now=LATER) == spaced


def test_one_key_does_not_approve_under_two_names() -> None:
    with pytest.raises(KeyUnusable, match='already signed the plan as "alice"'):
        approve(APPROVED, "bob", ALICE, now=LATER)


def test_labels_stay_on_a_plan_that_is_signed() -> None:
    signed = approved_by("alice", ALICE, LABELLED)
    assert signed.approval_signatures == ("alice said yes", ALICES_SIGNATURE)


SIGNED_IN_REVIEW = "the plan is in review and yet carries approval signatures"
TIMED_IN_REVIEW = "the plan is in review and yet has a finalizedAt"
FINALIZED_UNSIGNED = "the plan is finalized and yet carries no approval signature"
FINALIZED_WITHOUT_TIME = "the plan is finalized and yet has no finalizedAt"
STATUS_CONTRADICTIONS = [
    pytest.param(replace(IN_REVIEW, approval_signatures=("x",)), SIGNED_IN_REVIEW, id="review-signature"),
    pytest.param(replace(IN_REVIEW, finalized_at=NOW), TIMED_IN_REVIEW, id="review-time"),
    pytest.param(replace(IN_REVIEW, finalized_at=Timestamp(0)), TIMED_IN_REVIEW, id="review-epoch"),
    pytest.param(replace(APPROVED, approval_signatures=()), FINALIZED_UNSIGNED, id="finalized-unsigned"),
    pytest.param(replace(APPROVED, finalized_at=None), FINALIZED_WITHOUT_TIME, id="finalized-without-time"),
    *(
        pytest.param(
            replace(IN_REVIEW, status=status), f"a plan with the status {name} is not ready for approval", id=name
        )
        for status, name in (
            (PlanStatus.DRAFT, "PLAN_STATUS_DRAFT"),
            (PlanStatus.UNSPECIFIED, "PLAN_STATUS_UNSPECIFIED"),
            (99, "99"),
            (-1, "-1"),
        )
    ),
]
UNACTIONABLE = [
    pytest.param(replace(plan, actions=()), "^the plan has no action$", id=f"{name}-no-action")
    for name, plan in (("review", IN_REVIEW), ("finalized", APPROVED))
]
UNACTIONABLE += [
    pytest.param(with_action(plan, **changes), reason, id=f"{name}-{reason.replace(' ', '-')}")
    for name, plan in (("review", IN_REVIEW), ("finalized", APPROVED))
    for reason, changes in (
        ("targetNodeId is missing", {"target_node_id": ""}),
        ("kind is missing", {"kind": 0}),
        ("kind 99", {"kind": 99}),
        ("automationLevel 4", {"automation_level": 4}),
        ("providerChoice", {"provider_choice": "../x"}),
        ("providerClass", {"provider_class": "a b"}),
        ("Ansible group", {"target_node_id": "all"}),
    )
]


@pytest.mark.parametrize(("plan", "reason"), STATUS_CONTRADICTIONS)
def test_a_plan_whose_status_admits_no_approval_is_refused(plan: FinalizedPlan, reason: str) -> None:
    with pytest.raises(PlanNotApprovable, match=f"^{reason}$"):
        approve(plan, "bob", BOB, now=LATER)


@pytest.mark.parametrize(("plan", "reason"), UNACTIONABLE)
def test_a_plan_that_could_not_be_executed_is_refused(plan: FinalizedPlan, reason: str) -> None:
    with pytest.raises(PlanNotActionable, match=reason):
        approve(plan, "bob", BOB, now=LATER)


@pytest.mark.parametrize(("plan", "reason"), [*STATUS_CONTRADICTIONS, *UNACTIONABLE])
def test_a_refused_plan_is_left_as_it_came(plan: FinalizedPlan, reason: str) -> None:
    before = dump_message(plan)
    with pytest.raises(PqcotaError):
        approve(plan, "bob", BOB, now=LATER)
    assert dump_message(plan) == before


@pytest.mark.parametrize("plan", [IN_REVIEW, APPROVED])
def test_an_approval_leaves_the_plan_given_as_it_is(plan: FinalizedPlan) -> None:
    before = dump_message(plan)
    assert approve(plan, "bob", BOB, now=LATER) != plan
    assert dump_message(plan) == before


@pytest.mark.parametrize(
    ("part", "attribute"), [(IN_REVIEW, "id"), (ACTION, "kind"), (ACTION.evidence_sources[0], "snapshot")]
)
def test_a_plan_cannot_be_changed_once_it_is_read(part: object, attribute: str) -> None:
    with pytest.raises(AttributeError):
        setattr(part, attribute, "other")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        pytest.param("alice", "alice", id="plain"),
        pytest.param("  alice\n", "alice", id="trimmed"),
        pytest.param("Ann Example <ann@example.org>", "Ann Example <ann@example.org>", id="name-and-address"),
        pytest.param("한국", "한국", id="any-language"),
        pytest.param("Xavier", "Xavier", id="capitals"),
    ],
)
def test_an_approver_id_is_trimmed(given: str, name: str) -> None:
    assert normalize_approver(given) == name


@pytest.mark.parametrize(
    "approver",
    [
        pytest.param("", id="empty"),
        pytest.param(" \t", id="blank"),
        pytest.param("a:b", id="colon"),
        pytest.param("a,b", id="comma"),
        pytest.param("a=b", id="equals-sign"),
        pytest.param("a\nb", id="newline"),
        pytest.param("a\0b", id="nul"),
        pytest.param("alice\u200b", id="zero-width-space"),
        pytest.param("alice\u3164", id="hangul-filler"),
        pytest.param("\u202ealice", id="right-to-left-override"),
        pytest.param("a\udcffb", id="undecodable-argument"),
    ],
)
def test_an_approver_id_that_could_not_be_verified_later_is_refused(approver: str) -> None:
    with pytest.raises(UsageProblem):
        approve(IN_REVIEW, approver, ALICE, now=NOW)


def test_a_private_key_given_for_the_approver_is_not_shown() -> None:
    secret = ALICE.to_text()
    with pytest.raises(UsageProblem) as refusal:
        normalize_approver(secret)
    assert not any(secret[start : start + 6] in f"{refusal.value} {refusal.value.remedy}" for start in range(38))


def signature(approver: str, key: PrivateKey, plan: FinalizedPlan = APPROVED) -> str:
    return f"{approver}:ed25519:{base64.b64encode(key.sign(canonical_bytes(plan))).decode()}"


def verified(*entries: str, registered: Mapping[str, PublicKey] = REGISTERED) -> tuple[Any, ...]:
    verification = verify_approvals(replace(APPROVED, approval_signatures=entries), registered)
    return (verification.approved, verification.rejected, verification.labels)


NO_KEY, NO_MATCH, NO_BASE64 = "has no registered key", "does not match this plan", "is not base64 of 64 bytes"


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(ALICES_SIGNATURE, id="as-written"),
        pytest.param(f"  {ALICES_SIGNATURE}", id="space-before-the-approver"),
        pytest.param(ALICES_SIGNATURE.replace(":", "\t:", 1), id="space-after-the-approver"),
    ],
)
def test_a_signature_by_a_registered_approver_is_approved(entry: str) -> None:
    assert verified(entry) == (("alice",), (), ())


@pytest.mark.parametrize(
    ("entry", "approver", "reason"),
    [
        pytest.param(signature("carol", CAROL), "carol", NO_KEY, id="approver-not-registered"),
        pytest.param(signature("Alice", ALICE), "Alice", NO_KEY, id="approver-in-other-case"),
        pytest.param(signature("alice\u200b", ALICE), "alice\u200b", NO_KEY, id="approver-with-unseen-character"),
        pytest.param(signature("bob", ALICE), "bob", NO_MATCH, id="signature-moved-to-another-approver"),
        pytest.param(signature("alice", CAROL), "alice", NO_MATCH, id="signed-with-another-key"),
        pytest.param(signature("alice", ALICE, IN_REVIEW), "alice", NO_MATCH, id="of-the-plan-before-it-was-final"),
        pytest.param("alice:ed25519:" + base64.b64encode(bytes(64)).decode(), "alice", NO_MATCH, id="zeros"),
        pytest.param("alice:ed25519:", "alice", NO_BASE64, id="empty"),
        pytest.param("alice:ed25519:AAAA", "alice", NO_BASE64, id="too-short"),
        pytest.param(ALICES_SIGNATURE.rstrip("="), "alice", NO_BASE64, id="unpadded"),
        pytest.param(f"{ALICES_SIGNATURE} ", "alice", NO_BASE64, id="trailing-space"),
        pytest.param(ALICES_SIGNATURE.replace("ed25519:", "ed25519: "), "alice", NO_BASE64, id="space-before-base64"),
        pytest.param(f"{ALICES_SIGNATURE}:x", "alice", NO_BASE64, id="fourth-part"),
        pytest.param(f"{ALICES_SIGNATURE[:-3]}B==", "alice", NO_BASE64, id="trailing-bits"),
        pytest.param("alice:ed25519:" + "ü" * 88, "alice", NO_BASE64, id="not-ascii"),
    ],
)
def test_a_signature_that_does_not_hold_is_rejected_with_the_reason(entry: str, approver: str, reason: str) -> None:
    assert verified(entry) == ((), (RejectedSignature(approver, reason),), ())


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("", id="empty"),
        pytest.param("alice", id="name-only"),
        pytest.param("ed25519:AAAA", id="no-approver"),
        pytest.param(f":{ALICES_SIGNATURE.partition(':')[2]}", id="empty-approver"),
        pytest.param(f" \t:{ALICES_SIGNATURE.partition(':')[2]}", id="blank-approver"),
        pytest.param(ALICES_SIGNATURE.replace("ed25519", "rsa"), id="other-algorithm"),
        pytest.param(ALICES_SIGNATURE.replace("ed25519", "ED25519"), id="other-case"),
        pytest.param(ALICES_SIGNATURE.replace("ed25519", " ed25519"), id="space-before-the-algorithm"),
    ],
)
def test_what_has_not_the_form_of_a_signature_is_a_label_and_proves_nothing(entry: str) -> None:
    assert verified(entry) == ((), (), (entry,))
    assert signature_labels(replace(APPROVED, approval_signatures=(entry, ALICES_SIGNATURE))) == (entry,)


def test_an_approver_counts_once() -> None:
    assert verified(ALICES_SIGNATURE, f" {ALICES_SIGNATURE}", ALICES_SIGNATURE)[0] == ("alice",)


def test_each_entry_is_sorted_by_itself() -> None:
    renamed = ALICES_SIGNATURE.replace("alice", "bob")
    approved, rejected, labels = verified("label", renamed, ALICES_SIGNATURE, signature("bob", BOB), "x:ed25519:AAAA")
    assert approved == ("alice", "bob")
    assert [(item.approver, item.reason) for item in rejected] == [("bob", NO_MATCH), ("x", NO_KEY)]
    assert labels == ("label",)


def test_a_renamed_signature_finds_no_two_approvers_with_one_key() -> None:
    shared = {"alice": ALICE.public, "bob": ALICE.public}
    renamed = ALICES_SIGNATURE.replace("alice", "bob")
    with pytest.raises(KeyUnusable, match="same public key"):
        verified(ALICES_SIGNATURE, renamed, registered=shared)
    with pytest.raises(KeyUnusable, match="same public key"):
        approve(APPROVED, "alice", ALICE, now=NOW, registered=shared)


def test_without_a_registered_key_every_signature_is_rejected() -> None:
    assert verified(ALICES_SIGNATURE, registered={}) == ((), (RejectedSignature("alice", NO_KEY),), ())


def test_all_signatures_that_do_not_hold_are_named_with_the_reason() -> None:
    plan = replace(APPROVED, approval_signatures=(ALICES_SIGNATURE, "x\n:ed25519:AAAA", signature("bob", CAROL)))
    with pytest.raises(ApprovalsNotVerified) as refusal:
        verify_approvals(plan, REGISTERED).require()
    assert refusal.value.problems == (
        'the signature of "x" has no registered key',
        'the signature of "bob" does not match this plan',
    )


@pytest.mark.parametrize("entries", [(), ("label",)])
def test_a_plan_without_any_approval_that_holds_is_refused(entries: tuple[str, ...]) -> None:
    with pytest.raises(ApprovalsNotVerified, match="no entry of approvalSignatures is a signature"):
        verify_approvals(replace(APPROVED, approval_signatures=entries), REGISTERED).require()


def test_labels_beside_an_approval_that_holds_are_no_refusal() -> None:
    verification = verify_approvals(replace(APPROVED, approval_signatures=("label", ALICES_SIGNATURE)), REGISTERED)
    verification.require()
    assert verification.labels == ("label",)


def test_an_approval_of_a_plan_with_nul_in_it_is_not_judged() -> None:
    with pytest.raises(PlanMalformed):
        verify_approvals(replace(APPROVED, scope="a\0b"), REGISTERED)


# Every field of every message is set, so that an edit of each can be tried.
FULL = approved_by(
    "alice",
    ALICE,
    with_action(
        IN_REVIEW,
        config_artifact="x",
        rollback_note="x",
        priority=7,
        provider_class="a.B",
        activation=ActivationHooks(pre="1", activate="2", deactivate="3", restart="4"),
        evidence_sources=(
            *ACTION.evidence_sources,
            ActionEvidenceSource(
                finding_id="f-1",
                snapshot=SnapshotReference(
                    source_node_id="n",
                    content=SnapshotContentReference(format_version="v", digest="d", ruleset_version="r"),
                ),
            ),
        ),
    ),
)


def other(value: object) -> object:
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, WireEnum):
        return type(value)(value - 1)
    if isinstance(value, Timestamp):
        return Timestamp(value.seconds, value.nanos + 1)
    assert isinstance(value, int)
    return value + 1


def edits(message: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the message once for each of its fields, at any depth, with that one field changed or unset."""
    for field in FIELDS[type(message)]:
        value = getattr(message, field.name)
        here = f"{path}.{field.json_name}".lstrip(".")
        if value is None or field.name == "approval_signatures":
            continue
        changed: list[tuple[str, Any]] = []
        if field.repeated:
            changed += [(f"{here}-repeated", (*value, value[0])), (f"{here}-dropped", value[1:])]
            changed += [
                (place, (*value[:index], item, *value[index + 1 :]))
                for index in range(len(value))
                for place, item in edits(value[index], f"{here}[{index}]")
            ]
        elif field.kind in FIELDS:
            changed += [(f"{here}-unset", None), *edits(value, here)]
        else:
            changed.append((here, other(value)))
        for place, new in changed:
            yield place, replace(message, **{field.name: new})


EDITS = list(edits(FULL))


def test_an_edit_of_every_field_is_tried() -> None:
    places = {place.rpartition(".")[2].partition("-")[0].partition("[")[0] for place, _ in EDITS}
    assert places == {
        field.json_name
        for message in (
            FinalizedPlan,
            type(ACTION),
            ActivationHooks,
            ActionEvidenceSource,
            SnapshotReference,
            SnapshotContentReference,
        )
        for field in FIELDS[message]
    } - {"approvalSignatures"}


@pytest.mark.parametrize("edited", [pytest.param(plan, id=place) for place, plan in EDITS])
def test_a_signature_over_an_edited_plan_is_rejected(edited: FinalizedPlan) -> None:
    assert verify_approvals(FULL, REGISTERED).approved == ("alice",)
    verification = verify_approvals(edited, REGISTERED)
    assert (verification.approved, verification.rejected) == ((), (RejectedSignature("alice", NO_MATCH),))


def test_a_signature_over_reordered_actions_is_rejected() -> None:
    two = replace(IN_REVIEW, actions=(ACTION, replace(ACTION, target_node_id="node-2")))
    signed = approved_by("alice", ALICE, two)
    reordered = replace(signed, actions=signed.actions[::-1])
    assert verify_approvals(reordered, REGISTERED).rejected == (RejectedSignature("alice", NO_MATCH),)


@given(first=plan_texts, second=plan_texts)
def test_text_moved_from_one_field_to_the_next_is_rejected(first: str, second: str) -> None:
    assume(first)
    signed = approved_by("alice", ALICE, replace(IN_REVIEW, derived_from_snapshot_id=first, ruleset_version=second))
    moved = replace(signed, derived_from_snapshot_id="", ruleset_version=first + second)
    assert verify_approvals(moved, REGISTERED).approved == ()


CO_SIGNING_REFUSALS: list[Any] = [
    pytest.param(
        replace(APPROVED, scope="edited"), 'of "alice", already on the plan, does not match', id="plan-edited-since"
    ),
    pytest.param(
        replace(APPROVED, approval_signatures=(signature("carol", CAROL),)),
        'of "carol", already on the plan, has no registered key',
        id="approver-not-registered",
    ),
    pytest.param(
        replace(APPROVED, approval_signatures=(ALICES_SIGNATURE, "bob:ed25519:AAAA")),
        'of "bob", already on the plan, is not base64',
        id="one-of-two-damaged",
    ),
]


@pytest.mark.parametrize(("plan", "problem"), CO_SIGNING_REFUSALS)
def test_nobody_co_signs_beside_a_signature_that_does_not_hold(plan: FinalizedPlan, problem: str) -> None:
    with pytest.raises(ApprovalsNotVerified, match=problem):
        approve(plan, "bob", BOB, now=LATER, registered=REGISTERED)


@pytest.mark.parametrize(
    ("plan", "approvers"),
    [
        pytest.param(IN_REVIEW, ("bob",), id="first-signature"),
        pytest.param(APPROVED, ("alice", "bob"), id="beside-one-that-holds"),
        pytest.param(LABELLED, ("bob",), id="beside-a-label"),
    ],
)
def test_with_registered_keys_a_sound_plan_is_co_signed(plan: FinalizedPlan, approvers: tuple[str, ...]) -> None:
    signed = approve(plan, "bob", BOB, now=NOW, registered=REGISTERED)
    assert verify_approvals(signed, REGISTERED).approved == approvers


@pytest.mark.parametrize(
    ("approver", "key", "problem"),
    [
        pytest.param("alice", CAROL, 'not the one registered for "alice"', id="another-key"),
        pytest.param("alice", BOB, 'not the one registered for "alice"', id="the-key-of-another-approver"),
        pytest.param("carol", BOB, 'the one registered for "bob", not for "carol"', id="a-key-under-a-new-name"),
    ],
)
@pytest.mark.parametrize("plan", [IN_REVIEW, LABELLED])
def test_with_registered_keys_nobody_signs_in_anothers_name(
    plan: FinalizedPlan, approver: str, key: PrivateKey, problem: str
) -> None:
    with pytest.raises(KeyUnusable, match=problem):
        approve(plan, approver, key, now=NOW, registered=REGISTERED)


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(lambda: approve(replace(IN_REVIEW, status=1), "a:b", ALICE, now=NOW), id="approver-id"),
        pytest.param(
            lambda: approve(replace(APPROVED, finalized_at=None), "alice", BOB, now=NOW, registered=REGISTERED),
            id="status",
        ),
    ],
)
def test_every_refusal_is_an_error_a_user_can_read(attempt: Callable[[], FinalizedPlan]) -> None:
    with pytest.raises(PqcotaError) as refusal:
        attempt()
    assert refusal.value.problems
    assert refusal.value.remedy


SHARED = {"alice": ALICE.public, "bob": ALICE.public}


@pytest.mark.parametrize(
    ("attempt", "problem", "remedy"),
    [
        pytest.param(
            lambda: normalize_approver(" "), "the approver id is empty", "Pass --approver ID.", id="approver-empty"
        ),
        pytest.param(
            lambda: normalize_approver("a:b"),
            "the approver id holds ':', which separates the parts of a signature or of the key map",
            "Choose an id without ':', ',' and '='.",
            id="approver-with-separator",
        ),
        pytest.param(
            lambda: normalize_approver("a\u200b"),
            'the approver id "a\\u200b" holds a character that cannot be seen',
            "Choose an id of visible characters.",
            id="approver-with-unseen-character",
        ),
        pytest.param(
            lambda: approve(APPROVED, "bob", ALICE, now=LATER),
            'this key has already signed the plan as "alice"; one key stands for one approver',
            "Sign with the approver's own key.",
            id="key-that-signed-under-another-name",
        ),
        pytest.param(
            lambda: approve(IN_REVIEW, "alice", CAROL, now=NOW, registered=REGISTERED),
            'the private key is not the one registered for "alice"',
            "Sign with that approver's own key, or correct the key map.",
            id="key-of-nobody",
        ),
        pytest.param(
            lambda: approve(IN_REVIEW, "carol", BOB, now=NOW, registered=REGISTERED),
            'the private key is the one registered for "bob", not for "carol"',
            "Sign with the approver's own key, or correct the key map.",
            id="key-of-another",
        ),
        pytest.param(
            lambda: verify_approvals(APPROVED, SHARED),
            'the key map gives "alice" and "bob" the same public key; a signature would then pass under either name',
            KeyUnusable.remedy,
            id="key-of-two",
        ),
        pytest.param(
            lambda: verify_approvals(LABELLED, REGISTERED).require(),
            "no entry of approvalSignatures is a signature by a registered approver",
            "Have the plan approved: pqcota-approve --approver ID PLAN.",
            id="labels-only",
        ),
        pytest.param(
            lambda: verify_approvals(replace(APPROVED, scope="edited"), REGISTERED).require(),
            'the signature of "alice" does not match this plan',
            ApprovalsNotVerified.remedy,
            id="plan-edited-since",
        ),
        pytest.param(
            lambda: approve(replace(APPROVED, scope="edited"), "bob", BOB, now=LATER, registered=REGISTERED),
            'the signature of "alice", already on the plan, does not match this plan',
            ApprovalsNotVerified.remedy,
            id="co-signing-a-plan-edited-since",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_to_do(attempt: Callable[[], object], problem: str, remedy: str) -> None:
    with pytest.raises(PqcotaError) as refusal:
        attempt()
    assert (refusal.value.problems, refusal.value.remedy) == ((problem,), remedy)
