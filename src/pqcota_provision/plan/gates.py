"""The gates a plan passes before it is approved or executed (SPEC 4 and 11.1 to 11.3, 11.12)."""

from __future__ import annotations

from collections.abc import Iterator

from pqcota_provision.errors import PlanNotActionable, PlanNotApprovable, PlanNotFinalized
from pqcota_provision.plan.model import (
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
    wire_name,
)
from pqcota_provision.plan.names import refuse_class_name, refuse_file_name, refuse_host_name
from pqcota_provision.text import quote


def check_executable(plan: FinalizedPlan) -> None:
    """Raise unless the plan may be turned into a playbook, in either direction.

    PlanNotFinalized where approval is missing, PlanNotActionable where its content is.
    """
    if plan.status != PlanStatus.FINALIZED:
        raise PlanNotFinalized(
            f"the status of the plan is {wire_name(plan.status)}, not {PlanStatus.FINALIZED.wire_name}"
        )
    if not plan.approval_signatures:
        raise PlanNotFinalized("the plan has no approval signature")
    if not plan.actions:
        raise PlanNotFinalized("the plan has no action")
    _check_actions(plan)


def check_approvable(plan: FinalizedPlan) -> None:
    """Raise unless the plan may be given an approval in the state it is in.

    PlanNotApprovable where its status does not admit one or contradicts the plan, PlanNotActionable where
    its content could not be executed later.
    """
    if plan.status == PlanStatus.IN_REVIEW:
        if plan.approval_signatures:
            raise PlanNotApprovable("the plan is in review and yet carries approval signatures")
        if plan.finalized_at is not None:
            raise PlanNotApprovable("the plan is in review and yet has a finalizedAt")
    elif plan.status == PlanStatus.FINALIZED:
        if not plan.approval_signatures:
            raise PlanNotApprovable("the plan is finalized and yet carries no approval signature")
        if plan.finalized_at is None:
            raise PlanNotApprovable("the plan is finalized and yet has no finalizedAt")
    else:
        raise PlanNotApprovable(f"a plan with the status {wire_name(plan.status)} is not ready for approval")
    if not plan.actions:
        raise PlanNotActionable("the plan has no action")
    _check_actions(plan)


def place_of(index: int, action: RemediationAction) -> str:
    """Return how a message names an action: its position in the plan, and its id where it has one."""
    return f"actions[{index}] {quote(action.id)}" if action.id else f"actions[{index}]"


def _check_actions(plan: FinalizedPlan) -> None:
    problems = tuple(
        f"{place_of(index, action)}: {problem}"
        for index, action in enumerate(plan.actions)
        for problem in _problems(action)
    )
    if problems:
        raise PlanNotActionable(problems)


def _problems(action: RemediationAction) -> Iterator[str]:
    if not action.target_node_id:
        yield "targetNodeId is missing"
    elif reason := refuse_host_name(action.target_node_id):
        yield f"targetNodeId {quote(action.target_node_id)} {reason}"
    if action.kind == RemediationKind.UNSPECIFIED:
        yield "kind is missing"
    elif not isinstance(action.kind, RemediationKind):
        yield f"kind {action.kind} is none that this version knows"
    if not isinstance(action.automation_level, DeployAutomationLevel):
        yield f"automationLevel {action.automation_level} is none that this version knows"
    if action.provider_choice and (reason := refuse_file_name(action.provider_choice)):
        yield f"providerChoice {quote(action.provider_choice)} {reason}"
    if action.provider_class and (reason := refuse_class_name(action.provider_class)):
        yield f"providerClass {quote(action.provider_class)} {reason}"
