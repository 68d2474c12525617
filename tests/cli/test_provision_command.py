"""pqcota-provision as a user runs it: statuses, gates and approvals, options, the report, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

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
    environment,
    in_review,
    run,
    run_script,
    signed,
    text_of,
)

from playbook_reader import load_plays
from pqcota_provision.cli.provision import main

COMPLETE = signed()
INCOMPLETE = signed(in_review(action(findingId=None, evidenceSources=None), rulesetVersion=None))
NO_SUCH_FILE = "no such plan.json"
HOOKS = {"pre": "app check", "activate": "app on", "deactivate": "app off", "restart": "app restart"}


@pytest.fixture(autouse=True)
def _alice_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", ALICE_REGISTERED)


def _provision(plan: bytes, *options: str | Path) -> Ran:
    return run(main, *options, "-", stdin=plan)


def _hosts(ran: Ran) -> list[str]:
    return [play["hosts"] for play in load_plays(ran.out.decode("utf-8"))]


def _notices(ran: Ran) -> list[list[str]]:
    words = (line.replace(":", "").split() for line in ran.messages)
    return [[kind, notice_id] for _, kind, notice_id, *_ in words if kind in ("blank", "advice")]


class TestStatus:
    def test_a_plan_that_leaves_nothing_out_ends_in_0(self) -> None:
        ran = _provision(COMPLETE)
        assert (ran.status, _hosts(ran)) == (0, ["localhost", "node-1.example.net"])

    def test_advice_alone_ends_in_0(self) -> None:
        plan = signed(in_review(action(kind="REMEDIATION_KIND_REBUILD")))
        ran = _provision(plan)
        assert (ran.status, _notices(ran)) == (0, [["advice", "manual-step"]])

    def test_a_blank_ends_in_3_with_the_playbook(self) -> None:
        ran = _provision(INCOMPLETE)
        assert (ran.status, _hosts(ran)) == (3, ["localhost", "node-1.example.net"])
        assert ["blank", "ruleset-missing"] in _notices(ran)

    def test_allow_incomplete_changes_the_status_and_nothing_else(self) -> None:
        strict, lenient = _provision(INCOMPLETE), _provision(INCOMPLETE, "--allow-incomplete")
        assert (lenient.status, lenient.out, lenient.err) == (0, strict.out, strict.err)

    def test_allow_incomplete_allows_no_refusal(self) -> None:
        assert_refused(_provision(text_of(in_review()), "--allow-incomplete"))

    @pytest.mark.parametrize(
        "arguments",
        [
            pytest.param([], id="no-plan"),
            pytest.param(["-", "-"], id="two-plans"),
            pytest.param(["--level", "L3", "-"], id="level-in-capitals"),
            pytest.param(["--level", "l4", "-"], id="level-that-does-not-exist"),
            pytest.param(["--level", "", "-"], id="empty-level"),
            pytest.param(["-", "--level"], id="level-without-value"),
            pytest.param(["--force", "-"], id="unknown-option"),
            pytest.param(["--rollback=yes", "-"], id="value-for-a-switch"),
            pytest.param(["--verify", "--rollback", "-"], id="verify-of-a-rollback"),
            pytest.param(["--output", "", "-"], id="empty-output"),
            pytest.param(["--report", "", "-"], id="empty-report"),
            pytest.param(["--forc\x1b[31m\n", "-"], id="option-that-steers-the-terminal"),
        ],
    )
    def test_wrong_usage_ends_in_2_with_one_line(self, arguments: list[str]) -> None:
        ran = run(main, *arguments, stdin=COMPLETE)
        assert_refused(ran, status=2)
        assert len(ran.messages) == 1
        assert ran.messages[0].isprintable()

    def test_wrong_usage_comes_before_a_plan_that_is_not_there(self) -> None:
        assert_refused(run(main, "--level", "L3", NO_SUCH_FILE), status=2)


class TestGates:
    @pytest.mark.parametrize(
        ("plan", "names"),
        [
            pytest.param(text_of(in_review()), "PLAN_STATUS_IN_REVIEW", id="in-review"),
            pytest.param(altered(COMPLETE, status=None), "PLAN_STATUS_UNSPECIFIED", id="no-status"),
            pytest.param(altered(COMPLETE, status=9), "9", id="unknown-status"),
            pytest.param(altered(COMPLETE, approvalSignatures=[]), "signature", id="no-signature"),
            pytest.param(altered(COMPLETE, actions=[]), "no action", id="no-action"),
            pytest.param(altered(COMPLETE, actions=[action(targetNodeId=None)]), "targetNodeId", id="no-target"),
            pytest.param(altered(COMPLETE, actions=[action(targetNodeId="a,b")]), "targetNodeId", id="two-targets"),
            pytest.param(altered(COMPLETE, actions=[action(kind=None)]), "kind", id="no-kind"),
            pytest.param(altered(COMPLETE, actions=[action(kind=42)]), "kind 42", id="unknown-kind"),
            pytest.param(altered(COMPLETE, actions=[action(automationLevel=7)]), "automationLevel 7", id="bad-level"),
            pytest.param(altered(COMPLETE, actions=[action(providerChoice="../x")]), "providerChoice", id="bad-path"),
            pytest.param(altered(COMPLETE, actions=[action(providerClass="a b")]), "providerClass", id="bad-class"),
        ],
    )
    @pytest.mark.parametrize("direction", [[], ["--rollback"]], ids=["forward", "rollback"])
    def test_a_plan_that_is_not_ready_gives_no_playbook(self, plan: bytes, names: str, direction: list[str]) -> None:
        assert names in assert_refused(_provision(plan, *direction))

    @pytest.mark.parametrize(
        ("plan", "first"),
        [
            pytest.param(
                altered(COMPLETE, status="PLAN_STATUS_DRAFT", approvalSignatures=[], actions=[]),
                "PLAN_STATUS_DRAFT",
                id="status-before-signatures",
            ),
            pytest.param(
                altered(COMPLETE, approvalSignatures=[], actions=[]), "signature", id="signatures-before-actions"
            ),
            pytest.param(
                altered(COMPLETE, status="PLAN_STATUS_DRAFT", scope="x"), "status", id="status-before-approvals"
            ),
            pytest.param(altered(COMPLETE, actions=[action(kind=None)]), "kind", id="content-before-approvals"),
        ],
    )
    def test_the_first_thing_missing_is_the_one_that_is_named(self, plan: bytes, first: str) -> None:
        assert first in _provision(plan).messages[0]

    def test_what_is_missing_is_named_before_keys_that_are_malformed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", "alice")
        assert "PLAN_STATUS_IN_REVIEW" in assert_refused(_provision(text_of(in_review())))

    def test_every_action_that_cannot_be_carried_out_is_named_on_a_line(self) -> None:
        plan = altered(COMPLETE, actions=[action(id=f"a{number}", kind=None) for number in range(3)])
        ran = _provision(plan)
        assert [f'"a{number}"' in ran.messages[number] for number in range(3)] == [True] * 3

    def test_a_plan_with_thousands_of_faults_does_not_flood_the_terminal(self) -> None:
        plan = altered(COMPLETE, actions=[action(kind=None)] * 5000)
        assert len(_provision(plan).messages) < 40


class TestApprovals:
    def test_the_approvers_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", BOTH_REGISTERED)
        ran = _provision(signed(None, alice=ALICE, bob=BOB))
        assert (ran.status, ran.messages[0]) == (0, 'pqcota-provision: approved by "alice" and "bob".')

    @pytest.mark.parametrize("spaced", [" {} ", ", {} ,,", "\t{}\n"])
    def test_white_space_and_empty_pairs_in_the_key_map_do_not_matter(
        self, spaced: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", spaced.format(ALICE_REGISTERED.replace("=", " = ", 1)))
        assert _provision(COMPLETE).status == 0

    @pytest.mark.parametrize(
        "plan",
        [
            pytest.param(altered(COMPLETE, scope="everything"), id="plan-changed-after-signing"),
            pytest.param(altered(COMPLETE, finalizedAt="2026-01-02T03:04:05.678901235Z"), id="one-nanosecond-later"),
            pytest.param(signed(None, mallory=MALLORY), id="unregistered-approver"),
            pytest.param(signed(None, alice=MALLORY), id="another-key-under-the-approvers-name"),
            pytest.param(signed(None, alice=ALICE, mallory=MALLORY), id="one-good-and-one-unregistered"),
            pytest.param(altered(COMPLETE, approvalSignatures=["alice said yes"]), id="labels-only"),
            pytest.param(altered(COMPLETE, approvalSignatures=["alice:ed25519:AAAA"]), id="no-signature-in-it"),
        ],
    )
    @pytest.mark.parametrize("option", [[], ["--allow-unverified-approvals"]], ids=["strict", "unverified-allowed"])
    def test_an_approval_that_does_not_hold_gives_no_playbook(self, plan: bytes, option: list[str]) -> None:
        # With keys registered, --allow-unverified-approvals weakens nothing.
        assert_refused(_provision(plan, *option))

    def test_every_rejected_signature_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", BOTH_REGISTERED)
        said = assert_refused(_provision(altered(signed(None, alice=ALICE, bob=BOB, mallory=MALLORY), scope="x")))
        assert [name in said for name in ('"alice"', '"bob"', '"mallory"')] == [True] * 3

    def test_every_one_of_many_rejected_signatures_is_named(self) -> None:
        signatures = [f"somebody-{number}:ed25519:AAAA" for number in range(40)]
        said = assert_refused(_provision(altered(COMPLETE, approvalSignatures=signatures)))
        assert [f'"somebody-{number}"' in said for number in range(40)] == [True] * 40

    def test_a_label_beside_a_signature_is_pointed_out(self) -> None:
        signatures = json.loads(COMPLETE)["approvalSignatures"]
        ran = _provision(altered(COMPLETE, approvalSignatures=[*signatures, "carol agrees"]))
        assert (ran.status, _notices(ran)) == (0, [["advice", "approval-label"]])
        assert "carol agrees" in ran.err

    def test_a_label_is_pointed_out_where_no_signature_is_left_beside_it(self) -> None:
        said = assert_refused(_provision(altered(COMPLETE, approvalSignatures=["carol agrees"])))
        assert "advice approval-label" in said
        assert "carol agrees" in said

    @pytest.mark.parametrize("keys", [None, "", "  ", " , ,"])
    def test_without_any_registered_key_there_is_no_playbook(
        self, keys: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PQCOTA_APPROVAL_KEYS")
        if keys is not None:
            monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", keys)
        assert "PQCOTA_APPROVAL_KEYS" in assert_refused(_provision(COMPLETE))

    def test_unverified_approvals_are_allowed_on_the_command_line_and_that_is_said(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        verified = _provision(COMPLETE)
        monkeypatch.delenv("PQCOTA_APPROVAL_KEYS")
        ran = _provision(COMPLETE, "--allow-unverified-approvals")
        warning, separator, rest = ran.out.partition(b"#\n")
        assert (ran.status, warning.count(b"WERE NOT VERIFIED"), b"---\n" + rest) == (0, 1, verified.out)
        assert separator
        assert "NOT verified" in ran.err
        assert "approved by" not in ran.err

    @pytest.mark.parametrize(
        "variable",
        [
            "PQCOTA_ALLOW_UNVERIFIED_APPROVALS",
            "PQCOTA_PROVISION_ALLOW_UNVERIFIED_APPROVALS",
            "PQCOTA_UNVERIFIED",
            "ALLOW_UNVERIFIED_APPROVALS",
        ],
    )
    def test_no_variable_allows_unverified_approvals(self, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PQCOTA_APPROVAL_KEYS")
        monkeypatch.setenv(variable, "1")
        assert_refused(_provision(COMPLETE))

    @pytest.mark.parametrize("value", ["1", "0", "", "yes", "\x1b[31m"])
    @pytest.mark.parametrize(
        ("plan", "options"),
        [
            pytest.param(COMPLETE, [], id="accepted"),
            pytest.param(INCOMPLETE, ["--rollback"], id="rollback-with-blanks"),
            pytest.param(altered(COMPLETE, scope="x"), [], id="changed"),
            pytest.param(altered(COMPLETE, scope="x"), ["--allow-unverified-approvals"], id="changed-and-allowed"),
            pytest.param(text_of(in_review()), [], id="in-review"),
        ],
    )
    def test_PQCOTA_REQUIRE_APPROVAL_changes_nothing_at_all(  # noqa: N802
        self, value: str, plan: bytes, options: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        without = _provision(plan, *options)
        monkeypatch.setenv("PQCOTA_REQUIRE_APPROVAL", value)
        assert _provision(plan, *options) == without

    def test_PQCOTA_REQUIRE_APPROVAL_does_not_forbid_what_the_command_line_allows(  # noqa: N802
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PQCOTA_APPROVAL_KEYS")
        without = _provision(COMPLETE, "--allow-unverified-approvals")
        monkeypatch.setenv("PQCOTA_REQUIRE_APPROVAL", "1")
        assert _provision(COMPLETE, "--allow-unverified-approvals") == without

    _PUBLIC = ALICE.public.to_text()

    @pytest.mark.parametrize(
        "keys",
        [
            pytest.param("alice", id="no-equals-sign"),
            pytest.param("=" + _PUBLIC, id="no-approver"),
            pytest.param("alice=", id="no-key"),
            pytest.param(f"alice={_PUBLIC},alice={BOB.public.to_text()}", id="an-approver-twice"),
            pytest.param(f"alice={_PUBLIC},bob={_PUBLIC}", id="one-key-for-two"),
            pytest.param("alice=" + _PUBLIC[:-1], id="padding-lost"),
            pytest.param("alice=AQ" + "A" * 41 + "=", id="identity-point"),
            pytest.param("alice=" + "A" * 43 + "=", id="small-order-point"),
            pytest.param(f"alice={_PUBLIC},bob=\udcff\udcfe", id="bytes-that-are-no-utf8"),
            pytest.param("alice=" + ALICE.to_text(), id="a-private-key-by-mistake"),
            pytest.param(ALICE.to_text(), id="nothing-but-a-private-key"),
        ],
    )
    @pytest.mark.parametrize("option", [[], ["--allow-unverified-approvals"]], ids=["strict", "unverified-allowed"])
    def test_a_malformed_key_map_gives_no_playbook_and_shows_no_key(
        self, keys: str, option: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", keys)
        said = assert_refused(_provision(COMPLETE, *option))
        assert ALICE.to_text()[:20] not in said
        assert "key map" in said


class TestOptions:
    def test_options_after_the_plan_count_like_those_before_it(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        plan.write_bytes(INCOMPLETE)
        before = run(main, "--level", "l1", "--rollback", "--allow-incomplete", plan)
        assert run(main, plan, "--allow-incomplete", "--rollback", "--level=l1") == before
        assert before.status == 0

    def test_a_plan_whose_name_looks_like_an_option_is_read_after_two_dashes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "--rollback").write_bytes(COMPLETE)
        monkeypatch.chdir(tmp_path)
        assert run(main, "--", "--rollback").out == _provision(COMPLETE).out

    def test_standard_input_and_a_file_give_the_same_bytes(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        plan.write_bytes(COMPLETE)
        assert run(main, plan) == _provision(COMPLETE)

    @pytest.mark.parametrize(("options", "level"), [([], "l2"), (["--level", "l1"], "l1"), (["--level", "l3"], "l3")])
    def test_the_level_holds_for_actions_that_set_none(self, options: list[str], level: str) -> None:
        plan = signed(in_review(action(automationLevel=None, activation=HOOKS)))
        steps = {
            "l1": [b"/opt/pqcota/oqsprovider.so"],
            "l2": [b"/opt/pqcota/oqsprovider.so", b"/etc/pqcota/openssl-pqc.cnf"],
            "l3": [b"/opt/pqcota/oqsprovider.so", b"/etc/pqcota/openssl-pqc.cnf", b"app restart"],
        }
        out = _provision(plan, *options).out
        assert [step for step in steps["l3"] if step in out] == steps[level]

    def test_an_action_keeps_the_level_that_was_signed(self) -> None:
        plan = signed(in_review(action(automationLevel="DEPLOY_AUTOMATION_LEVEL_L1_STAGE_ONLY", activation=HOOKS)))
        assert b"app restart" not in _provision(plan, "--level", "l3").out

    def test_a_rollback_removes_what_the_plan_places(self) -> None:
        removed = [
            task["ansible.builtin.file"]["path"]
            for task in load_plays(_provision(COMPLETE, "--rollback").out.decode("utf-8"))[1]["tasks"]
            if task.get("ansible.builtin.file", {}).get("state") == "absent"
        ]
        assert removed == ["/etc/pqcota/openssl-pqc.cnf", "/opt/pqcota/oqsprovider.so"]


class TestReport:
    def _report(self, tmp_path: Path, plan: bytes, *options: str) -> tuple[Ran, Any]:
        path = tmp_path / "report.json"
        ran = _provision(plan, "--report", path, *options)
        return ran, json.loads(path.read_text("utf-8"))

    def test_it_holds_the_digest_of_exactly_what_standard_output_got(self, tmp_path: Path) -> None:
        ran, report = self._report(tmp_path, signed(in_review(scope="Größe", id="Größe-1")))
        assert report["playbookSha256"] == hashlib.sha256(ran.out).hexdigest()
        assert report["planId"] == "Größe-1"

    def test_it_holds_the_digest_of_exactly_what_the_output_file_got(self, tmp_path: Path) -> None:
        playbook = tmp_path / "playbook.yml"
        ran, report = self._report(tmp_path, COMPLETE, "--output", str(playbook))
        assert (ran.out, report["playbookSha256"]) == (b"", hashlib.sha256(playbook.read_bytes()).hexdigest())

    @pytest.mark.parametrize(
        ("options", "level", "direction"),
        [
            ([], "l2", "forward"),
            (["--level", "l3"], "l3", "forward"),
            (["--rollback", "--level", "l1"], "l1", "rollback"),
        ],
    )
    def test_it_says_how_far_and_which_way(
        self, options: list[str], level: str, direction: str, tmp_path: Path
    ) -> None:
        _, report = self._report(tmp_path, COMPLETE, *options)
        assert (report["level"], report["direction"]) == (level, direction)

    def test_it_names_the_approvers_that_were_verified(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", BOTH_REGISTERED)
        _, report = self._report(tmp_path, signed(None, bob=BOB, alice=ALICE))
        assert report["approvals"] == {"verified": True, "approvedBy": ["bob", "alice"]}

    def test_it_says_that_nothing_was_verified(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PQCOTA_APPROVAL_KEYS")
        _, report = self._report(tmp_path, COMPLETE, "--allow-unverified-approvals")
        assert report["approvals"] == {"verified": False, "approvedBy": []}

    def test_it_holds_every_notice_that_standard_error_shows(self, tmp_path: Path) -> None:
        ran, report = self._report(tmp_path, INCOMPLETE)
        assert [[notice["kind"], notice["id"]] for notice in report["notices"]] == _notices(ran)
        assert len(report["notices"]) == 3
        for notice in report["notices"]:
            assert list(notice) == ["id", "kind", "action", "node", "sentence", "remedy"]
            assert f"{notice['sentence']} {notice['remedy']}" in ran.err

    def test_a_notice_about_an_action_names_it_and_its_node(self, tmp_path: Path) -> None:
        _, report = self._report(tmp_path, INCOMPLETE)
        about = {notice["id"]: (notice["action"], notice["node"]) for notice in report["notices"]}
        assert about["finding-missing"] == ("a1", "node-1.example.net")
        assert about["ruleset-missing"] == ("", "")

    @pytest.mark.parametrize(("options", "status"), [([], 3), (["--allow-incomplete"], 0)])
    def test_it_holds_the_exit_status(self, options: list[str], status: int, tmp_path: Path) -> None:
        ran, report = self._report(tmp_path, INCOMPLETE, *options)
        assert (ran.status, report["exitStatus"]) == (status, status)

    @pytest.mark.parametrize(
        "plan",
        [
            pytest.param(b"{", id="malformed"),
            pytest.param(text_of(in_review()), id="in-review"),
            pytest.param(altered(COMPLETE, scope="x"), id="approval-that-does-not-hold"),
        ],
    )
    def test_a_refusal_writes_neither_report_nor_output(self, plan: bytes, tmp_path: Path) -> None:
        ran = _provision(plan, "--report", tmp_path / "report.json", "--output", tmp_path / "playbook.yml")
        assert_refused(ran)
        assert list(tmp_path.iterdir()) == []


class TestSameBytes:
    PLAN = signed(
        in_review(
            action(
                activation=HOOKS, automationLevel="DEPLOY_AUTOMATION_LEVEL_L3_FULL_AUTO", rollbackNote="größer 한국 🔒"
            ),
            action(
                id="a2",
                targetNodeId="node-2.example.net",
                cryptoRuntime="CRYPTO_RUNTIME_JCA",
                providerChoice="BC",
            ),
            scope="Größe",
        )
    )

    @pytest.mark.parametrize(
        "variables",
        [
            pytest.param({"PYTHONHASHSEED": "1"}, id="hash-seed-1"),
            pytest.param({"PYTHONHASHSEED": "2"}, id="hash-seed-2"),
            pytest.param({"LC_ALL": "C"}, id="locale-C"),
            pytest.param({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, id="no-utf8-mode"),
            pytest.param({"LANG": "", "LC_ALL": "", "PYTHONIOENCODING": "ascii"}, id="streams-in-ascii"),
            pytest.param({"PYTHONIOENCODING": "utf-16"}, id="streams-in-utf-16"),
            pytest.param({"TZ": "Asia/Seoul", "COLUMNS": "20"}, id="time-zone-and-terminal"),
            pytest.param({"PYTHONOPTIMIZE": "2"}, id="without-assertions-and-docstrings"),
            pytest.param({"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}, id="warnings-are-errors"),
        ],
    )
    def test_the_surroundings_change_no_byte(
        self, variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = _provision(self.PLAN)
        ran = run_script(
            "pqcota-provision",
            "-",
            stdin=self.PLAN,
            variables={"PQCOTA_APPROVAL_KEYS": ALICE_REGISTERED, **variables},
            cwd=tmp_path,
        )
        assert (ran.status, ran.out) == (expected.status, expected.out)
        if "IOENCODING" not in str(variables) and "C" not in variables.get("LC_ALL", ""):
            assert ran.err == expected.err
        assert list(tmp_path.iterdir()) == []

    def test_the_order_of_fields_and_the_spelling_of_names_change_no_byte(self) -> None:
        plan: Document = json.loads(self.PLAN)
        reordered = dict(reversed(plan.items()))
        reordered["approval_signatures"] = reordered.pop("approvalSignatures")
        assert _provision(text_of(reordered)).out == _provision(self.PLAN).out


def test_the_installed_script_ends_in_the_status_of_the_command(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(INCOMPLETE)
    ran = run_script("pqcota-provision", plan, variables={"PQCOTA_APPROVAL_KEYS": ALICE_REGISTERED})
    assert ran == run(main, plan)
    assert ran.status == 3


def test_no_variable_of_the_tests_reaches_a_script() -> None:
    assert os.environ["PQCOTA_APPROVAL_KEYS"]
    assert "PQCOTA_APPROVAL_KEYS" not in environment()
