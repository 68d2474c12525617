"""pqcota-keygen as a user runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from command_runs import environment, in_review, run, run_script, script, text_of

from pqcota_provision.cli.keygen import main
from pqcota_provision.plan.keys import PrivateKey, PublicKey


def _assignments(out: bytes) -> dict[str, str]:
    lines = [line for line in out.decode("ascii").splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_two_assignments_are_one_key_pair() -> None:
    ran = run(main)
    keys = _assignments(ran.out)
    private = PrivateKey.parse(keys["PQCOTA_SIGN_KEY"])
    assert (ran.status, list(keys)) == (0, ["PQCOTA_SIGN_KEY", "PQCOTA_VERIFY_KEY"])
    assert PublicKey.parse(keys["PQCOTA_VERIFY_KEY"]) == private.public


def test_no_two_runs_give_the_same_key() -> None:
    assert _assignments(run(main).out) != _assignments(run(main).out)


def test_the_private_key_is_said_to_nobody_but_standard_output() -> None:
    assert run(main).err == ""


def test_an_argument_is_wrong_usage_and_gives_no_key() -> None:
    ran = run(main, "alice")
    assert (ran.status, ran.out) == (2, b"")


def test_a_shell_that_evaluates_the_output_can_approve_and_verify(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(text_of(in_review()))
    # In a POSIX shell, as the documentation shows it.
    walk = """
        eval "$(pqcota-keygen | grep '^PQCOTA_')"
        PQCOTA_APPROVAL_KEY=$PQCOTA_SIGN_KEY pqcota-approve --approver alice plan.json > signed.json &&
        PQCOTA_APPROVAL_KEYS=alice=$PQCOTA_VERIFY_KEY pqcota-provision signed.json > playbook.yml
    """
    path = f"{Path(script('pqcota-keygen')).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", walk], cwd=tmp_path, env=environment(PATH=path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "hosts: node-1.example.net" in (tmp_path / "playbook.yml").read_text("utf-8")


def test_the_installed_script_prints_a_key_pair() -> None:
    ran = run_script("pqcota-keygen")
    assert (ran.status, ran.err) == (0, "")
    assert PrivateKey.parse(_assignments(ran.out)["PQCOTA_SIGN_KEY"])
