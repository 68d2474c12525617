"""The signed bytes: two plans that differ in what counts never share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plan_samples import IN_REVIEW, with_action
from plan_strategies import plan_texts, plans, timestamps

from pqcota_provision.errors import PlanMalformed
from pqcota_provision.plan.canonical import canonical_bytes
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
    SnapshotContentReference,
    SnapshotReference,
    WireEnum,
)
from pqcota_provision.plan.protojson import dump_message, load_plan
from pqcota_provision.plan.timestamp import Timestamp


def enum_value(kind: type[WireEnum], name: str) -> int:
    return next((value for value in kind if value.wire_name == name), None) or (
        kind(0) if name == kind(0).wire_name else int(name)
    )


def plan_of(data: bytes) -> FinalizedPlan:
    """Take canonical bytes apart again; that this is possible is what makes a signature unambiguous.

    What the form does not tell apart comes out as the lesser of the two: an unset time for the epoch, no
    hooks for empty ones, no reference for an empty one.
    """
    fields = iter(data.decode("utf-8").split("\0"))
    plan = FinalizedPlan(
        id=next(fields),
        status=enum_value(PlanStatus, next(fields)),
        scope=next(fields),
        derived_from_snapshot_id=next(fields),
        ruleset_version=next(fields),
        finalized_at=_time(next(fields)),
    )
    actions = []
    while (action_id := next(fields, None)) is not None:
        following = next(fields, None)
        if following is None:
            assert not action_id
            break
        actions.append(_action(action_id, following, fields))
    return replace(plan, actions=tuple(actions))


def _time(text: str) -> Timestamp | None:
    return None if text == "1970-01-01T00:00:00Z" else Timestamp.parse(text)


def _action(action_id: str, target: str, fields: Iterator[str]) -> RemediationAction:
    action = RemediationAction(
        id=action_id,
        target_node_id=target,
        finding_id=next(fields),
        crypto_runtime=enum_value(CryptoRuntime, next(fields)),
        kind=enum_value(RemediationKind, next(fields)),
        automation_level=enum_value(DeployAutomationLevel, next(fields)),
        target_algorithm=next(fields),
        provider_choice=next(fields),
        config_artifact=next(fields),
        rollback_note=next(fields),
        priority=int(next(fields)),
        provider_class=next(fields),
        activation=ActivationHooks(
            pre=next(fields), activate=next(fields), deactivate=next(fields), restart=next(fields)
        ),
    )
    sources = tuple(_source(fields) for _ in range(int(next(fields))))
    return replace(action, evidence_sources=sources)


def _source(fields: Iterator[str]) -> ActionEvidenceSource:
    finding, node, form = next(fields), next(fields), next(fields)
    reference = SnapshotReference(source_node_id=node)
    if form == "id":
        reference = replace(reference, snapshot_id=next(fields))
    elif form == "content":
        content = SnapshotContentReference(
            format_version=next(fields), digest=next(fields), ruleset_version=next(fields)
        )
        reference = replace(reference, content=content)
    else:
        assert form == "none"
    return ActionEvidenceSource(finding_id=finding, snapshot=reference)


def what_is_signed(plan: FinalizedPlan) -> FinalizedPlan:
    """The plan without what its canonical form leaves out (SPEC 3)."""
    return replace(
        plan,
        approval_signatures=(),
        finalized_at=None if plan.finalized_at == Timestamp(0) else plan.finalized_at,
        actions=tuple(
            replace(
                action,
                activation=action.activation or ActivationHooks(),
                evidence_sources=tuple(
                    replace(source, snapshot=source.snapshot or SnapshotReference())
                    for source in action.evidence_sources
                ),
            )
            for action in plan.actions
        ),
    )


@settings(max_examples=200)
@given(plan=plans)
def test_the_canonical_form_can_be_taken_apart_into_the_one_plan_it_was_made_of(plan: FinalizedPlan) -> None:
    assert plan_of(canonical_bytes(plan)) == what_is_signed(plan)


@given(first=plans, second=plans)
def test_two_plans_never_share_their_signed_bytes(first: FinalizedPlan, second: FinalizedPlan) -> None:
    assume(what_is_signed(first) != what_is_signed(second))
    assert canonical_bytes(first) != canonical_bytes(second)


@given(plan=plans, signatures=st.lists(plan_texts, max_size=3).map(tuple))
def test_a_further_signature_does_not_change_what_is_signed(plan: FinalizedPlan, signatures: tuple[str, ...]) -> None:
    assert canonical_bytes(replace(plan, approval_signatures=signatures)) == canonical_bytes(plan)


@given(plan=plans)
def test_writing_and_reading_does_not_change_what_is_signed(plan: FinalizedPlan) -> None:
    assert canonical_bytes(load_plan(dump_message(plan))) == canonical_bytes(plan)


@given(first=timestamps, second=timestamps)
def test_a_nanosecond_changes_what_is_signed(first: Timestamp, second: Timestamp) -> None:
    signed = [canonical_bytes(replace(IN_REVIEW, finalized_at=time)) for time in (first, second)]
    assert (signed[0] == signed[1]) == (first == second)


def test_the_bytes_are_those_of_the_contract() -> None:
    plan = FinalizedPlan(
        id="p",
        status=PlanStatus.FINALIZED,
        scope="s",
        approval_signatures=("left out",),
        derived_from_snapshot_id="d",
        ruleset_version="r",
        finalized_at=Timestamp.parse("2026-01-02T04:04:05.120+01:00"),
        actions=(
            RemediationAction(
                id="a",
                target_node_id="n",
                finding_id="f",
                crypto_runtime=CryptoRuntime.JCA,
                kind=99,
                automation_level=DeployAutomationLevel.L3_FULL_AUTO,
                target_algorithm="t",
                provider_choice="c",
                config_artifact="x\ny",
                rollback_note="é",
                priority=-7,
                provider_class="k",
                activation=ActivationHooks(pre="1", activate="2", deactivate="3", restart="4"),
                evidence_sources=(
                    ActionEvidenceSource(
                        finding_id="f", snapshot=SnapshotReference(source_node_id="m", snapshot_id="i")
                    ),
                    ActionEvidenceSource(
                        finding_id="g",
                        snapshot=SnapshotReference(
                            source_node_id="o",
                            content=SnapshotContentReference(format_version="v", digest="h", ruleset_version="w"),
                        ),
                    ),
                    ActionEvidenceSource(finding_id="j", snapshot=SnapshotReference(source_node_id="q")),
                    ActionEvidenceSource(),
                ),
            ),
            RemediationAction(),
        ),
    )
    assert canonical_bytes(plan).decode().split("\0") == [
        *("p", "PLAN_STATUS_FINALIZED", "s", "d", "r", "2026-01-02T03:04:05.12Z"),
        *("a", "n", "f", "CRYPTO_RUNTIME_JCA", "99", "DEPLOY_AUTOMATION_LEVEL_L3_FULL_AUTO"),
        *("t", "c", "x\ny", "é", "-7", "k", "1", "2", "3", "4", "4"),
        *("f", "m", "id", "i"),
        *("g", "o", "content", "v", "h", "w"),
        *("j", "q", "none"),
        *("", "", "none"),
        *("", "", "", "CRYPTO_RUNTIME_UNSPECIFIED", "REMEDIATION_KIND_UNSPECIFIED"),
        *("DEPLOY_AUTOMATION_LEVEL_UNSPECIFIED", "", "", "", "", "0", "", "", "", "", "", "0"),
        "",
    ]


def test_an_unset_time_is_signed_as_the_epoch() -> None:
    assert b"\x001970-01-01T00:00:00Z\0" in canonical_bytes(replace(IN_REVIEW, finalized_at=None))


HOLDS_NUL = "a string of the plan holds a NUL character, so its approval would be ambiguous"
HOLDS_SURROGATE = "a string of the plan holds half of a surrogate pair, which is no character"


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        pytest.param(replace(IN_REVIEW, id="p\0PLAN_STATUS_DRAFT"), HOLDS_NUL, id="plan-id"),
        pytest.param(with_action(IN_REVIEW, activation=ActivationHooks(restart="x\0")), HOLDS_NUL, id="hook"),
        pytest.param(
            with_action(IN_REVIEW, evidence_sources=(ActionEvidenceSource(finding_id="\0"),)), HOLDS_NUL, id="evidence"
        ),
        pytest.param(replace(IN_REVIEW, scope="\ud800"), HOLDS_SURROGATE, id="half-of-a-surrogate-pair"),
    ],
)
def test_a_plan_made_in_python_that_could_not_be_signed_soundly_is_refused(plan: FinalizedPlan, problem: str) -> None:
    with pytest.raises(PlanMalformed) as refusal:
        canonical_bytes(plan)
    assert refusal.value.problems == (problem,)


def test_a_number_given_for_a_known_enum_value_is_signed_under_its_name() -> None:
    by_number, by_name = RemediationAction(kind=1), RemediationAction(kind=RemediationKind.CONFIG_ONLY)
    assert canonical_bytes(FinalizedPlan(actions=(by_number,))) == canonical_bytes(FinalizedPlan(actions=(by_name,)))


def test_a_plan_made_in_python_with_numbers_is_signed_as_the_one_that_is_read_back() -> None:
    action = RemediationAction(target_node_id="n", crypto_runtime=1, kind=2, automation_level=3)
    plan = FinalizedPlan(status=2, actions=(action, replace(action, kind=99)))
    assert plan.status is PlanStatus.IN_REVIEW
    assert canonical_bytes(plan) == canonical_bytes(load_plan(dump_message(plan)))
    assert b"\0REMEDIATION_KIND_PROVIDER_INJECT\0" in canonical_bytes(plan)
