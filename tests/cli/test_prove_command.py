"""pqcota-prove as a user runs it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from pqcota_provision.cli import prove
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.state import HealthyBuild, NodeState
from pqcota_provision.proof.statement import Proof, dump_proof, load_proof, sign_proof
from pqcota_provision.proof.store import DirectoryProofStore

KEY = PrivateKey(bytes(range(32)))
HASH = "0123456789abcdef" * 4
NOBODY = 65534

_DAEMON = "import ctypes, sys\nctypes.CDLL(sys.argv[1])\nprint('loaded', flush=True)\nsys.stdin.read()\n"
# Answers as systemd does, for a unit whose main process the test started.
_SYSTEMCTL = """#!/bin/sh
cat <<END
MainPID={pid}
LoadState=loaded
ActiveState=active
ActiveEnterTimestampMonotonic=1
InvocationID=0515ad62e3724a928c34127c16d594ef
END
"""


class CanaryNode:
    """The files of a node, and a service that runs a module."""

    def __init__(self, root: Path, compiler: str) -> None:
        self.root = root
        self.state, self.proofs, self.staging = root / "state", root / "proofs", root / "opt"
        self.staging.mkdir(mode=0o755)
        self.module = self.staging / "oqsprovider.so"
        source = b"int pqcota_answer(void) { return 1; }\n"
        subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(self.module)], input=source, check=True)
        self.module.chmod(0o644)
        self._daemon = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _DAEMON, str(self.module)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._daemon.stdout is not None
        assert self._daemon.stdout.readline() == b"loaded\n"
        (root / "bin").mkdir()
        (root / "bin" / "systemctl").write_text(_SYSTEMCTL.format(pid=self._daemon.pid))
        (root / "bin" / "systemctl").chmod(0o755)
        (root / "services.yml").write_text(
            "services: [{app: payments, unit: payments, module: oqsprovider.so, provider: oqsprovider, version: 0.8}]\n"
        )
        (root / "proving.key").write_text(KEY.to_text())
        (root / "proving.key").chmod(0o600)
        (root / "proof.yml").write_text(
            f"after: 1s\nprove: {{prover: canary-1, key_file: {root}/proving.key, apps: [payments]}}\n"
        )

    @property
    def options(self) -> list[str]:
        return [
            "--services", f"{self.root}/services.yml", "--policy", f"{self.root}/proof.yml",
            "--state-dir", str(self.state), "--proofs", str(self.proofs), "--staging-dir", str(self.staging),
        ]  # fmt: skip

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.module.read_bytes()).hexdigest()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.root}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            [command_path(), "run", *self.options, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def let_the_build_age(self) -> None:
        """Wait out the policy's second: the kernel's clocks cannot be put forward from outside."""
        time.sleep(1.2)

    def close(self) -> None:
        self._daemon.communicate()


def command_path() -> str:
    return str(Path(sys.executable).parent / "pqcota-prove")


@pytest.fixture
def root_user(skip_or_fail: Callable[[str], NoReturn]) -> None:
    if os.geteuid() != 0:
        skip_or_fail("pqcota-prove run needs root")


@pytest.fixture
def node(tmp_path: Path, root_user: None, needs: Callable[[str], str]) -> Iterator[CanaryNode]:
    node = CanaryNode(tmp_path, needs("gcc"))
    yield node
    node.close()


def test_a_canary_proves_what_it_runs(node: CanaryNode) -> None:
    node.let_the_build_age()
    done = node.run("--hourly")
    assert (done.returncode, done.stdout) == (0, "")
    assert "pqcota-prove: payments: minted a proof of oqsprovider 0.8 " in done.stderr
    data = DirectoryProofStore(node.proofs, "default").get("payments", node.sha256, "canary-1")
    assert data is not None
    proof = load_proof(data)
    assert proof.holds_under(KEY.public)
    assert proof.platform.startswith("linux/")


def test_the_change_runs_between_the_looks_and_its_output_goes_through(node: CanaryNode) -> None:
    node.let_the_build_age()
    done = node.run("--", "sh", "-c", f"ls {node.state}/healthy/default/payments; echo trouble >&2; exit 3")
    assert done.returncode == 3
    assert done.stdout == f"{node.sha256}.json\n"
    recorded, trouble, minted = done.stderr.splitlines()
    assert "is recorded as healthy" in recorded
    assert trouble == "trouble"
    assert "minted a proof" in minted


@pytest.mark.parametrize(
    ("change", "status"),
    [
        pytest.param(["true"], 0, id="well"),
        pytest.param(["sh", "-c", "exit 4"], 4, id="badly"),
        pytest.param(["sh", "-c", "kill -TERM $$"], 143, id="killed"),
        pytest.param(["no-such-command-anywhere"], 127, id="not there"),
        pytest.param(["/etc/passwd"], 126, id="not executable"),
        pytest.param(["/"], 126, id="a directory"),
    ],
)
def test_the_status_of_the_change_is_the_result(
    tmp_path: Path, root_user: None, change: list[str], status: int
) -> None:
    assert (
        prove.main(["run", "--state-dir", str(tmp_path / "state"), "--services", "/nowhere", "--", *change]) == status
    )


def test_options_behind_the_change_belong_to_it(tmp_path: Path, root_user: None) -> None:
    mark = tmp_path / "mark"
    change = ["sh", "-c", f'printf "%s " "$@" > {mark}', "sh", "--hourly", "--help", "--", "-x"]
    assert prove.main(["run", "--state-dir", str(tmp_path / "state"), "--services", "/nowhere", *change]) == 0
    assert mark.read_text() == "--hourly --help -- -x "


def test_an_interrupted_change_is_still_followed_by_the_look_after_it(node: CanaryNode) -> None:
    node.let_the_build_age()
    environment = {"PATH": f"{node.root}/bin:{os.environ['PATH']}"}
    change = 'trap "exit 5" INT; echo begun; while :; do sleep 0.1; done'
    running = subprocess.Popen(
        [command_path(), "run", *node.options, "--", "sh", "-c", change],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 5
    assert "minted a proof" in said


def test_a_termination_reaches_the_change_and_is_followed_by_the_look_after_it(node: CanaryNode) -> None:
    node.let_the_build_age()
    environment = {"PATH": f"{node.root}/bin:{os.environ['PATH']}"}
    change = 'trap "echo told; exit 9" TERM; echo begun; while :; do sleep 0.1; done'
    running = subprocess.Popen(
        [command_path(), "run", *node.options, "--", "sh", "-c", change],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGTERM)
    told, said = running.communicate(timeout=30)
    assert (running.returncode, told) == (9, "told\n")
    assert "minted a proof" in said


def test_a_registry_that_cannot_be_read_stops_no_change_but_fails_a_run_without_one(
    tmp_path: Path, root_user: None, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["run", "--state-dir", str(tmp_path / "state"), "--services", str(tmp_path / "services.yml")]
    assert prove.main(options) == 1
    assert prove.main([*options, "true"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all("no service is looked at: " in line and "services.yml" in line for line in said)


def test_a_policy_that_does_not_parse_is_said_and_no_failure(node: CanaryNode) -> None:
    (node.root / "proof.yml").write_text("after: [")
    done = node.run()
    assert done.returncode == 0
    assert "nothing is minted until the proof policy can be read: " in done.stderr
    assert "proof.yml" in done.stderr


def test_run_without_root_says_so(tmp_path: Path, root_user: None) -> None:
    # Imported as root, since the interpreter may lie where nobody else may look.
    script = (
        "import os, sys; from pqcota_provision.cli import prove; "
        f"os.setuid({NOBODY}); sys.exit(prove.main(['run', 'touch', '{tmp_path}/x']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "only root may" in done.stderr
    assert "Run the command as root." in done.stderr
    assert not (tmp_path / "x").exists()


# refuse


def refuse(state: Path, **changes: str) -> int:
    values = {"app": "payments", "sha256": HASH, "reason": "leaks a handle", **changes}
    return prove.main(
        ["refuse", "--state-dir", str(state), *(part for name in values for part in (f"--{name}", values[name]))]
    )


def test_a_refused_build_is_kept_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refuse(tmp_path / "state") == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"this node refuses {HASH} and will not prove it" in printed.err
    (refusal,) = NodeState(tmp_path / "state", "default").refusals()
    assert (refusal.app, refusal.sha256, refusal.reason) == ("payments", HASH, "leaks a handle")


def test_a_refused_build_is_not_proven(node: CanaryNode) -> None:
    assert refuse(node.state, sha256=node.sha256) == 0
    node.let_the_build_age()
    done = node.run()
    assert 'for payments: "leaks a handle"' in done.stderr
    assert not node.proofs.exists()


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"app": "../x"}, id="app that is a path"),
        pytest.param({"app": ""}, id="no app"),
        pytest.param({"sha256": HASH[:-1]}, id="short hash"),
        pytest.param({"sha256": HASH.upper()}, id="hash in capitals"),
        pytest.param({"reason": " "}, id="no reason"),
        pytest.param({"reason": "a\nb"}, id="two lines"),
        pytest.param({"reason": "\x1b[31m"}, id="steers the terminal"),
        pytest.param({"reason": "x" * 501}, id="long reason"),
    ],
)
def test_a_refusal_that_could_not_be_kept_is_wrong_usage(tmp_path: Path, changes: dict[str, str]) -> None:
    assert refuse(tmp_path / "state", **changes) == 2
    assert not (tmp_path / "state").exists()


def test_a_state_directory_that_cannot_be_used_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("")
    assert refuse(tmp_path / "state") == 1
    assert "Not a directory" in capsys.readouterr().err


# list


@pytest.fixture
def remembered(tmp_path: Path) -> list[str]:
    """A node that remembers one of each; the options that lead there."""
    state = NodeState(tmp_path / "state", "default")
    state.prepare(now=Timestamp(0))
    state.record_healthy(
        HealthyBuild(
            "payments", "oqsprovider", HASH, "0.8", "live", at="2026-01-01T00:00:00Z", last_at="2026-01-02T00:00:00Z"
        )
    )
    state.mark_required("payments")
    assert refuse(tmp_path / "state", sha256="f" * 64) == 0
    proof = Proof(
        "payments",
        "oqsprovider",
        "linux/amd64",
        HASH,
        "0.8",
        "canary-1",
        "2026-01-01T00:00:00Z",
        "2026-01-02T00:00:00Z",
    )
    store = DirectoryProofStore(tmp_path / "proofs", "default")
    store.put("payments", HASH, "canary-1", dump_proof(sign_proof(KEY, proof)))
    store.put("payments", HASH, "canary-2", b"{")
    return ["list", "--state-dir", str(tmp_path / "state"), "--proofs", str(tmp_path / "proofs")]


def test_the_list_shows_everything_the_node_remembers(
    remembered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert prove.main(remembered) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Healthy history:"
    assert printed[1] == (
        f"  payments  oqsprovider 0.8  sha256 {HASH}  live, first 2026-01-01T00:00:00Z, last 2026-01-02T00:00:00Z"
    )
    assert printed[2] == "Proofs:"
    assert printed[3].startswith(
        f"  payments  oqsprovider 0.8  sha256 {HASH}  by canary-1 on linux/amd64, active since "
    )
    assert 'canary-2.json" is no proof: ' in printed[4]
    assert printed[5] == "Refusals:"
    assert printed[6].endswith("leaks a handle")
    assert printed[7:] == ["Apps that once required a proof:", "  payments"]


def test_the_list_as_json_holds_the_same(remembered: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert prove.main([*remembered, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [build["sha256"] for build in document["healthy"]] == [HASH]
    (proof,), (problem,) = document["proofs"], document["noProofs"]
    assert proof["signature"].startswith("ed25519:")
    assert "canary-2.json" in problem
    assert [refusal["reason"] for refusal in document["refusals"]] == ["leaks a handle"]
    assert document["required"] == ["payments"]


def test_a_node_that_remembers_nothing_says_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.main(["list", "--state-dir", str(tmp_path / "state")]) == 0
    assert capsys.readouterr().out.count("  none\n") == 4


def test_another_organization_sees_its_own_history_only(
    remembered: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_ORG", "globex")
    capsys.readouterr()
    assert prove.main([*remembered, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["healthy"] == document["proofs"] == []


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"PQCOTA_ORG": "No Such"}, id="malformed"),
        pytest.param({"PQCOTA_REQUIRE_ORG": "1"}, id="none named"),
        pytest.param({"PQCOTA_REQUIRE_ORG": "1", "PQCOTA_ORG": "default"}, id="default named"),
    ],
)
@pytest.mark.parametrize("arguments", [["list"], ["refuse", "--app", "a", "--sha256", HASH, "--reason", "r"]])
def test_an_organization_that_may_not_be_used_is_refused(
    tmp_path: Path, variables: dict[str, str], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert prove.main([*arguments, "--state-dir", str(tmp_path / "state")]) == 2
    assert not (tmp_path / "state").exists()


def test_a_damaged_record_is_named_and_nothing_is_printed(
    remembered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state" / "refusals" / "payments" / f"{'f' * 64}.json").write_text("{")
    capsys.readouterr()
    assert prove.main(remembered) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is no record of this kind" in printed.err


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["no-such-thing"], id="unknown subcommand"),
        pytest.param(["run", "--no-such-option"], id="unknown option"),
        pytest.param(["list", "extra"], id="argument too many"),
        pytest.param(["refuse", "--app", "payments"], id="options missing"),
        pytest.param(["list", "--state-dir", ""], id="empty state directory"),
        pytest.param(["list", "--proofs", ""], id="empty store"),
    ],
)
def test_wrong_usage_is_status_2_and_no_traceback(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert printed.err.startswith("pqcota-prove: ")


@pytest.mark.parametrize("subcommand", ["run", "refuse", "list"])
def test_the_help_states_variables_and_exit_statuses(subcommand: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.main([subcommand, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "PQCOTA_ORG" in printed
    assert "Exit status:" in printed


def test_the_script_is_installed_and_knows_its_version() -> None:
    done = subprocess.run([command_path(), "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("pqcota-prove ")
