"""The proof options of pqcota-provision: from what was typed to the proofs that support a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pqcota_provision.cli.organization import organization
from pqcota_provision.errors import UsageProblem
from pqcota_provision.plan.keys import PublicKey
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.plan.names import refuse_file_name
from pqcota_provision.playbook.levels import Level
from pqcota_provision.proof.gate import ProvenModule, require_proofs
from pqcota_provision.proof.statement import platform_name, refuse_platform
from pqcota_provision.proof.store import DirectoryProofStore
from pqcota_provision.text import quote


def proven_modules(
    plan: FinalizedPlan,
    level: Level,
    *,
    provers: str,
    keys: Mapping[str, PublicKey],
    directory: str | None,
    platform: str | None,
) -> tuple[ProvenModule, ...]:
    """Return the modules that the plan activates with their proofs; raises PqcotaError where one lacks any.

    ``provers`` is a list joined by commas; without a platform, this machine's is meant.
    """
    if not directory:
        raise UsageProblem("--require-proof needs a proof store", remedy="Name it with --proofs DIR.")
    if platform is None:
        system = os.uname()
        platform = platform_name(system.sysname, system.machine)
    elif reason := refuse_platform(platform):
        raise UsageProblem(f"--proof-platform {quote(platform)} {reason}", remedy="Write it as the proofs do.")
    return require_proofs(
        plan,
        level,
        store=DirectoryProofStore(Path(os.path.abspath(directory)), organization()),
        registered=keys,
        provers=_names(provers),
        platform=platform,
    )


def _names(provers: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in provers.split(",") if name.strip()))
    if not names:
        raise UsageProblem("--require-proof names no prover", remedy="Name one or more, joined by commas.")
    for name in names:
        if reason := refuse_file_name(name):
            raise UsageProblem(f"the prover {quote(name)} {reason}", remedy="Name provers as their proofs do.")
    return names
