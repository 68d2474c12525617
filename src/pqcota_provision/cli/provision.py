"""pqcota-provision: from an approved plan to a playbook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from pqcota_provision.cli import common
from pqcota_provision.cli.delivery import delivery, refuse_shared_places
from pqcota_provision.errors import ApprovalsNotVerified, UsageProblem
from pqcota_provision.plan.approvals import ApprovalVerification, verify_approvals
from pqcota_provision.plan.gates import check_executable
from pqcota_provision.plan.keys import PublicKey, parse_key_map
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.plan.protojson import load_plan
from pqcota_provision.playbook.generate import Direction, Playbook, generate
from pqcota_provision.playbook.levels import Level
from pqcota_provision.text import join_names, quote

if TYPE_CHECKING:
    from pqcota_provision.plan.notices import Notice

COMMAND = "pqcota-provision"
KEYS_VARIABLE = "PQCOTA_APPROVAL_KEYS"

_EPILOG = common.epilog(
    {
        KEYS_VARIABLE: "approver=public key pairs, joined by commas",
        "PQCOTA_REQUIRE_APPROVAL": "accepted, and changes nothing: approvals are always required",
    },
    {
        common.DONE: "done, and the plan left nothing out",
        common.REFUSED: "refused or failed; nothing on standard output",
        common.USAGE: "wrong usage",
        common.BLANKS: "done, but the plan leaves something out (see standard error)",
    },
)


@click.command(COMMAND, epilog=_EPILOG)
@click.argument("plan_path", metavar="PLAN")
@click.option(
    "--level",
    type=click.Choice([level.option for level in Level]),
    default=Level.L2.option,
    show_default=True,
    help="How far actions go that set no level of their own.",
)
@click.option("--rollback", is_flag=True, help="Undo the plan instead of carrying it out.")
@click.option(
    "--verify",
    is_flag=True,
    help="Add tasks that prove the effect on each node before its service is touched.",
)
@click.option("--allow-incomplete", is_flag=True, help="End in 0 where the plan leaves something out.")
@click.option(
    "--allow-unverified-approvals",
    is_flag=True,
    help="Go on without any registered key. Nothing is verified then.",
)
@click.option("--output", metavar="FILE", help="Write the playbook to FILE instead of standard output.")
@click.option("--report", metavar="FILE", help="Also write a JSON report of the run to FILE.")
@common.version_option(COMMAND)
def command(
    *,
    plan_path: str,
    level: str,
    rollback: bool,
    verify: bool,
    allow_incomplete: bool,
    allow_unverified_approvals: bool,
    output: str | None,
    report: str | None,
) -> int:
    """Turn an approved PLAN into an Ansible playbook on standard output.

    PLAN is a file, or - for standard input.
    """
    if verify and rollback:
        raise UsageProblem(
            "--verify proves what a plan places, and --rollback places nothing", remedy="Leave one of them out."
        )
    refuse_shared_places(
        {
            "PLAN": "/dev/stdin" if plan_path == common.STANDARD_STREAM else plan_path,
            "standard output" if output is None else "--output": output,
            **({} if report is None else {"--report": report}),
        }
    )
    plan = load_plan(common.read_input(plan_path))
    check_executable(plan)
    verification = _verify(plan, allow_unverified=allow_unverified_approvals)
    playbook = generate(
        plan,
        level=Level[level.upper()],
        direction=Direction.ROLLBACK if rollback else Direction.FORWARD,
        verify=verify,
    )
    status = common.BLANKS if playbook.has_blanks and not allow_incomplete else common.DONE
    with delivery() as handed:
        if report is not None:
            handed.add(report, [_report(plan, playbook, verification, level, rollback=rollback, status=status)])
        handed.add(output, playbook.parts)
        handed.hand_over()
    common.report_notices(COMMAND, playbook.notices)
    return status


def _verify(plan: FinalizedPlan, *, allow_unverified: bool) -> ApprovalVerification | None:
    keys = _registered_keys()
    if not keys:
        if not allow_unverified:
            raise ApprovalsNotVerified(
                "no approver's key is registered, so no approval can be verified",
                remedy=f"Set {KEYS_VARIABLE} to approver=public key pairs.",
            )
        common.say(COMMAND, "approvals were NOT verified: no key is registered and the command line allows that.")
        return None
    verification = verify_approvals(plan, keys)
    verification.require()
    approvers = join_names([quote(approver) for approver in verification.approved])
    common.say(COMMAND, f"approved by {approvers}.")
    return verification


def _registered_keys() -> Mapping[str, PublicKey]:
    return parse_key_map(common.environment(KEYS_VARIABLE))


def _report(
    plan: FinalizedPlan,
    playbook: Playbook,
    verification: ApprovalVerification | None,
    level: str,
    *,
    rollback: bool,
    status: int,
) -> str:
    import hashlib
    import json

    digest = hashlib.sha256()
    for part in playbook.parts:
        digest.update(part.encode("utf-8"))
    document = {
        "planId": plan.id,
        "playbookSha256": digest.hexdigest(),
        "level": level,
        "direction": (Direction.ROLLBACK if rollback else Direction.FORWARD).value,
        "approvals": {
            "verified": verification is not None,
            "approvedBy": list(verification.approved) if verification else [],
        },
        "exitStatus": status,
        "notices": [_notice_entry(notice) for notice in playbook.notices],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _notice_entry(notice: Notice) -> dict[str, str]:
    return {
        "id": notice.id.value,
        "kind": notice.kind.value,
        "action": notice.action,
        "node": notice.node,
        "sentence": notice.sentence,
        "remedy": notice.remedy,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return common.run(command, argv)
