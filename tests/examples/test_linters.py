"""Every playbook of the sample plans, and of plans full of awkward text, in front of the ecosystem's own tools."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from awkward_plans import AWKWARD_PLANS
from example_plans import CASES, approve_in_test, approved, playbook

from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.playbook.generate import Direction, generate
from pqcota_provision.playbook.levels import Level

YAMLLINT_CONFIG = "extends: default\nrules:\n  line-length:\n    max: 160\n"

FLAWED = """\
---
- name: a play
  hosts: all
  tasks:
    - shell: rm -rf  /x
"""


class Workshop(NamedTuple):
    """A folder with playbooks, an inventory that has their hosts, and an environment that touches no home."""

    folder: Path
    examples: list[str]
    awkward: list[str]
    environment: dict[str, str]

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)


def below_the_header(text: str) -> str:
    return text.partition("\n\n")[2]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, needs: Callable[[str], str]) -> Workshop:
    folder = tmp_path_factory.mktemp("playbooks")
    home = tmp_path_factory.mktemp("home")
    plans: list[FinalizedPlan] = []
    examples = []
    for case in CASES:
        for level in Level:
            for direction in Direction:
                name = f"{case}.{level.option}.{direction.value}.yml"
                (folder / name).write_text(playbook(case, level, direction).text, encoding="utf-8")
                examples.append(name)
    awkward = []
    for case, plan in AWKWARD_PLANS.items():
        signed = approve_in_test(plan)
        plans.append(signed)
        for direction in Direction:
            name = f"awkward-{case}.{direction.value}.yml"
            (folder / name).write_text(generate(signed, direction=direction).text, encoding="utf-8")
            awkward.append(name)
    (folder / "flawed.yml").write_text(FLAWED, encoding="utf-8")
    (folder / "yamllint.config").write_text(YAMLLINT_CONFIG, encoding="utf-8")
    hosts: dict[str, dict[str, str]] = {
        action.target_node_id: {} for plan in (*plans, *map(approved, CASES)) for action in plan.actions
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    tools = str(Path(needs("ansible-playbook")).parent)
    environment = {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "ANSIBLE_HOME": str(home / "ansible"),
        "PATH": f"{tools}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "NO_COLOR": "1",
    }
    return Workshop(folder, examples, awkward, environment)


@pytest.mark.parametrize("kind", ["examples", "awkward"])
def test_ansible_accepts_the_syntax_of_every_playbook(
    workshop: Workshop, needs: Callable[[str], str], kind: str
) -> None:
    names = getattr(workshop, kind)
    result = workshop.run([needs("ansible-playbook"), "-i", "inventory.json", "--syntax-check", *names])
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("playbook: ") == len(names)


@pytest.mark.parametrize("kind", ["examples", "awkward"])
def test_yamllint_finds_nothing_in_any_playbook(workshop: Workshop, needs: Callable[[str], str], kind: str) -> None:
    names = getattr(workshop, kind)
    result = workshop.run([needs("yamllint"), "--strict", "-f", "parsable", "-c", "yamllint.config", *names])
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("kind", ["examples", "awkward"])
def test_ansible_lint_finds_nothing_in_its_production_profile(
    workshop: Workshop, needs: Callable[[str], str], kind: str
) -> None:
    # Where a plan sets all levels, --level changes one comment of the header: one of the three says it all.
    distinct = {
        below_the_header((workshop.folder / name).read_text(encoding="utf-8")): name for name in getattr(workshop, kind)
    }
    result = workshop.run([*ansible_lint(needs), *distinct.values()])
    assert (result.returncode, result.stdout) == (0, "")


def test_ansible_lint_is_awake(workshop: Workshop, needs: Callable[[str], str]) -> None:
    result = workshop.run([*ansible_lint(needs), "flawed.yml"])
    assert result.returncode == 2
    for rule in ("fqcn[action-core]", "name[missing]", "no-changed-when"):
        assert f" {rule}" in result.stdout


def test_yamllint_is_awake(workshop: Workshop, needs: Callable[[str], str]) -> None:
    (workshop.folder / "long.yml").write_text("---\na: " + "x" * 160 + "\n\n\n\n", encoding="utf-8")
    result = workshop.run([needs("yamllint"), "-f", "parsable", "-c", "yamllint.config", "long.yml"])
    assert "(line-length)" in result.stdout
    assert "(empty-lines)" in result.stdout


def ansible_lint(needs: Callable[[str], str]) -> list[str]:
    return [needs("ansible-lint"), "--offline", "--profile", "production", "--nocolor", "-q", "-f", "pep8"]
