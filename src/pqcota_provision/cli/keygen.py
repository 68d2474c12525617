"""pqcota-keygen: an ed25519 key pair for an approver."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import click

from pqcota_provision.cli import common
from pqcota_provision.plan.keys import SEED_SIZE, PrivateKey

COMMAND = "pqcota-keygen"

_EPILOG = common.epilog(
    {}, {common.DONE: "a key pair was printed", common.REFUSED: "failed", common.USAGE: "wrong usage"}
)


@click.command(COMMAND, epilog=_EPILOG)
@common.version_option(COMMAND)
def command() -> int:
    """Print a new ed25519 key pair as shell assignments.

    PQCOTA_SIGN_KEY is the private key, for PQCOTA_APPROVAL_KEY of pqcota-approve; PQCOTA_VERIFY_KEY is the
    public key, for PQCOTA_APPROVAL_KEYS of pqcota-provision.
    """
    key = PrivateKey(secrets.token_bytes(SEED_SIZE))
    common.write_output(
        [
            "# An ed25519 key pair. Keep PQCOTA_SIGN_KEY secret: whoever has it can approve plans.\n"
            "# eval \"$(pqcota-keygen | grep '^PQCOTA_')\" sets both variables in a shell.\n"
            f"PQCOTA_SIGN_KEY={key.to_text()}\n"
            f"PQCOTA_VERIFY_KEY={key.public.to_text()}\n"
        ]
    )
    return common.DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return common.run(command, argv)
