"""What comes out of each sample plan: exit status, notices, files, and the same bytes each time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from example_plans import CASES, EXAMPLES, OUTCOMES, PLACED, approved, in_review, playbook

from playbook_reader import hooks_run, node_plays, placed_files, removed_paths, staged_modules
from pqcota_provision.plan.model import PlanStatus, RemediationKind
from pqcota_provision.plan.notices import NoticeId, NoticeKind
from pqcota_provision.playbook.generate import Direction, generate
from pqcota_provision.playbook.levels import Level

FORWARD, ROLLBACK = Direction.FORWARD, Direction.ROLLBACK

every_case = pytest.mark.parametrize("case", CASES)
every_level = pytest.mark.parametrize("level", Level, ids=lambda level: level.option)
both_directions = pytest.mark.parametrize("direction", Direction, ids=lambda direction: direction.value)


def test_no_case_is_missing_from_the_tables() -> None:
    assert set(CASES) == set(OUTCOMES) == set(PLACED)


@every_case
def test_a_case_is_still_to_be_approved(case: str) -> None:
    plan = in_review(case)
    assert (plan.status, plan.approval_signatures, plan.finalized_at) == (PlanStatus.IN_REVIEW, (), None)


@every_level
@every_case
def test_the_forward_notices_are_those_the_docs_speak_of(case: str, level: Level) -> None:
    ids = [notice.id.value for notice in playbook(case, level, FORWARD).notices]
    assert sorted(ids) == OUTCOMES[case][1]


@every_level
@every_case
def test_the_rollback_notices_are_those_the_docs_speak_of(case: str, level: Level) -> None:
    ids = [notice.id.value for notice in playbook(case, level, ROLLBACK).notices]
    assert sorted(ids) == OUTCOMES[case][3]


@both_directions
@every_case
def test_a_run_ends_in_3_only_where_the_plan_leaves_something_out(case: str, direction: Direction) -> None:
    expected = OUTCOMES[case][0 if direction is FORWARD else 2]
    for level in Level:
        result = playbook(case, level, direction)
        blanks = [notice.id for notice in result.notices if notice.kind is NoticeKind.BLANK]
        assert (bool(blanks), result.has_blanks) == (expected == 3, expected == 3)


@every_case
def test_the_files_on_the_nodes_are_those_the_docs_name(case: str) -> None:
    plays = node_plays(playbook(case).text)
    placed = [path for play in plays for path in (*staged_modules(play), *placed_files(play))]
    assert Counter(placed) == Counter(PLACED[case])


@every_level
@every_case
def test_rollback_removes_what_was_placed_and_nothing_else(case: str, level: Level) -> None:
    forward = node_plays(playbook(case, level, FORWARD).text)
    rollback = node_plays(playbook(case, level, ROLLBACK).text)
    placed = {play["hosts"]: sorted((*staged_modules(play), *placed_files(play))) for play in forward}
    assert {play["hosts"]: sorted(removed_paths(play)) for play in rollback} == placed


@pytest.mark.parametrize("case", [case for case in CASES if case != "level-left-open"])
def test_a_level_in_the_plan_is_not_changed_by_the_command_line(case: str) -> None:
    default_level = "# Default level: "
    bodies = {
        "\n".join(line for line in playbook(case, level).text.split("\n") if not line.startswith(default_level))
        for level in Level
    }
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("level", "placed", "hooks"),
    [(Level.L1, 0, 0), (Level.L2, 2, 0), (Level.L3, 2, 3)],
    ids=["l1 stages only", "l2 places the files", "l3 activates as well"],
)
def test_a_level_left_open_comes_from_the_command_line(level: Level, placed: int, hooks: int) -> None:
    [play] = node_plays(playbook("level-left-open", level).text)
    assert (len(placed_files(play)), len(hooks_run(play))) == (placed, hooks)


@both_directions
def test_a_hook_of_the_plan_runs_as_it_is_written(direction: Direction) -> None:
    hooks = approved("l3-activation-hooks").actions[0].activation
    assert hooks is not None
    [play] = node_plays(playbook("l3-activation-hooks", direction=direction).text)
    middle = hooks.activate if direction is FORWARD else hooks.deactivate
    assert hooks_run(play) == [hooks.pre, middle, hooks.restart]


def test_a_hand_written_fragment_reaches_the_node_as_it_is_written() -> None:
    [play] = node_plays(playbook("hand-written-fragment").text)
    assert list(placed_files(play).values()) == [approved("hand-written-fragment").actions[0].config_artifact]


@pytest.mark.parametrize(
    ("case", "direction", "said"),
    [
        ("l3-activation-hooks", FORWARD, "# It activates: "),
        ("l3-activation-hooks", ROLLBACK, "# It deactivates: "),
        ("l3-without-hooks", FORWARD, "# No action activates anything: "),
        ("l3-without-hooks", ROLLBACK, "# No action deactivates anything: "),
        ("two-nodes", ROLLBACK, "# No action deactivates anything: "),
    ],
)
def test_the_header_tells_whether_any_action_activates(case: str, direction: Direction, said: str) -> None:
    assert any(line.startswith(said) for line in playbook(case, direction=direction).text.splitlines())


def test_a_provider_that_the_plan_registers_under_a_free_number_is_not_said_to_take_slot_2() -> None:
    [notice] = playbook("l3-activation-hooks").notices
    assert "takes over provider 2" not in notice.sentence
    assert "configArtifact" in notice.sentence


def test_a_hand_written_fragment_is_not_said_to_hold_a_placeholder() -> None:
    plan = approved("jca-own-provider-without-class")
    action = replace(plan.actions[0], config_artifact="security.provider.13=com.acme.crypto.pqc.AcmePqcProvider\n")
    [notice, _] = generate(replace(plan, actions=(action,))).notices
    assert (notice.id, "placeholder" in notice.sentence) == (NoticeId.PROVIDER_CLASS_UNKNOWN, False)


@pytest.mark.parametrize("case", [case for case in CASES if not PLACED[case]])
def test_a_manual_case_says_so_in_its_playbook_and_does_nothing(case: str) -> None:
    text = playbook(case).text
    [play] = node_plays(text)
    assert approved(case).actions[0].kind in (RemediationKind.FORK_REPLACE, RemediationKind.JDK_UPGRADE)
    assert "Manual: no config can do it" in text
    assert not staged_modules(play)
    assert not placed_files(play)


GENERATE_ALL = """
import hashlib
from example_plans import CASES, playbook
from pqcota_provision import Direction, Level
for case in CASES:
    for level in Level:
        for direction in Direction:
            print(hashlib.sha256(playbook(case, level, direction).text.encode()).hexdigest())
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_plan_gives_the_same_bytes_in_another_process(seed: str) -> None:
    here = Path(__file__).parent
    again = subprocess.run(
        [sys.executable, "-c", GENERATE_ALL],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(here)},
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert again == [
        hashlib.sha256(playbook(case, level, direction).text.encode()).hexdigest()
        for case in CASES
        for level in Level
        for direction in Direction
    ]
