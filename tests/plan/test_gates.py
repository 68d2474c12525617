"""The gates of execution: in which order they refuse, and that they name everything that is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from plan_samples import ACTION, LABELLED, with_action

from pqcota_provision.errors import PROBLEMS_SHOWN, PlanNotActionable, PlanNotFinalized
from pqcota_provision.plan.gates import check_executable, place_of
from pqcota_provision.plan.model import FinalizedPlan, PlanStatus, RemediationAction
from pqcota_provision.plan.names import refuse_class_name, refuse_file_name, refuse_host_name
from pqcota_provision.text import printable

NOTHING = FinalizedPlan()


def test_a_finalized_and_signed_plan_with_sound_actions_passes() -> None:
    check_executable(LABELLED)


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        pytest.param(
            NOTHING,
            "the status of the plan is PLAN_STATUS_UNSPECIFIED, not PLAN_STATUS_FINALIZED",
            id="status-unspecified",
        ),
        pytest.param(
            replace(LABELLED, status=PlanStatus.IN_REVIEW),
            "the status of the plan is PLAN_STATUS_IN_REVIEW, not PLAN_STATUS_FINALIZED",
            id="in-review",
        ),
        pytest.param(
            replace(LABELLED, status=PlanStatus.DRAFT),
            "the status of the plan is PLAN_STATUS_DRAFT, not PLAN_STATUS_FINALIZED",
            id="draft",
        ),
        pytest.param(
            replace(LABELLED, status=99), "the status of the plan is 99, not PLAN_STATUS_FINALIZED", id="unknown"
        ),
        pytest.param(
            replace(NOTHING, status=PlanStatus.FINALIZED), "the plan has no approval signature", id="unsigned"
        ),
        pytest.param(
            replace(NOTHING, status=PlanStatus.FINALIZED, approval_signatures=("",)),
            "the plan has no action",
            id="no-action",
        ),
    ],
)
def test_a_plan_that_was_not_approved_is_refused(plan: FinalizedPlan, problem: str) -> None:
    with pytest.raises(PlanNotFinalized) as refusal:
        check_executable(plan)
    assert refusal.value.problems == (problem,)
    assert refusal.value.exit_status == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"target_node_id": ""}, "targetNodeId is missing", id="no-target"),
        pytest.param({"target_node_id": "a;b"}, f'targetNodeId "a;b" {refuse_host_name("a;b")}', id="pattern"),
        pytest.param({"kind": 0}, "kind is missing", id="no-kind"),
        pytest.param({"kind": 99}, "kind 99 is none that this version knows", id="kind-unknown"),
        pytest.param({"kind": -1}, "kind -1 is none that this version knows", id="kind-negative"),
        pytest.param({"automation_level": 4}, "automationLevel 4 is none that this version knows", id="level-unknown"),
        pytest.param({"provider_choice": "../x"}, f'providerChoice "../x" {refuse_file_name("../x")}', id="provider"),
        pytest.param({"provider_class": "a b"}, f'providerClass "a b" {refuse_class_name("a b")}', id="class"),
    ],
)
def test_a_plan_whose_content_cannot_be_acted_on_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(PlanNotActionable) as refusal:
        check_executable(with_action(LABELLED, **changes))
    assert refusal.value.problems == (f'actions[0] "a1": {problem}',)
    assert refusal.value.exit_status == 1


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_level_that_is_unset_or_known_passes(level: int) -> None:
    check_executable(with_action(LABELLED, automation_level=type(ACTION.automation_level)(level)))


@pytest.mark.parametrize("runtime", [0, 3, 99])
def test_a_runtime_that_nothing_can_be_generated_for_is_no_refusal(runtime: int) -> None:
    check_executable(with_action(LABELLED, crypto_runtime=runtime))


def test_the_first_three_gates_send_the_reader_to_approval_and_the_others_to_the_content() -> None:
    with pytest.raises(PlanNotFinalized) as unapproved:
        check_executable(NOTHING)
    with pytest.raises(PlanNotActionable) as unactionable:
        check_executable(with_action(LABELLED, kind=0))
    assert (unapproved.value.audience, unactionable.value.audience) == ("approver", "plan author")
    assert "pqcota-approve" in unapproved.value.remedy
    assert "content" in unactionable.value.remedy


def test_all_problems_of_all_actions_are_named_in_the_order_of_the_plan() -> None:
    bare = RemediationAction()
    bad = replace(
        ACTION, target_node_id="all", kind=9, automation_level=9, provider_choice=".x", provider_class="1", id="b\n"
    )
    with pytest.raises(PlanNotActionable) as refusal:
        check_executable(replace(LABELLED, actions=(bare, ACTION, bad)))
    problems = refusal.value.problems
    assert problems[:3] == (
        "actions[0]: targetNodeId is missing",
        "actions[0]: kind is missing",
        'actions[2] "b\\n": targetNodeId "all" is an Ansible group of many hosts, not one host',
    )
    assert [problem.split()[2] for problem in problems[3:]] == [
        "kind",
        "automationLevel",
        "providerChoice",
        "providerClass",
    ]
    assert all(printable(problem) == problem for problem in problems)


def test_a_long_list_of_problems_is_kept_whole_and_shown_in_part() -> None:
    with pytest.raises(PlanNotActionable) as refusal:
        check_executable(replace(LABELLED, actions=(RemediationAction(),) * 500))
    assert len(refusal.value.problems) == 1000
    assert str(refusal.value).endswith(f"; and {1000 - PROBLEMS_SHOWN} more")


def test_an_action_is_named_by_its_position_and_its_id() -> None:
    assert (place_of(3, ACTION), place_of(4, replace(ACTION, id=""))) == ('actions[3] "a1"', "actions[4]")
