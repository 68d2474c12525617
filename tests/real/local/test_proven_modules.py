"""Proofs on the real thing: what the gate lets through, and what the pinned hashes stop."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from sandbox import NODE, Outcome, Sandbox

from pqcota_provision.cli import provision
from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import (
    ActivationHooks,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
)
from pqcota_provision.plan.protojson import dump_message
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.statement import Proof, dump_proof, sign_proof
from pqcota_provision.proof.store import DirectoryProofStore

pytestmark = pytest.mark.real

MODULE = "/opt/pqcota/oqsprovider.so"
REVIEWER, CANARY = PrivateKey(bytes(range(32))), PrivateKey(bytes(range(1, 33)))
PROVEN, UNPROVEN = b"the build that ran on the canary", b"another build under its name"


class Fleet:
    """An operator with an approved plan, a proof store, and a node to carry the plan out on."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.store = DirectoryProofStore(sandbox.root / "proofs", "default")
        self.playbook = sandbox.root / "provision.yml"
        (sandbox.root / "proofs").mkdir()

    def prove(self, module: bytes) -> None:
        proof = Proof(
            app="payments",
            provider="oqsprovider",
            platform="linux/amd64",
            sha256=hashlib.sha256(module).hexdigest(),
            version="0.8.0",
            prover="canary-1",
            active_since="2026-01-01T00:00:00Z",
            proven_at="2026-01-02T00:00:00Z",
        )
        self.store.put(proof.app, proof.sha256, proof.prover, dump_proof(sign_proof(CANARY, proof)))

    def generate(self, *options: str, pre: str = "") -> int:
        """Write the playbook of an approved plan that activates the module; return the exit status."""
        plan = approve(self._plan(pre), "reviewer", REVIEWER, now=Timestamp(1_767_225_600))
        path = self.sandbox.root / "plan.json"
        path.write_text(dump_message(plan), encoding="utf-8")
        return provision.main(
            [
                "--allow-incomplete", "--output", str(self.playbook),
                "--require-proof", "canary-1", "--proofs", str(self.sandbox.root / "proofs"),
                "--proof-platform", "linux/amd64", *options, str(path),
            ]
        )  # fmt: skip

    def _plan(self, pre: str) -> FinalizedPlan:
        state = self.sandbox.state
        action = RemediationAction(
            id="a1",
            target_node_id=NODE,
            finding_id="f-1",
            crypto_runtime=CryptoRuntime.OPENSSL,
            kind=RemediationKind.PROVIDER_INJECT,
            automation_level=DeployAutomationLevel.L3_FULL_AUTO,
            target_algorithm="ML-KEM",
            provider_choice="oqsprovider",
            activation=ActivationHooks(
                pre=f"echo stopped >> '{state}'; {pre}",
                activate=f"echo activated >> '{state}'",
                deactivate=f"echo deactivated >> '{state}'",
                restart=f"echo running >> '{state}'",
            ),
        )
        return FinalizedPlan(id="p1", status=PlanStatus.IN_REVIEW, actions=(action,))

    def run(self, *arguments: str) -> Outcome:
        return self.sandbox.play(self.playbook.read_text(encoding="utf-8"), *arguments)


@pytest.fixture
def fleet(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", f"reviewer={REVIEWER.public.to_text()}")
    monkeypatch.setenv("PQCOTA_PROVER_KEYS", f"canary-1={CANARY.public.to_text()}")
    monkeypatch.delenv("PQCOTA_ORG", raising=False)
    return Fleet(sandbox)


def test_a_proven_module_is_activated(fleet: Fleet) -> None:
    fleet.prove(PROVEN)
    assert fleet.generate() == 0
    fleet.sandbox.supply("oqsprovider.so", PROVEN)
    outcome = fleet.run()
    assert outcome.status == 0, outcome.output
    assert fleet.sandbox.files()[MODULE] == PROVEN
    assert fleet.sandbox.state.read_text().split() == ["stopped", "activated", "running"]


def test_each_of_several_proven_builds_is_activated(fleet: Fleet) -> None:
    fleet.prove(b"the build before")
    fleet.prove(PROVEN)
    assert fleet.generate() == 0
    fleet.sandbox.supply("oqsprovider.so", b"the build before")
    outcome = fleet.run()
    assert outcome.status == 0, outcome.output


def test_an_unproven_module_is_refused_before_anything_is_generated(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    report = fleet.sandbox.root / "report.json"
    assert fleet.generate("--report", str(report)) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert 'oqsprovider.so has no proof that it ran well, by "canary-1", on linux/amd64' in printed.err
    assert not fleet.playbook.exists()
    assert not report.exists()


def test_other_bytes_under_the_proven_name_are_stopped_with_nothing_changed(fleet: Fleet) -> None:
    fleet.prove(PROVEN)
    assert fleet.generate() == 0
    fleet.sandbox.supply("oqsprovider.so", UNPROVEN)
    outcome = fleet.run()
    assert outcome.status != 0
    assert "Nothing was changed on this node" in outcome.output
    assert outcome.changed == 0
    assert fleet.sandbox.files() == {}
    assert not fleet.sandbox.state.exists()


@pytest.mark.parametrize("variable", ["pqcota_module_sha256", "pqcota_module_sha256_oqsprovider"])
def test_a_hash_given_by_hand_does_not_stand_in_for_a_proof(fleet: Fleet, variable: str) -> None:
    fleet.prove(PROVEN)
    assert fleet.generate() == 0
    fleet.sandbox.supply("oqsprovider.so", UNPROVEN)
    outcome = fleet.run("-e", f"{variable}={hashlib.sha256(UNPROVEN).hexdigest()}")
    assert outcome.status != 0
    assert fleet.sandbox.files() == {}


def test_a_proof_does_not_stand_in_for_a_hash_given_by_hand(fleet: Fleet) -> None:
    fleet.prove(PROVEN)
    assert fleet.generate() == 0
    fleet.sandbox.supply("oqsprovider.so", PROVEN)
    outcome = fleet.run("-e", f"pqcota_module_sha256={hashlib.sha256(UNPROVEN).hexdigest()}")
    assert outcome.status != 0
    assert fleet.sandbox.files() == {}


def test_bytes_exchanged_on_the_way_to_the_node_are_measured_there_and_taken_back(fleet: Fleet) -> None:
    """The pre hook runs after the controller's copy was checked and before it is staged."""
    fleet.prove(PROVEN)
    swap = fleet.sandbox.root / "swapped"
    swap.write_bytes(UNPROVEN)
    source = fleet.sandbox.controller / "files" / "oqsprovider.so"
    assert fleet.generate(pre=f"cp '{swap}' '{source}'") == 0
    fleet.sandbox.supply("oqsprovider.so", PROVEN)
    outcome = fleet.run()
    assert outcome.status != 0
    assert "The module on this node is not the expected one" in outcome.output
    assert fleet.sandbox.files() == {}
    assert fleet.sandbox.state.read_text().split()[-1] == "running"
    assert "activated" not in fleet.sandbox.state.read_text().split()


def test_a_rollback_never_waits_for_a_proof(fleet: Fleet) -> None:
    assert fleet.generate("--rollback") == 0
    outcome = fleet.run()
    assert outcome.status == 0, outcome.output


def test_the_report_names_the_proofs_that_a_playbook_rests_on(fleet: Fleet) -> None:
    fleet.prove(PROVEN)
    report = fleet.sandbox.root / "report.json"
    assert fleet.generate("--report", str(report)) == 0
    (entry,) = json.loads(report.read_text())["proven"]
    assert entry["module"] == "oqsprovider.so"
    assert entry["sha256"] == [hashlib.sha256(PROVEN).hexdigest()]
    assert [proof["prover"] for proof in entry["proofs"]] == ["canary-1"]


def test_the_same_plan_and_store_give_the_same_playbook(fleet: Fleet) -> None:
    fleet.prove(PROVEN)
    fleet.prove(UNPROVEN)
    assert fleet.generate() == 0
    first = fleet.playbook.read_bytes()
    assert fleet.generate() == 0
    assert fleet.playbook.read_bytes() == first


def test_without_the_option_nothing_is_pinned(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.generate() == 1
    path = tmp_path / "plain.yml"
    plan = str(fleet.sandbox.root / "plan.json")
    assert provision.main(["--allow-incomplete", "--output", str(path), plan]) == 0
    assert "pqcota_pinned_hashes" not in path.read_text()
