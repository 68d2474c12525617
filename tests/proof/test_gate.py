"""The gate: each way in which a store fails to support an activation is named as what it is."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from proving_lab import CANARY_KEY, OTHER_KEY

from pqcota_provision.errors import ProofRefused, ProofStoreUnavailable
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import (
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.playbook.levels import Level
from pqcota_provision.proof.gate import ProvenModule, activated_modules, require_proofs
from pqcota_provision.proof.statement import Proof, dump_proof, sign_proof
from pqcota_provision.proof.store import DirectoryProofStore

FIRST, SECOND = "1" * 64, "2" * 64
PROOF = Proof(
    app="payments",
    provider="oqsprovider",
    platform="linux/amd64",
    sha256=FIRST,
    version="0.8.0",
    prover="canary-1",
    active_since="2026-01-01T00:00:00Z",
    proven_at="2026-01-02T00:00:00Z",
)
REGISTERED = {"canary-1": CANARY_KEY.public, "canary-2": OTHER_KEY.public}
STRANGER = PrivateKey(bytes(range(2, 34)))

INJECT = RemediationAction(
    id="a1",
    target_node_id="node-1",
    crypto_runtime=CryptoRuntime.OPENSSL,
    kind=RemediationKind.PROVIDER_INJECT,
    automation_level=DeployAutomationLevel.L3_FULL_AUTO,
    provider_choice="oqsprovider",
)


class Shelf:
    """What a test wants in the store, each at the place that the proof itself names unless told another."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str, str, bytes]] = []

    def add(self, proof: Proof, *, prover: str = "", app: str = "", sha256: str = "", data: bytes = b"") -> Shelf:
        place = (app or proof.app, sha256 or proof.sha256, prover or proof.prover)
        self._entries.append((*place, data or dump_proof(proof)))
        return self

    def fill(self, directory: Path) -> DirectoryProofStore:
        """Return a store in the directory that holds all of it."""
        store = DirectoryProofStore(directory, "acme")
        for entry in self._entries:
            store.put(*entry)
        return store


def signed(key: PrivateKey = CANARY_KEY, **changes: str) -> Proof:
    return sign_proof(key, replace(PROOF, **changes))


def gate(
    shelf: Shelf, *actions: RemediationAction, provers: tuple[str, ...] = ("canary-1",)
) -> dict[str, tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as directory:
        proven = ask(shelf.fill(Path(directory)), *actions, provers=provers)
    return {item.module.file_name: item.hashes for item in proven}


def ask(
    store: DirectoryProofStore, *actions: RemediationAction, provers: tuple[str, ...] = ("canary-1",)
) -> tuple[ProvenModule, ...]:
    return require_proofs(
        FinalizedPlan(actions=actions or (INJECT,)),
        Level.L2,
        store=store,
        registered=REGISTERED,
        provers=provers,
        platform="linux/amd64",
    )


def refusal(shelf: Shelf, *actions: RemediationAction, provers: tuple[str, ...] = ("canary-1",)) -> str:
    with pytest.raises(ProofRefused) as caught:
        gate(shelf, *actions, provers=provers)
    return str(caught.value)


def test_a_proven_module_passes_and_is_pinned_to_the_proven_bytes() -> None:
    assert gate(Shelf().add(signed())) == {"oqsprovider.so": (FIRST,)}


def test_every_proven_build_is_pinned_from_whichever_app_it_comes() -> None:
    shelf = Shelf().add(signed(sha256=SECOND, app="ledger")).add(signed()).add(signed(app="web"))
    assert gate(shelf) == {"oqsprovider.so": (FIRST, SECOND)}


def test_any_one_of_the_provers_is_enough() -> None:
    shelf = Shelf().add(signed(OTHER_KEY, prover="canary-2"))
    assert gate(shelf, provers=("canary-1", "canary-2")) == {"oqsprovider.so": (FIRST,)}


def test_a_proof_that_does_not_hold_pins_nothing_beside_one_that_does() -> None:
    shelf = Shelf().add(signed()).add(replace(signed(), sha256=SECOND))
    assert gate(shelf) == {"oqsprovider.so": (FIRST,)}


def test_a_refusal_names_the_module_the_provers_and_the_platform() -> None:
    assert refusal(Shelf(), provers=("canary-1", "canary-2")) == (
        'oqsprovider.so has no proof that it ran well, by "canary-1" and "canary-2", on linux/amd64: '
        'there is no proof of "oqsprovider" in the store'
    )


PLACE = f'"acme/payments/{FIRST}/canary-1.json"'


@pytest.mark.parametrize(
    ("shelf", "found"),
    [
        pytest.param(Shelf(), 'there is no proof of "oqsprovider" in the store', id="none"),
        pytest.param(
            Shelf().add(signed(provider="acme")),
            'there is no proof of "oqsprovider" in the store',
            id="another provider",
        ),
        pytest.param(
            Shelf().add(signed(OTHER_KEY)),
            f'{PLACE} is signed with the key of "canary-2", not with that of "canary-1"',
            id="another prover's key",
        ),
        pytest.param(
            Shelf().add(signed(STRANGER)),
            f'{PLACE} does not match its signature under the registered key of "canary-1": '
            "a field was changed after it was signed, or it was signed with another key",
            id="a stranger's key",
        ),
        pytest.param(
            Shelf().add(replace(signed(), version="0.9.0")),
            f'{PLACE} does not match its signature under the registered key of "canary-1"',
            id="one field changed",
        ),
        pytest.param(
            Shelf().add(replace(signed(platform="linux/arm64"), platform="linux/amd64")),
            "does not match its signature",
            id="platform changed to the one asked for",
        ),
        pytest.param(
            Shelf().add(replace(signed(provider="acme"), provider="oqsprovider")),
            "does not match its signature",
            id="provider changed to the one asked for",
        ),
        pytest.param(
            Shelf().add(signed(platform="linux/arm64")),
            f"{PLACE} is for linux/arm64, not for linux/amd64",
            id="another platform",
        ),
        pytest.param(
            Shelf().add(signed(OTHER_KEY, prover="canary-2")),
            f'"acme/payments/{FIRST}/canary-2.json" is by "canary-2", who is not asked for',
            id="a prover who is not asked for",
        ),
        pytest.param(
            Shelf().add(signed(STRANGER, prover="mallory")),
            f'"acme/payments/{FIRST}/mallory.json" is by "mallory", for whom no key is registered',
            id="an unregistered prover",
        ),
        pytest.param(
            Shelf().add(signed(), sha256=SECOND),
            f'names the sha256 "{FIRST}", but lies where proofs of "{SECOND}" belong',
            id="moved to another hash",
        ),
        pytest.param(
            Shelf().add(signed(OTHER_KEY, prover="canary-2"), prover="canary-1"),
            'names the prover "canary-2", but lies where proofs of "canary-1" belong',
            id="moved to another prover",
        ),
        pytest.param(
            Shelf().add(signed(), app="ledger"),
            'names the app "payments", but lies where proofs of "ledger" belong',
            id="moved to another app",
        ),
        pytest.param(Shelf().add(PROOF, data=b"{"), f"{PLACE} is no proof: it is no JSON", id="cut off"),
        pytest.param(Shelf().add(PROOF), "does not match its signature", id="unsigned"),
    ],
)
def test_what_the_store_has_instead_is_named_as_what_it_is(shelf: Shelf, found: str) -> None:
    assert found in refusal(shelf)


def test_a_prover_who_is_asked_for_without_a_registered_key_is_named() -> None:
    said = refusal(Shelf().add(signed(STRANGER, prover="canary-9")), provers=("canary-9",))
    assert 'no key is registered for the prover "canary-9"' in said
    assert f'"acme/payments/{FIRST}/canary-9.json" is by "canary-9", for whom no key is registered' in said


def test_every_unproven_module_is_named() -> None:
    other = replace(INJECT, id="a2", provider_choice="acme-pqc")
    with pytest.raises(ProofRefused) as caught:
        gate(Shelf(), INJECT, other)
    assert [problem.split(" ")[0] for problem in caught.value.problems] == ["oqsprovider.so", "acme-pqc.so"]


def test_one_unproven_module_among_proven_ones_is_enough_for_a_refusal() -> None:
    other = replace(INJECT, id="a2", provider_choice="acme-pqc")
    said = refusal(Shelf().add(signed()), INJECT, other)
    assert said.startswith("acme-pqc.so ")


def test_a_store_full_of_flaws_does_not_drown_the_reader() -> None:
    shelf = Shelf()
    for number in range(50):
        shelf.add(signed(platform="linux/arm64", sha256=f"{number:064x}"))
    assert refusal(shelf).endswith("; and 44 more that do not hold for it either")


@pytest.mark.parametrize(
    ("changes", "default", "expected"),
    [
        pytest.param({}, Level.L1, ("oqsprovider.so",), id="level of its own"),
        pytest.param(
            {"automation_level": DeployAutomationLevel.UNSPECIFIED}, Level.L3, ("oqsprovider.so",), id="default level 3"
        ),
        pytest.param({"automation_level": DeployAutomationLevel.UNSPECIFIED}, Level.L2, (), id="default level 2"),
        pytest.param({"automation_level": DeployAutomationLevel.L2_STAGE_INSTALL}, Level.L3, (), id="only installed"),
        pytest.param({"provider_choice": ""}, Level.L2, ("oqsprovider.so",), id="default provider"),
        pytest.param({"crypto_runtime": CryptoRuntime.JCA, "provider_choice": ""}, Level.L2, ("BC.jar",), id="JCA"),
        pytest.param({"crypto_runtime": CryptoRuntime.WIN_CNG}, Level.L2, (), id="nothing generated"),
        pytest.param({"kind": RemediationKind.CONFIG_ONLY}, Level.L2, (), id="no module"),
        pytest.param({"kind": RemediationKind.REBUILD}, Level.L2, (), id="by hand"),
    ],
)
def test_only_modules_that_are_activated_need_a_proof(
    changes: dict[str, object], default: Level, expected: tuple[str, ...]
) -> None:
    plan = FinalizedPlan(actions=(replace(INJECT, **changes),))  # type: ignore[arg-type]
    assert tuple(module.file_name for module in activated_modules(plan, default)) == expected


def test_a_plan_that_activates_nothing_does_not_even_need_a_store(tmp_path: Path) -> None:
    absent = DirectoryProofStore(tmp_path / "proofs", "acme")
    staged = replace(INJECT, automation_level=DeployAutomationLevel.L2_STAGE_INSTALL)
    assert ask(absent, staged) == ()
    with pytest.raises(ProofStoreUnavailable):
        ask(absent)


def test_a_jar_is_judged_by_the_proofs_of_its_own_provider() -> None:
    action = replace(INJECT, crypto_runtime=CryptoRuntime.JCA, provider_choice="acme")
    assert gate(Shelf().add(signed(provider="acme")), action) == {"acme.jar": (FIRST,)}
