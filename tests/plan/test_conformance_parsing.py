"""Reading, signing and judging a plan as the Go tools do it, case by case, but for what differs on purpose."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from conformance_cases import APPROVER, CLOCK, conformance_cases, fixed_key, plan_bytes
from pqcota_provision.errors import PlanMalformed, PlanNotActionable, PqcotaError
from pqcota_provision.plan.approvals import approve, verify_approvals
from pqcota_provision.plan.canonical import canonical_bytes
from pqcota_provision.plan.gates import check_executable
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.plan.notices import NoticeId, plan_notices
from pqcota_provision.plan.protojson import dump_message, load_plan

MALFORMED_HERE = {"control characters are refused"}
NOT_ACTIONABLE_HERE = {
    "unknown kind",
    "provider_choice is not a plain file name",
    "provider_class is not a class name",
    "target_node_id is not one host name",
}
LEFT_TO_THE_PLAYBOOK = {
    "action id is not a plain file name",
    "actions of one node share an id",
    "config_artifact is linted",
    "empty provider_choice is one default everywhere",
    "runtime unsupported",
    "two provider files share a variable suffix",
}
ABOUT_THE_PLAN = {
    NoticeId.PLAN_ID_MISSING,
    NoticeId.RULESET_MISSING,
    NoticeId.FINALIZED_AT_MISSING,
    NoticeId.FINDING_MISSING,
    NoticeId.SNAPSHOT_MISSING,
    NoticeId.REFERENCE_INVALID,
    NoticeId.APPROVAL_LABEL,
}

CASES = (*conformance_cases("parsing"), *conformance_cases("playbooks"))


def reasons(case: dict[str, Any]) -> set[str]:
    return set(case.get("differs") or ())


def refused_here(case: dict[str, Any]) -> bool:
    return bool(reasons(case) & (MALFORMED_HERE | NOT_ACTIONABLE_HERE))


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["case"]) for case in cases]


SAME_OUTCOME = [case for case in CASES if not refused_here(case)]
ACCEPTED = [case for case in SAME_OUTCOME if case["approve"]["status"] == 0]
REFUSED = [case for case in SAME_OUTCOME if case["approve"]["status"] == 1]
PROVISIONED = [case for case in ACCEPTED if "provision" in case]


def approved(case: dict[str, Any]) -> FinalizedPlan:
    return approve(load_plan(plan_bytes(case)), APPROVER, fixed_key(), now=CLOCK)


def provision_gates(plan: FinalizedPlan) -> None:
    check_executable(plan)
    verify_approvals(plan, {APPROVER: fixed_key().public}).require()


def test_no_case_goes_uncompared() -> None:
    assert set().union(*map(reasons, CASES)) <= MALFORMED_HERE | NOT_ACTIONABLE_HERE | LEFT_TO_THE_PLAYBOOK
    assert (len(conformance_cases("parsing")), len(conformance_cases("playbooks"))) == (173, 112)
    assert len(ACCEPTED) + len(REFUSED) + sum(map(refused_here, CASES)) == len(CASES)


@pytest.mark.parametrize("case", named(ACCEPTED))
def test_the_signed_bytes_are_those_of_the_go_tools(case: dict[str, Any]) -> None:
    digest = hashlib.sha256(canonical_bytes(approved(case))).hexdigest()
    assert digest == case["approve"]["canonical_sha256"]


@pytest.mark.parametrize("case", named(ACCEPTED))
def test_the_signed_plan_is_that_of_the_go_tools(case: dict[str, Any]) -> None:
    assert json.loads(dump_message(approved(case))) == case["approve"]["signed"]


@pytest.mark.parametrize("case", named(REFUSED))
def test_approve_refuses_what_the_go_tools_refuse(case: dict[str, Any]) -> None:
    with pytest.raises(PqcotaError) as refusal:
        approved(case)
    assert refusal.value.exit_status == 1


@pytest.mark.parametrize("case", named([case for case in CASES if reasons(case) & MALFORMED_HERE]))
def test_control_characters_are_refused_while_reading(case: dict[str, Any]) -> None:
    with pytest.raises(PlanMalformed, match="control character"):
        load_plan(plan_bytes(case))


@pytest.mark.parametrize(
    "case",
    named([case for case in CASES if reasons(case) & NOT_ACTIONABLE_HERE and not reasons(case) & MALFORMED_HERE]),
)
def test_what_could_only_be_guessed_at_is_refused_before_it_is_signed(case: dict[str, Any]) -> None:
    plan = load_plan(plan_bytes(case))
    with pytest.raises(PlanNotActionable):
        approve(plan, APPROVER, fixed_key(), now=CLOCK)


@pytest.mark.parametrize("case", named([case for case in CASES if case["unapproved_provision_status"] is not None]))
def test_provision_refuses_the_input_as_it_is(case: dict[str, Any]) -> None:
    assert case["unapproved_provision_status"] == 1
    with pytest.raises(PqcotaError):
        provision_gates(load_plan(plan_bytes(case)))


@pytest.mark.parametrize("case", named([case for case in ACCEPTED if case["case"] != "x-final-manysigs"]))
def test_provision_accepts_the_signed_plan(case: dict[str, Any]) -> None:
    provision_gates(load_plan(json.dumps(case["approve"]["signed"])))


def test_provision_refuses_a_signed_plan_with_signatures_that_do_not_hold() -> None:
    [case] = [case for case in CASES if case["case"] == "x-final-manysigs"]
    assert case["provision"]["l2 forward"]["status"] == 1
    verification = verify_approvals(load_plan(json.dumps(case["approve"]["signed"])), {APPROVER: fixed_key().public})
    assert verification.approved == (APPROVER,)
    assert [signature.approver for signature in verification.rejected] == ["x", APPROVER, "한국"]
    assert verification.labels == ("  padded label  ", ":ed25519:AAAA", "ed25519:AAAA")


@pytest.mark.parametrize("case", named(PROVISIONED))
def test_the_notices_about_the_plan_are_those_of_the_go_tools(case: dict[str, Any]) -> None:
    ours = [(notice.id.value, notice.action) for notice in plan_notices(approved(case))]
    ids = {notice_id.value for notice_id in ABOUT_THE_PLAN}
    for direction in ("l2 forward", "l2 rollback"):
        theirs = [tuple(notice) for notice in case["provision"][direction]["notices"] if notice[0] in ids]
        assert sorted(ours) == sorted(theirs)
