"""The script that a newcomer runs first: what it prints, how it ends, and where the private key is not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from example_plans import CASES, EXAMPLES, OUTCOMES, PLACED

from playbook_reader import load_plays, node_plays, removed_paths

Run = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = ("pqcota-keygen", "pqcota-approve", "pqcota-provision")
SYSTEM_PATH = "/usr/bin:/bin"


@pytest.fixture(name="run")
def _run(tmp_path: Path, needs: Callable[[str], str]) -> Run:
    tools = str(Path(needs("pqcota-provision")).parent)
    bash = needs("bash")

    def run(
        *arguments: str,
        script: Path = EXAMPLES / "run.sh",
        path: str = f"{tools}{os.pathsep}{SYSTEM_PATH}",
        **extra: str,
    ) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), **extra}
        return subprocess.run([bash, script, *arguments], cwd="/", env=environment, capture_output=True, text=True)

    return run


@pytest.fixture(name="copied")
def _copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout") / "examples"
    shutil.copytree(EXAMPLES, folder)
    return folder


def test_without_arguments_it_lists_every_case_and_what_it_is_about(run: Run) -> None:
    result = run()
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert (result.returncode, sorted(names), result.stderr) == (0, sorted(CASES), "")
    assert all(len(line.split()) > 3 for line in result.stdout.splitlines())


def test_a_case_prints_its_playbook_and_nothing_else(run: Run) -> None:
    result = run("two-nodes")
    hosts = [play["hosts"] for play in load_plays(result.stdout)]
    assert (result.returncode, hosts) == (0, ["localhost", "shop-edge-01.example.net", "shop-orders-01.example.net"])


def test_the_approval_is_a_real_one_and_is_verified(run: Run) -> None:
    said = run("two-nodes").stderr
    assert 'approved and finalized by "demo-reviewer"' in said
    assert 'pqcota-provision: approved by "demo-reviewer".' in said
    assert "NOT verified" not in said


def test_the_demo_of_the_makefile_ends_in_success(run: Run) -> None:
    makefile = (EXAMPLES.parent / "Makefile").read_text(encoding="utf-8")
    [case] = [line.split("?=")[1].strip() for line in makefile.splitlines() if line.startswith("DEMO ")]
    assert run(case).returncode == 0


def test_a_case_that_leaves_something_out_prints_its_playbook_and_ends_in_3(run: Run) -> None:
    result = run("signature-target")
    assert (result.returncode, len(load_plays(result.stdout))) == (3, 2)
    assert "blank target-signature" in result.stderr


@pytest.mark.parametrize("arguments", [("two-nodes", "--rollback"), ("--rollback", "two-nodes")])
def test_rollback_prints_the_playbook_that_undoes_the_case(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    removed = [path for play in node_plays(result.stdout) for path in removed_paths(play)]
    assert (result.returncode, sorted(removed)) == (0, sorted(PLACED["two-nodes"]))


def test_the_level_is_handed_on(run: Run) -> None:
    assert "# Default level: l1," in run("level-left-open", "--level", "l1").stdout


def test_all_runs_every_case_in_both_directions(run: Run) -> None:
    result = run("--all")
    heading, *rows = [line.split(maxsplit=3) for line in result.stdout.splitlines()]
    shown = {
        (case, direction): (int(status), sorted(notice.split()[-1] for notice in notices.split(", ") if notice != "-"))
        for case, direction, status, notices in rows
    }
    assert (result.returncode, heading) == (0, ["CASE", "DIRECTION", "STATUS", "NOTICES"])
    assert shown == {
        (case, direction): outcome
        for case, (status, ids, rollback_status, rollback_ids) in OUTCOMES.items()
        for direction, outcome in (("forward", (status, ids)), ("rollback", (rollback_status, rollback_ids)))
    }


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("no-such-case",), id="unknown case"),
        pytest.param(("../plans/two-nodes",), id="a path instead of a case"),
        pytest.param(("two-nodes", "signature-target"), id="two cases"),
        pytest.param(("--all", "two-nodes"), id="all and a case"),
        pytest.param(("--all", "--rollback"), id="all and a direction"),
        pytest.param(("--rollback",), id="a direction without a case"),
        pytest.param(("--level",), id="level without a value"),
        pytest.param(("--dry-run",), id="unknown option"),
        pytest.param(("two-nodes", "--level", "L3"), id="a level that does not exist"),
    ],
)
def test_wrong_usage_ends_in_2_with_nothing_on_standard_output(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("run.sh: ")


def test_a_plan_that_is_not_approved_ends_in_1_with_nothing_on_standard_output(run: Run, copied: Path) -> None:
    plan = copied / "plans" / "two-nodes.json"
    plan.write_text(plan.read_text(encoding="utf-8").replace("STATUS_IN_REVIEW", "STATUS_DRAFT"), encoding="utf-8")
    result = run("two-nodes", script=copied / "run.sh")
    assert (result.returncode, result.stdout) == (1, "")
    assert "PLAN_STATUS_DRAFT" in result.stderr


def test_all_ends_in_1_if_a_single_case_is_refused(run: Run, copied: Path) -> None:
    for plan in sorted((copied / "plans").glob("*.json"))[2:]:
        plan.unlink()
    (copied / "plans" / "zz-empty.json").write_text("{}", encoding="utf-8")
    result = run("--all", script=copied / "run.sh")
    assert (result.returncode, len(result.stdout.splitlines())) == (1, 5)
    assert "PLAN_STATUS_UNSPECIFIED" in result.stderr


def test_the_commands_are_found_in_the_virtual_environment_beside_it(
    run: Run, needs: Callable[[str], str], copied: Path
) -> None:
    (copied.parent / ".venv").mkdir()
    (copied.parent / ".venv" / "bin").symlink_to(Path(needs("pqcota-provision")).parent)
    assert run("two-nodes", script=copied / "run.sh", path=SYSTEM_PATH).returncode == 0


def test_without_the_commands_it_says_how_to_get_them(run: Run, copied: Path) -> None:
    result = run("two-nodes", script=copied / "run.sh", path=SYSTEM_PATH)
    assert (result.returncode, result.stdout) == (1, "")
    assert "make demo" in result.stderr


OBSERVER = """#!/bin/bash
{ printf '%s\\n' "$0" "$@"; } >> "$OBSERVED/$(basename "$0").argv"
env > "$OBSERVED/$(basename "$0").env"
PATH=$REAL exec "$(basename "$0")" "$@"
"""


def observed_run(run: Run, folder: Path, real: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a case with each command watched; return the result and the private key that was used."""
    (folder / "bin").mkdir(parents=True)
    for command in COMMANDS:
        (folder / "bin" / command).write_text(OBSERVER, encoding="utf-8")
        (folder / "bin" / command).chmod(0o755)
    result = run(
        "two-nodes",
        path=f"{folder / 'bin'}:{SYSTEM_PATH}",
        OBSERVED=str(folder),
        REAL=f"{real}:{SYSTEM_PATH}",
        PQCOTA_SIGN_KEY="left-over",
        PQCOTA_VERIFY_KEY="left-over",
        PQCOTA_APPROVAL_KEYS="somebody=else",
    )
    lines = (folder / "pqcota-approve.env").read_text(encoding="utf-8").splitlines()
    [key] = [line.partition("=")[2] for line in lines if line.startswith("PQCOTA_APPROVAL_KEY=")]
    return result, key


def test_the_private_key_reaches_pqcota_approve_alone_and_no_file_or_command_line(
    run: Run, needs: Callable[[str], str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("observed")
    result, key = observed_run(run, folder, str(Path(needs("pqcota-provision")).parent))
    assert result.returncode == 0
    seen = {path.name for path in folder.iterdir() if path.is_file() and key in path.read_text(encoding="utf-8")}
    assert seen == {"pqcota-approve.env"}
    assert key not in result.stdout + result.stderr
    assert not list(tmp_path.iterdir())


def test_each_run_makes_a_key_pair_of_its_own(
    run: Run, needs: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    real = str(Path(needs("pqcota-provision")).parent)
    keys = {observed_run(run, tmp_path_factory.mktemp("observed"), real)[1] for _ in range(2)}
    assert len(keys) == 2
    assert all(len(key) == 88 for key in keys)
