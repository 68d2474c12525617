"""pqcota-approve as a user runs it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from command_runs import (
    ALICE,
    ALICE_REGISTERED,
    BOB,
    BOTH_REGISTERED,
    MALLORY,
    Document,
    Ran,
    action,
    altered,
    assert_refused,
    in_review,
    run,
    run_script,
    signed,
    text_of,
)

from pqcota_provision.cli.approve import main
from pqcota_provision.plan.approvals import verify_approvals
from pqcota_provision.plan.keys import PrivateKey, parse_key_map
from pqcota_provision.plan.protojson import load_plan

SPLIT_WITHOUT_IDS = in_review(
    action(id=None, configArtifact="openssl_conf = one\n"), action(id=None, configArtifact="openssl_conf = two\n")
)


@pytest.fixture(autouse=True)
def _alice_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEY", ALICE.to_text())


def _approve(plan: bytes, *options: str | Path, approver: str = "alice") -> Ran:
    return run(main, "--approver", approver, *options, "-", stdin=plan)


def _approvers(plan: bytes) -> list[str]:
    return [entry.split(":")[0] for entry in json.loads(plan)["approvalSignatures"]]


def test_the_first_approval_finalizes_the_plan_and_verifies() -> None:
    before = time.time_ns()
    ran = _approve(text_of(in_review()))
    plan = load_plan(ran.out)
    assert ran.status == 0
    assert verify_approvals(plan, parse_key_map(ALICE_REGISTERED)).approved == ("alice",)
    assert plan.status == 3
    assert plan.finalized_at is not None
    assert before <= plan.finalized_at.seconds * 10**9 + plan.finalized_at.nanos <= time.time_ns()


def test_who_approved_what_is_said_on_standard_error() -> None:
    ran = _approve(text_of(in_review()))
    assert len(ran.messages) == 1
    assert '"plan-1"' in ran.err
    assert '"alice"' in ran.err


def test_a_second_approver_changes_nothing_but_the_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    first = signed()
    monkeypatch.setenv("PQCOTA_APPROVAL_KEY", BOB.to_text())
    second = _approve(first, approver="bob").out
    assert verify_approvals(load_plan(second), parse_key_map(BOTH_REGISTERED)).approved == ("alice", "bob")
    assert json.loads(first) == json.loads(second) | {"approvalSignatures": json.loads(first)["approvalSignatures"]}


def test_approving_twice_adds_nothing() -> None:
    once = signed()
    ran = _approve(once)
    assert (ran.status, ran.out) == (0, once)
    assert "nothing was added" in ran.err


def test_an_approver_id_is_trimmed() -> None:
    assert _approvers(_approve(text_of(in_review()), approver="  alice\t").out) == ["alice"]


@pytest.mark.parametrize("surrounding", ["  {}", "{}\n", "\t{}  \r\n"])
def test_white_space_around_the_private_key_does_not_matter(surrounding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEY", surrounding.format(ALICE.to_text()))
    assert _approve(signed()).out == signed()


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(in_review(status="PLAN_STATUS_DRAFT"), id="draft"),
        pytest.param(in_review(status=None), id="status-unset"),
        pytest.param(in_review(status=77), id="status-unknown"),
        pytest.param(in_review(approvalSignatures=["bob said yes"]), id="in-review-with-a-signature"),
        pytest.param(in_review(finalizedAt="2026-01-02T03:04:05Z"), id="in-review-with-a-time"),
        pytest.param(in_review(actions=[]), id="no-actions"),
        pytest.param(in_review(action(targetNodeId=None)), id="action-without-target"),
        pytest.param(in_review(action(kind=None)), id="action-without-kind"),
        pytest.param(in_review(action(targetNodeId="all")), id="target-of-many-hosts"),
        pytest.param(in_review(action(providerChoice="../../etc/cron.d/x")), id="provider-outside-its-directory"),
        pytest.param(in_review(scope="a\u0000b"), id="control-character"),
        pytest.param(SPLIT_WITHOUT_IDS, id="fragments-that-need-paths-and-have-no-ids"),
        pytest.param(
            in_review(
                action(
                    cryptoRuntime="CRYPTO_RUNTIME_JCA",
                    providerChoice="acme",
                    automationLevel="DEPLOY_AUTOMATION_LEVEL_L3_FULL_AUTO",
                )
            ),
            id="activation-of-a-provider-without-class",
        ),
    ],
)
def test_a_plan_that_can_never_be_carried_out_gets_no_signature(document: Document) -> None:
    assert_refused(_approve(text_of(document)))


@pytest.mark.parametrize("lost", ["approvalSignatures", "finalizedAt"])
def test_a_finalized_plan_that_contradicts_itself_gets_no_signature(lost: str) -> None:
    assert_refused(_approve(altered(signed(), **{lost: None})))


def test_no_one_co_signs_a_plan_that_was_changed_after_its_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEY", BOB.to_text())
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", BOTH_REGISTERED)
    said = assert_refused(_approve(altered(signed(), scope="everything"), approver="bob"))
    assert '"alice"' in said


def test_no_one_co_signs_beside_an_unregistered_approver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", ALICE_REGISTERED)
    said = assert_refused(_approve(signed(None, mallory=MALLORY)))
    assert '"mallory"' in said


def test_a_registered_approver_co_signs_a_plan_that_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", BOTH_REGISTERED)
    assert _approvers(_approve(signed(None, bob=BOB)).out) == ["bob", "alice"]


def test_a_key_registered_for_somebody_else_does_not_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", BOTH_REGISTERED)
    assert_refused(_approve(text_of(in_review()), approver="bob"))


def test_a_key_map_that_is_malformed_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", "alice")
    assert_refused(_approve(text_of(in_review())))


@pytest.mark.parametrize("value", ["", "   ", None])
def test_a_missing_private_key_is_wrong_usage(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PQCOTA_APPROVAL_KEY")
    if value is not None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEY", value)
    said = assert_refused(_approve(text_of(in_review())), status=2)
    assert "PQCOTA_APPROVAL_KEY" in said


_SECRET = ALICE.to_text()


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(_SECRET[:-4], id="cut-short"),
        pytest.param(_SECRET.rstrip("="), id="padding-lost"),
        pytest.param(_SECRET + "AAAA", id="too-long"),
        pytest.param(_SECRET[:44], id="the-seed-alone"),
        pytest.param(_SECRET[:40] + " " + _SECRET[40:], id="a-space-in-it"),
        pytest.param(_SECRET.replace("A", "-"), id="the-url-alphabet"),
        pytest.param(f"PQCOTA_SIGN_KEY={_SECRET}", id="the-whole-assignment"),
        pytest.param(f"'{_SECRET}'", id="quotes-left-on"),
        pytest.param(_SECRET + "\u20ac", id="a-character-outside-ASCII"),
        pytest.param(_SECRET + "\udcff", id="a-byte-that-is-no-UTF-8"),
        pytest.param(BOB.to_text()[:43] + _SECRET[43:], id="halves-of-two-keys"),
    ],
)
def test_a_malformed_private_key_is_refused_and_never_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEY", value)
    said = assert_refused(_approve(text_of(in_review())))
    shown = {value[start : start + 12] for start in range(len(value) - 11)} - {"PQCOTA_SIGN_", "QCOTA_SIGN_K"}
    assert not [part for part in shown if part in said]


def test_a_private_key_that_is_no_utf8_in_the_environment_is_never_shown() -> None:
    ran = run_script(
        "pqcota-approve",
        "--approver",
        "alice",
        "-",
        stdin=text_of(in_review()),
        variables={"PQCOTA_APPROVAL_KEY": _SECRET + "\udcff\udcfe"},
    )
    assert _SECRET[:12] not in assert_refused(ran)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-"], id="no-approver"),
        pytest.param(["--approver", "alice"], id="no-plan"),
        pytest.param(["--approver"], id="option-without-value"),
        pytest.param(["--approver", "alice", "-", "-"], id="two-plans"),
        pytest.param(["--approver", "", "-"], id="empty-approver"),
        pytest.param(["--approver", " ", "-"], id="blank-approver"),
        pytest.param(["--approver", "a:b", "-"], id="colon-in-the-approver"),
        pytest.param(["--approver", "a,b", "-"], id="comma-in-the-approver"),
        pytest.param(["--approver", "a=b", "-"], id="equals-sign-in-the-approver"),
        pytest.param(["--approver", "al\u202eice", "-"], id="approver-that-reads-otherwise"),
        pytest.param(["--approver", "al\udcffice", "-"], id="approver-that-is-no-utf8"),
        pytest.param(["--approver", "alice", "--force", "-"], id="unknown-option"),
        pytest.param(["--approver", "alice", "--output", "", "-"], id="empty-output"),
    ],
)
def test_wrong_usage_is_told_apart_from_a_refusal(arguments: list[str]) -> None:
    assert_refused(run(main, *arguments, stdin=text_of(in_review())), status=2)


def test_a_private_key_given_as_the_approver_is_not_shown() -> None:
    assert _SECRET not in assert_refused(_approve(text_of(in_review()), approver=_SECRET), status=2)


def test_a_plan_is_approved_in_place(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(text_of(in_review()))
    plan.chmod(0o640)
    ran = run(main, plan, "--output", plan, "--approver", "alice")
    assert (ran.status, ran.out) == (0, b"")
    assert _approvers(plan.read_bytes()) == ["alice"]
    assert plan.stat().st_mode & 0o777 == 0o640


def test_a_plan_that_is_refused_stays_as_it_was_in_place(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    before = text_of(in_review(actions=[]))
    plan.write_bytes(before)
    assert_refused(run(main, plan, "--output", plan, "--approver", "alice"))
    assert plan.read_bytes() == before
    assert list(tmp_path.iterdir()) == [plan]


def test_the_installed_script_approves_a_plan_in_a_file(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(text_of(in_review(scope="Größe, 한국, 🔒")))
    ran = run_script("pqcota-approve", plan, "--approver", "alice", variables={"PQCOTA_APPROVAL_KEY": ALICE.to_text()})
    assert ran.status == 0
    assert _approvers(ran.out) == ["alice"]
    assert json.loads(ran.out)["scope"] == "Größe, 한국, 🔒"


def test_the_key_that_signs_is_the_one_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    other = PrivateKey(bytes(range(9, 41)))
    monkeypatch.setenv("PQCOTA_APPROVAL_KEY", other.to_text())
    plan = load_plan(_approve(text_of(in_review())).out)
    assert verify_approvals(plan, {"alice": other.public}).approved == ("alice",)
