"""The proof options of pqcota-provision: what is typed wrong is told before anything else is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pqcota_provision.cli import provision
from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import (
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

REVIEWER, CANARY = PrivateKey(bytes(range(32))), PrivateKey(bytes(range(1, 33)))
HASH = "0123456789abcdef" * 4


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of an approved plan that activates oqsprovider at --level l3 and only stages it below."""
    action = RemediationAction(
        id="a1",
        target_node_id="node-1",
        finding_id="f-1",
        crypto_runtime=CryptoRuntime.OPENSSL,
        kind=RemediationKind.PROVIDER_INJECT,
        automation_level=DeployAutomationLevel.UNSPECIFIED,
        target_algorithm="ML-KEM",
    )
    in_review = FinalizedPlan(id="p1", status=PlanStatus.IN_REVIEW, actions=(action,))
    path = tmp_path / "plan.json"
    path.write_text(dump_message(approve(in_review, "reviewer", REVIEWER, now=Timestamp(1_767_225_600))))
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", f"reviewer={REVIEWER.public.to_text()}")
    monkeypatch.setenv("PQCOTA_PROVER_KEYS", f"canary-1={CANARY.public.to_text()}")
    monkeypatch.delenv("PQCOTA_ORG", raising=False)
    return str(path)


@pytest.fixture
def proofs(tmp_path: Path) -> str:
    """The path of a store in which canary-1 has proven a build of oqsprovider on linux/amd64, for acme."""
    proof = Proof(
        "payments", "oqsprovider", "linux/amd64", HASH, "", "canary-1", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    )
    store = DirectoryProofStore(tmp_path / "proofs", "acme")
    store.put("payments", HASH, "canary-1", dump_proof(sign_proof(CANARY, proof)))
    return str(tmp_path / "proofs")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 1) -> str:
    assert provision.main(["--allow-incomplete", *arguments]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


ASKING = ("--level", "l3", "--require-proof", "canary-1", "--proof-platform", "linux/amd64")


def test_the_proofs_of_the_organization_let_its_plan_through(
    plan: str, proofs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_ORG", "acme")
    assert provision.main(["--allow-incomplete", *ASKING, "--proofs", proofs, plan]) == 0
    printed = capsys.readouterr()
    assert f'oqsprovider.so is proven by "canary-1"; the playbook insists on sha256 {HASH}.' in printed.err
    assert HASH in printed.out


def test_the_proofs_of_another_organization_do_not(plan: str, proofs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no proof of" in refused(capsys, *ASKING, "--proofs", proofs, plan)


def test_the_default_level_decides_whether_a_proof_is_needed(
    plan: str, proofs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert provision.main(["--allow-incomplete", "--require-proof", "canary-1", "--proofs", proofs, plan]) == 0
    assert "pqcota_pinned_hashes" not in capsys.readouterr().out


def test_this_machines_platform_is_meant_where_none_is_named(
    plan: str, proofs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_ORG", "acme")
    arguments = ["--allow-incomplete", "--level", "l3", "--require-proof", "canary-1", "--proofs", proofs, plan]
    told = {"Linux x86_64": 0, "Linux aarch64": 1}
    for machine, status in told.items():
        system, _, kind = machine.partition(" ")
        monkeypatch.setattr(os, "uname", lambda s=system, k=kind: os.uname_result((s, "n", "r", "v", k)))
        assert provision.main(arguments) == status
    assert "is for linux/amd64, not for linux/arm64" in capsys.readouterr().err


def test_without_any_registered_prover_nothing_is_proven(
    plan: str, proofs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PQCOTA_PROVER_KEYS")
    said = refused(capsys, *ASKING, "--proofs", proofs, plan)
    assert 'no key is registered for the prover "canary-1"' in said
    assert "PQCOTA_PROVER_KEYS" in said


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        pytest.param("canary-1", "has no '=' between prover and public key", id="no key"),
        pytest.param("canary-1=AAAA", "is not base64 of 32 bytes", id="no sound key"),
        pytest.param(
            f"canary-1={CANARY.public.to_text()},canary-2={CANARY.public.to_text()}",
            "the same public key",
            id="one key for two provers",
        ),
    ],
)
def test_a_key_map_that_is_not_sound_is_refused(
    plan: str,
    proofs: str,
    keys: str,
    problem: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PQCOTA_PROVER_KEYS", keys)
    assert problem in refused(capsys, *ASKING, "--proofs", proofs, plan)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--proofs", "x"], "which is not there", id="store without requirement"),
        pytest.param(["--proof-platform", "linux/amd64"], "which is not there", id="platform without requirement"),
        pytest.param(["--require-proof", "canary-1"], "needs a proof store", id="requirement without store"),
        pytest.param(["--require-proof", " , ", "--proofs", "x"], "names no prover", id="no prover"),
        pytest.param(["--require-proof", "a b", "--proofs", "x"], "is no plain file name", id="prover with a space"),
        pytest.param(["--require-proof", "../x", "--proofs", "x"], "is no plain file name", id="prover that is a path"),
        pytest.param(
            ["--require-proof", "a", "--proofs", "x", "--proof-platform", "amd64"],
            "is no platform like linux/amd64",
            id="half a platform",
        ),
    ],
)
def test_options_that_make_no_sense_are_wrong_usage(
    plan: str, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in refused(capsys, *arguments, plan, status=2)


def test_a_store_that_is_not_there_is_not_an_empty_one(
    plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, *ASKING, "--proofs", str(tmp_path / "nowhere"), plan)
    assert "cannot be read: No such file or directory" in said


def test_an_organization_that_may_not_be_used_is_refused(
    plan: str, proofs: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_REQUIRE_ORG", "1")
    assert "PQCOTA_REQUIRE_ORG" in refused(capsys, *ASKING, "--proofs", proofs, plan, status=2)


def test_a_rollback_never_waits_for_a_proof(plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert provision.main(["--allow-incomplete", *ASKING, "--proofs", nowhere, "--rollback", plan]) == 0
    assert capsys.readouterr().out.startswith("---\n")
