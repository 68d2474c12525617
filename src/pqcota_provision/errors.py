"""The one family of errors that a user of the suite can cause.

Each error carries the exit status a command ends with, who has to act, what is wrong (one line a problem,
each naming its place), and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable

REFUSED = 1
USAGE = 2

PROBLEMS_SHOWN = 20


class PqcotaError(Exception):
    """Base of every error a user can cause.

    ``problems`` are complete sentences without a final stop; ``remedy`` says what to do next.
    """

    exit_status = REFUSED
    audience = "operator"
    remedy = ""

    def __init__(self, problems: str | Iterable[str], *, remedy: str | None = None) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        if remedy is not None:
            self.remedy = remedy
        super().__init__(*self.problems)

    def __str__(self) -> str:
        shown = list(self.problems[:PROBLEMS_SHOWN])
        if len(self.problems) > PROBLEMS_SHOWN:
            shown.append(f"and {len(self.problems) - PROBLEMS_SHOWN} more")
        return "; ".join(shown)


class UsageProblem(PqcotaError):
    """A command was called in a way it cannot act on (exit status 2)."""

    exit_status = USAGE


class InputUnreadable(PqcotaError):
    """A file or stream could not be read as text at all."""

    audience = "environment"
    remedy = "Check the path and its permissions, or pass - to read standard input."


class OutputFailed(PqcotaError):
    """The product could not be written where it was asked for."""

    audience = "environment"
    remedy = "Check the directory, its permissions and the free space, then run the command again."


class PlanMalformed(PqcotaError):
    """The text is no plan in protobuf JSON (SPEC 2); each problem names its place."""

    audience = "plan author"
    remedy = "Correct the plan at that place; docs/plan-fields.md describes every field."


class PlanNotFinalized(PqcotaError):
    """The plan has not been through approval (SPEC 4, the first three gates)."""

    audience = "approver"
    remedy = "Take the plan back to approval: pqcota-approve --approver ID PLAN."


class PlanNotActionable(PqcotaError):
    """The plan's content cannot be acted on (SPEC 4 and 11.1 to 11.3, 11.5, 11.12)."""

    audience = "plan author"
    remedy = "Correct the content of the plan, then have it approved again."


class PlanNotApprovable(PqcotaError):
    """The plan's status does not admit an approval, or contradicts the rest of the plan (SPEC 4)."""

    audience = "plan author"
    remedy = (
        "A plan comes to approval as PLAN_STATUS_IN_REVIEW without signatures and without finalizedAt, "
        "or as PLAN_STATUS_FINALIZED with both."
    )


class ApprovalsNotVerified(PqcotaError):
    """The approvals of a plan do not hold against the registered keys (SPEC 4)."""

    audience = "approver"
    remedy = "Find out who changed the plan or the keys since it was signed; a changed plan has to be approved anew."


class KeyUnusable(PqcotaError):
    """A private key, public key or key map is malformed or unsound (SPEC 3). Never shows the key."""

    remedy = "Make a key pair with pqcota-keygen and register its public key once, under one approver."


class RecordsUnavailable(PqcotaError):
    """The record store or the history could not be read or written; nothing was kept."""

    audience = "environment"
    remedy = "Check the database, the DSN and the role's rights, then run the command again."
