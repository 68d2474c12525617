"""The output shown in the README of the sample plans is what really comes out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from example_plans import CASES, EXAMPLES, OUTCOMES, PLACED, PLANS, in_review

from pqcota_provision.plan.model import FIELDS, FinalizedPlan

README = (PLANS / "README.md").read_text(encoding="utf-8")
ELISION = "…"


class Shown(NamedTuple):
    """A console block: its command and the lines shown, in pieces between elisions."""

    command: str
    pieces: tuple[str, ...]


def console_blocks(text: str) -> list[Shown]:
    blocks = []
    for block in re.findall(r"^```console\n\$ (.*?)^```$", text, re.DOTALL | re.MULTILINE):
        command, _, output = block.partition("\n")
        pieces = re.split(rf"^{ELISION}\n", output, flags=re.MULTILINE)
        blocks.append(Shown(command, tuple(piece for piece in pieces if piece)))
    return blocks


def section_of(case: str) -> str:
    [section] = re.findall(rf"^### {re.escape(case)}\n(.*?)(?=^##|\Z)", README, re.DOTALL | re.MULTILINE)
    return str(section)


BLOCKS = console_blocks(README)


@pytest.mark.parametrize("shown", [pytest.param(shown, id=shown.command) for shown in BLOCKS])
def test_what_a_command_is_shown_to_print_is_what_it_prints(shown: Shown, needs: Callable[[str], str]) -> None:
    tools = str(Path(needs("pqcota-provision")).parent)
    result = subprocess.run(
        shlex.split(shown.command),
        cwd=EXAMPLES.parent,
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    rest = result.stdout
    for piece in shown.pieces:
        before, found, rest = rest.partition(piece)
        assert found, f"not there, or not in this order:\n{piece}"
        assert not before or before.endswith("\n")


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_a_section_with_a_real_run(case: str) -> None:
    assert any(shown.command.split()[1] == case for shown in console_blocks(section_of(case)))


@pytest.mark.parametrize("case", CASES)
def test_the_status_in_the_table_and_in_the_section_is_the_real_one(case: str) -> None:
    status = OUTCOMES[case][0]
    assert re.search(rf"^\| \[{re.escape(case)}\.json\]\(.*\) \| .* \| {status} \|$", README, re.MULTILINE)
    assert f"status {status}" in section_of(case)


@pytest.mark.parametrize("case", CASES)
def test_the_notices_in_a_section_are_the_real_ones(case: str) -> None:
    _, forward, _, rollback = OUTCOMES[case]
    prose = re.sub(r"^```.*?^```$", "", section_of(case), flags=re.DOTALL | re.MULTILINE)
    facts = next(paragraph for paragraph in prose.split("\n\n") if paragraph.lstrip().startswith("Files"))
    ids = "|".join(sorted({notice for outcome in OUTCOMES.values() for notice in (*outcome[1], *outcome[3])}))
    assert set(re.findall(rf"`({ids})`", facts)) == {*forward, *rollback}


@pytest.mark.parametrize("case", CASES)
def test_the_files_in_a_section_are_the_real_ones(case: str) -> None:
    prose = section_of(case).replace(
        "the two config files", "`/etc/pqcota/java.security.pqcota`, `/etc/pqcota/jvm.pqcota`"
    )
    facts = next(paragraph for paragraph in prose.split("\n\n") if paragraph.lstrip().startswith("Files"))
    assert set(re.findall(r"`(/[^`]*)`", facts)) == set(PLACED[case])


def test_every_field_of_a_plan_is_explained() -> None:
    fields = {field.json_name for fields in FIELDS.values() for field in fields}
    used = {name for name in fields if any(f'"{name}"' in (PLANS / f"{case}.json").read_text() for case in CASES)}
    of_plan = {field.json_name for field in FIELDS[FinalizedPlan]}
    nested = {"snapshot", "sourceNodeId", "snapshotId", "content", "formatVersion", "digest"}
    missing = [
        name for name in sorted((used | of_plan) - nested) if not re.search(rf"^\|.*`[^|]*\b{name}`", README, re.M)
    ]
    assert missing == []


def test_every_scope_is_a_sentence_for_people() -> None:
    assert all(len(in_review(case).scope.split()) > 4 for case in CASES)
