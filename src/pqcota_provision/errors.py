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
    problems_shown: int | None = PROBLEMS_SHOWN
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


class OutputClosed(OutputFailed):
    """Whoever read standard output went away before all of it was written."""

    remedy = "Let the reader take all of it, or write it to a file."


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

    # Every rejected signature is named.
    problems_shown = None
    audience = "approver"
    remedy = (
        "Either the plan was changed after it was signed and has to be approved anew, or the registered keys "
        "lack that approver's or hold another one for it."
    )


class KeyUnusable(PqcotaError):
    """A private key, public key or key map is malformed or unsound (SPEC 3). Never shows the key."""

    remedy = "Make a key pair with pqcota-keygen and register its public key once, under one approver."


class KeyMapMalformed(KeyUnusable):
    """A map of public keys cannot be read (SPEC 3)."""

    remedy = (
        "Write id=public key pairs joined by commas, each id once and each key once, copied whole with its '=' "
        "at the end: PQCOTA_VERIFY_KEY of pqcota-keygen."
    )


class RecordsUnavailable(PqcotaError):
    """The record store or the history could not be read or written; nothing was kept."""

    audience = "environment"
    remedy = "Check the database, the DSN and the role's rights, then run the command again."


class RecordTableMissing(RecordsUnavailable):
    """The table of records is not there, and this command does not create it (SPEC 10)."""


class RecordUnstorable(RecordsUnavailable):
    """A record holds text that Postgres cannot keep; none of its plan was kept."""

    audience = "plan author"
    remedy = "Correct that text in the plan, then have it approved again."


class CommitUncertain(RecordsUnavailable):
    """The connection broke while the server was committing, so nobody can tell from here whether it did."""

    remedy = "Run pqcota-records --plan ID to see whether the records are there, then run the command again."


class DsnMalformed(UsageProblem):
    """A DSN is none that libpq understands. Never shows the DSN, since a password may stand in it."""

    remedy = (
        "Write a URI (postgresql://user@host:5432/database, with special characters percent-encoded), "
        "key=value pairs (host=db.example dbname=pqcota), or service=NAME; docs/operations.md shows each."
    )


class OrganizationRefused(UsageProblem):
    """No organization is named where one must be, or its name may not be used (SPEC 10)."""

    remedy = (
        "Set PQCOTA_ORG to the name of your organization: 2 to 64 lowercase letters, digits and hyphens, "
        "not beginning with a hyphen."
    )


class NotPermitted(PqcotaError):
    """The command needs rights that the user does not have."""

    remedy = "Run the command as root."


class NodeConfigMalformed(PqcotaError):
    """The service registry or the proof policy of a node cannot be read as such; each problem names its place."""

    remedy = "Correct the file; docs/proofs.md describes every field."


class NodeUnreadable(PqcotaError):
    """A unit, a process or a mapped file of the node cannot be looked at."""

    audience = "environment"
    remedy = "Check that the unit runs on this machine and that the command runs as root."


class NodeStateUnusable(PqcotaError):
    """The state a node keeps (healthy history, refusals, census, markers) cannot be read or written."""

    audience = "environment"
    remedy = "Check the state directory, its owner, mode and free space."


class ProofMalformed(PqcotaError):
    """A text is no proof, or a proof cannot say what it was asked to."""

    audience = "prover"
    remedy = "Have the proving node mint the proof again in a store where nothing lies at that place."


class ProofAlreadyThere(PqcotaError):
    """The store holds a proof at that place; proofs are never overwritten."""

    audience = "prover"
    remedy = "Leave it: the proof that is there stands."


class ProofStoreUnavailable(PqcotaError):
    """The proof store cannot be read or written."""

    audience = "environment"
    remedy = "Check the directory given with --proofs, its permissions and the free space."


class ProofRefused(PqcotaError):
    """No valid proof supports an activation; each problem names the module, the provers and what was found."""

    remedy = (
        "Let a proving node run these modules for as long as its policy asks, bring its proofs into the store, "
        "and check that PQCOTA_PROVER_KEYS holds the prover's public key and --proof-platform the nodes' platform."
    )
