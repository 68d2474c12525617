"""pqcota-approve: one more approval on a plan."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from pqcota_provision.cli import common
from pqcota_provision.cli.delivery import delivery, refuse_shared_places
from pqcota_provision.errors import UsageProblem
from pqcota_provision.plan.approvals import approve, normalize_approver
from pqcota_provision.plan.keys import PrivateKey, parse_key_map
from pqcota_provision.plan.model import FinalizedPlan, PlanStatus
from pqcota_provision.plan.notices import NoticeKind, plan_notices
from pqcota_provision.plan.protojson import dump_message, load_plan
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.playbook.layout import check_activation, lay_out
from pqcota_provision.playbook.levels import Level
from pqcota_provision.playbook.notices import forward_notices
from pqcota_provision.text import quote

COMMAND = "pqcota-approve"
KEY_VARIABLE = "PQCOTA_APPROVAL_KEY"
KEYS_VARIABLE = "PQCOTA_APPROVAL_KEYS"

_EPILOG = common.epilog(
    {
        KEY_VARIABLE: "the approver's private key, as pqcota-keygen prints it (required)",
        KEYS_VARIABLE: "if set, signatures already on the plan must verify against these",
    },
    {
        common.DONE: "approved",
        common.REFUSED: "refused or failed; nothing on standard output",
        common.USAGE: "wrong usage, or no private key in the environment",
    },
)


@click.command(COMMAND, epilog=_EPILOG)
@click.argument("plan_path", metavar="PLAN")
@click.option("--approver", metavar="ID", required=True, help="The approver's id, as registered with the key.")
@click.option("--output", metavar="FILE", help="Write the signed plan to FILE instead of standard output.")
@common.version_option(COMMAND)
def command(*, plan_path: str, approver: str, output: str | None) -> int:
    """Approve PLAN and write it, with the signature, to standard output.

    The first approval finalizes the plan. PLAN is a file, or - for standard input.
    """
    refuse_shared_places({"standard output" if output is None else "--output": output})
    name = normalize_approver(approver)
    secret = common.environment(KEY_VARIABLE)
    if not secret:
        raise UsageProblem(
            f"{KEY_VARIABLE} is not set", remedy="Put the private key that pqcota-keygen printed into it."
        )
    key = PrivateKey.parse(secret)
    registered = common.environment(KEYS_VARIABLE)
    plan = load_plan(common.read_input(plan_path))
    signed = approve(
        plan,
        name,
        key,
        now=Timestamp.from_nanoseconds(time.time_ns()),
        registered=parse_key_map(registered) if registered else None,
    )
    # A plan that could never become a playbook is not worth a signature; at L1 only an action's own L3 counts.
    lay_out(signed, Level.L3)
    check_activation(signed, Level.L1)
    notices = [*plan_notices(signed), *forward_notices(signed, Level.L2, lay_out(signed, Level.L2))]
    text = dump_message(signed)
    with delivery() as handed:
        handed.add(output, [text])
        handed.hand_over()
    common.say(COMMAND, _summary(plan, signed, name))
    # What the plan leaves out is cheaper to mend now than after everybody has signed.
    common.report_notices(COMMAND, [notice for notice in notices if notice.kind is NoticeKind.BLANK])
    return common.DONE


def _summary(plan: FinalizedPlan, signed: FinalizedPlan, approver: str) -> str:
    plan_name = f"plan {quote(plan.id)}" if plan.id else "the plan without id"
    if signed == plan:
        return f"{plan_name} already carries this signature of {quote(approver)}; nothing was added."
    finalized = " and finalized" if plan.status != PlanStatus.FINALIZED else ""
    count = len(signed.actions)
    return (
        f"{plan_name}, with {count} action{'' if count == 1 else 's'}, approved{finalized} by {quote(approver)}; "
        f"it now carries {len(signed.approval_signatures)} approval "
        f"{'entry' if len(signed.approval_signatures) == 1 else 'entries'}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return common.run(command, argv, collect_garbage=False)
