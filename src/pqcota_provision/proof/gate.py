"""The gate: a module reaches activation only if a prover has seen the same bytes run well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pqcota_provision.errors import ProofRefused
from pqcota_provision.plan.keys import PublicKey
from pqcota_provision.plan.model import FinalizedPlan, RemediationKind
from pqcota_provision.playbook.layout import is_config_action
from pqcota_provision.playbook.levels import Level, level_of
from pqcota_provision.playbook.paths import Module, module_of
from pqcota_provision.proof.statement import Proof
from pqcota_provision.proof.store import ProofStore
from pqcota_provision.proof.verification import Judgement, judge
from pqcota_provision.text import join_names, quote

_FLAWS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class ProvenModule:
    """A module that the plan activates, and the proofs that support it."""

    module: Module
    proofs: tuple[Proof, ...]

    @property
    def hashes(self) -> tuple[str, ...]:
        """The proven SHA-256 digests, each once, sorted."""
        return tuple(sorted({proof.sha256 for proof in self.proofs}))

    def sentence(self) -> str:
        """Return who proved the module, and which bytes a playbook must insist on, in one sentence."""
        provers = tuple(dict.fromkeys(quote(proof.prover) for proof in self.proofs))
        return (
            f"{self.module.file_name} is proven by {join_names(provers)}; "
            f"the playbook insists on sha256 {' or '.join(self.hashes)}."
        )

    def document(self) -> dict[str, object]:
        """Return the module and its proofs as a report shows them."""
        return {
            "module": self.module.file_name,
            "sha256": list(self.hashes),
            "proofs": [proof.document() for proof in self.proofs],
        }


def activated_modules(plan: FinalizedPlan, default_level: Level) -> tuple[Module, ...]:
    """Return each module of a PROVIDER_INJECT action that reaches L3, once, in order of first mention."""
    return tuple(
        dict.fromkeys(
            module_of(action)
            for action in plan.actions
            if action.kind == RemediationKind.PROVIDER_INJECT
            and is_config_action(action)
            and level_of(action, default_level) is Level.L3
        )
    )


def require_proofs(
    plan: FinalizedPlan,
    default_level: Level,
    *,
    store: ProofStore,
    registered: Mapping[str, PublicKey],
    provers: Sequence[str],
    platform: str,
) -> tuple[ProvenModule, ...]:
    """Return every module that the plan activates with the proofs by one of the provers that support it.

    A proof supports a module if it names the module's provider and the platform and holds under the key
    registered for its prover. Raises ProofRefused, with one problem a module that names the provers and what was
    found instead, and ProofStoreUnavailable. A plan that activates no module needs no proof.
    """
    modules = activated_modules(plan, default_level)
    if not modules:
        return ()
    judgements = tuple(judge(stored, registered) for stored in store.entries())
    proven = tuple(
        ProvenModule(module, tuple(_supporting(module, judgements, provers, platform))) for module in modules
    )
    unsupported = [
        f"{item.module.file_name} has no proof that it ran well, by {_one_of(provers)}, on {platform}: "
        + _found(item.module, judgements, registered, provers, platform)
        for item in proven
        if not item.proofs
    ]
    if unsupported:
        raise ProofRefused(unsupported)
    return proven


def _supporting(
    module: Module, judgements: Iterable[Judgement], provers: Sequence[str], platform: str
) -> Iterator[Proof]:
    for judgement in judgements:
        proof = judgement.proof
        if (
            proof is not None
            and judgement.holds
            and proof.prover in provers
            and proof.provider == module.provider
            and proof.platform == platform
        ):
            yield proof


def _found(
    module: Module,
    judgements: Iterable[Judgement],
    registered: Mapping[str, PublicKey],
    provers: Sequence[str],
    platform: str,
) -> str:
    """Return, as clauses, what the store has instead of a proof that supports the module."""
    unregistered = [
        f"no key is registered for the prover {quote(prover)}" for prover in provers if prover not in registered
    ]
    flaws = [
        f"{judgement.stored.place} {_shortcoming(judgement, provers, platform)}"
        for judgement in judgements
        if _is_about(judgement, module, provers)
    ]
    if not flaws:
        flaws = [f"there is no proof of {quote(module.provider)} in the store"]
    elif len(flaws) > _FLAWS_SHOWN:
        flaws[_FLAWS_SHOWN:] = [f"and {len(flaws) - _FLAWS_SHOWN} more that do not hold for it either"]
    return "; ".join((*unregistered, *flaws))


def _is_about(judgement: Judgement, module: Module, provers: Sequence[str]) -> bool:
    if judgement.proof is None:
        # For which provider it was nobody can tell.
        return judgement.stored.prover in provers
    return judgement.proof.provider == module.provider


def _shortcoming(judgement: Judgement, provers: Sequence[str], platform: str) -> str:
    proof = judgement.proof
    if judgement.flaw or proof is None:
        return judgement.flaw
    if proof.prover not in provers:
        return f"is by {quote(proof.prover)}, who is not asked for"
    return f"is for {proof.platform}, not for {platform}"


def _one_of(provers: Sequence[str]) -> str:
    return join_names([quote(prover) for prover in provers])
