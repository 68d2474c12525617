"""pqcota-provision: from an approved plan to a playbook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import click

from pqcota_provision.cli import common
from pqcota_provision.cli.delivery import delivery, refuse_shared_places
from pqcota_provision.cli.organization import organization_help
from pqcota_provision.errors import ApprovalsNotVerified, OutputFailed, UsageProblem
from pqcota_provision.plan.approvals import ApprovalVerification, verify_approvals
from pqcota_provision.plan.gates import check_executable
from pqcota_provision.plan.keys import PublicKey, parse_key_map
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.plan.notices import approval_label_notices, has_blanks
from pqcota_provision.plan.protojson import load_plan
from pqcota_provision.playbook.generate import Direction, Playbook, generate
from pqcota_provision.playbook.levels import Level
from pqcota_provision.text import join_names, quote

if TYPE_CHECKING:
    from pqcota_provision.cli.database import PlanRecorder
    from pqcota_provision.plan.notices import Notice
    from pqcota_provision.proof.gate import ProvenModule

COMMAND = "pqcota-provision"
KEYS_VARIABLE = "PQCOTA_APPROVAL_KEYS"
PROVER_KEYS_VARIABLE = "PQCOTA_PROVER_KEYS"
DSN_VARIABLE = "PQCOTA_DSN"

_EPILOG = common.epilog(
    {
        KEYS_VARIABLE: "approver=public key pairs, joined by commas",
        PROVER_KEYS_VARIABLE: "the same for the provers of --require-proof",
        **organization_help("records"),
        "PQCOTA_AUTO_DDL": "0: never create the table of records",
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
@click.option(
    "--require-proof",
    metavar="PROVER[,PROVER]",
    help="Refuse to activate a module that none of these provers has proven, and pin the proven bytes.",
)
@click.option("--proofs", metavar="DIR", help="The proof store for --require-proof.")
@click.option("--proof-platform", metavar="OS/ARCH", help="The platform of the nodes.  [default: this machine's]")
@click.option(
    "--dsn",
    metavar="DSN",
    help="Keep a record of what the nodes look like now in this Postgres, before anything is printed.",
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
    require_proof: str | None,
    proofs: str | None,
    proof_platform: str | None,
    dsn: str | None,
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
    if require_proof is None and (proofs is not None or proof_platform is not None):
        raise UsageProblem(
            "--proofs and --proof-platform are about --require-proof, which is not there",
            remedy="Add --require-proof PROVER, or leave them out.",
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
    _point_out_what_has_no_effect(plan, level, dsn)
    verification = _verify(plan, allow_unverified=allow_unverified_approvals)
    default_level = Level[level.upper()]
    proven: tuple[ProvenModule, ...] = ()
    # What undoes a plan must never wait for a proof.
    if require_proof is not None and not rollback:
        proven = _prove(plan, default_level, provers=require_proof, directory=proofs, platform=proof_platform)
    with _recorder(plan, dsn, rollback=rollback) as recorder, delivery() as handed:
        playbook = generate(
            plan,
            level=default_level,
            direction=Direction.ROLLBACK if rollback else Direction.FORWARD,
            verify=verify,
            approvals_verified=verification is not None,
            pinned={item.module.file_name: item.hashes for item in proven},
        )
        notices = playbook.notices if recorder is None else (*playbook.notices, *recorder.recording.notices)
        status = common.BLANKS if has_blanks(notices) and not allow_incomplete else common.DONE
        if report is not None:
            text = _report(
                plan,
                playbook,
                verification,
                proven,
                level,
                notices=notices,
                recorder=recorder,
                rollback=rollback,
                status=status,
            )
            handed.add(report, [text])
        handed.add(output, playbook.parts)
        kept = None if recorder is None else recorder.keep()
        try:
            handed.hand_over()
        except OutputFailed:
            if kept is not None:
                common.say(COMMAND, kept)
            raise
    common.report_notices(COMMAND, notices)
    if kept is not None:
        common.say(COMMAND, kept)
    return status


def _point_out_what_has_no_effect(plan: FinalizedPlan, level: str, dsn: str | None) -> None:
    source = click.get_current_context().get_parameter_source("level")
    if source is click.core.ParameterSource.COMMANDLINE and all(action.automation_level for action in plan.actions):
        common.say(COMMAND, f"--level {level} changes nothing: every action sets its own level, which was approved.")
    if dsn is None and common.environment(DSN_VARIABLE):
        common.say(COMMAND, f"{DSN_VARIABLE} is set, but records are kept with --dsn only; none are kept.")


def _recorder(plan: FinalizedPlan, dsn: str | None, *, rollback: bool) -> AbstractContextManager[PlanRecorder | None]:
    if dsn is None:
        return nullcontext()
    if rollback:
        common.say(COMMAND, "a rollback keeps no record, so the database of --dsn is not used.")
        return nullcontext()
    from pqcota_provision.cli.database import plan_recorder

    return plan_recorder(plan, dsn, COMMAND)


def _prove(
    plan: FinalizedPlan, level: Level, *, provers: str, directory: str | None, platform: str | None
) -> tuple[ProvenModule, ...]:
    from pqcota_provision.cli.proof_gate import proven_modules

    keys = parse_key_map(common.environment(PROVER_KEYS_VARIABLE), holder="prover")
    proven = proven_modules(plan, level, provers=provers, keys=keys, directory=directory, platform=platform)
    for item in proven:
        common.say(COMMAND, item.sentence())
    return proven


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
    try:
        verification.require()
    except ApprovalsNotVerified:
        # No playbook will come out that could carry them.
        common.report_notices(COMMAND, approval_label_notices(plan))
        raise
    approvers = join_names([quote(approver) for approver in verification.approved])
    common.say(COMMAND, f"approved by {approvers}.")
    return verification


def _registered_keys() -> Mapping[str, PublicKey]:
    return parse_key_map(common.environment(KEYS_VARIABLE))


def _report(
    plan: FinalizedPlan,
    playbook: Playbook,
    verification: ApprovalVerification | None,
    proven: tuple[ProvenModule, ...],
    level: str,
    *,
    notices: Sequence[Notice],
    recorder: PlanRecorder | None,
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
        "proven": [item.document() for item in proven],
        "records": None if recorder is None else recorder.document(),
        "exitStatus": status,
        "notices": [_notice_entry(notice) for notice in notices],
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
    return common.run(command, argv, collect_garbage=False)
