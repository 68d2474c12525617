"""Whether what lies in a store is a proof, and whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pqcota_provision.errors import ProofMalformed
from pqcota_provision.plan.keys import PublicKey
from pqcota_provision.proof.statement import Proof, load_proof
from pqcota_provision.proof.store import StoredProof
from pqcota_provision.text import quote


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an entry of a store is worth: a proof that holds, or the flaw, as a clause, that makes it worth nothing.

    ``proof`` is what the entry says, also where that does not hold, and None where it cannot be read.
    """

    stored: StoredProof
    proof: Proof | None
    flaw: str = ""

    @property
    def holds(self) -> bool:
        """Whether the registered prover signed this very statement for this very place."""
        return not self.flaw


def judge(stored: StoredProof, registered: Mapping[str, PublicKey]) -> Judgement:
    """Judge an entry by its place and by its prover's registered key; for which platform it is plays no part."""
    try:
        proof = load_proof(stored.data)
    except ProofMalformed as error:
        return Judgement(stored, None, f"is no proof: {error}")
    return Judgement(stored, proof, _misplacement(stored, proof) or _signature_flaw(proof, registered))


def _misplacement(stored: StoredProof, proof: Proof) -> str:
    said = (
        ("app", proof.app, stored.app),
        ("sha256", proof.sha256, stored.sha256),
        ("prover", proof.prover, stored.prover),
    )
    for name, value, place in said:
        if value != place:
            return f"names the {name} {quote(value)}, but lies where proofs of {quote(place)} belong"
    return ""


def _signature_flaw(proof: Proof, registered: Mapping[str, PublicKey]) -> str:
    own = registered.get(proof.prover)
    if own is None:
        return f"is by {quote(proof.prover)}, for whom no key is registered"
    if proof.holds_under(own):
        return ""
    for other, key in registered.items():
        if other != proof.prover and proof.holds_under(key):
            return f"is signed with the key of {quote(other)}, not with that of {quote(proof.prover)}"
    return (
        f"does not match its signature under the registered key of {quote(proof.prover)}: "
        "a field was changed after it was signed, or it was signed with another key"
    )
