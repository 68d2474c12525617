from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbook_plans import HOOKS, action, executable_plans, injection, jca_injection, l3, plan

from playbook_reader import (
    UnsafeText,
    arguments,
    hooks_run,
    load_plays,
    node_plays,
    placed_files,
    regular_tasks,
    removed_paths,
    rescue_tasks,
    staged_modules,
    walk,
)
from pqcota_provision.errors import PlanNotActionable, PlanNotFinalized
from pqcota_provision.plan.model import ActivationHooks, FinalizedPlan, PlanStatus, RemediationKind
from pqcota_provision.playbook.generate import Direction, generate
from pqcota_provision.playbook.levels import Level

BOTH = st.sampled_from(Direction)


def names(text: str) -> list[str]:
    (play,) = node_plays(text)
    return [task["name"] for task in regular_tasks(play)]


def position(text: str, name: str) -> int:
    return names(text).index(name)


@given(executable_plans, st.sampled_from(Level), BOTH)
def test_the_same_plan_gives_the_same_bytes(subject: FinalizedPlan, level: Level, direction: Direction) -> None:
    try:
        first = generate(subject, level=level, direction=direction)
    except PlanNotActionable:
        return
    assert first == generate(subject, level=level, direction=direction)


@given(executable_plans, st.sampled_from(Level), BOTH)
def test_every_node_gets_one_play_that_is_exactly_its_own(
    subject: FinalizedPlan, level: Level, direction: Direction
) -> None:
    try:
        text = generate(subject, level=level, direction=direction).text
    except PlanNotActionable:
        return
    plays = node_plays(text)
    nodes = list(dict.fromkeys(action.target_node_id for action in subject.actions))
    assert [(play["hosts"], play["become"], play["gather_facts"]) for play in plays] == [
        (node, True, False) for node in nodes
    ]


@given(executable_plans, st.sampled_from(Level), BOTH)
def test_text_of_a_plan_reaches_no_task_as_a_template(
    subject: FinalizedPlan, level: Level, direction: Direction
) -> None:
    marker = "{{ lookup('pipe', 'id') }}"
    poisoned = replace(
        subject,
        id=marker,
        actions=tuple(
            replace(
                item,
                finding_id=marker,
                target_algorithm=marker,
                rollback_note=marker,
                config_artifact=item.config_artifact and marker,
                activation=ActivationHooks(pre=marker, activate=marker, deactivate=marker, restart=marker),
            )
            for item in subject.actions
        ),
    )
    try:
        text = generate(poisoned, level=level, direction=direction).text
    except PlanNotActionable:
        return

    def strings(value: object) -> list[str]:
        if isinstance(value, str):
            return [value]
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [text for part in parts for text in strings(part)]

    assert all(isinstance(found, UnsafeText) for found in strings(load_plays(text)) if "lookup('pipe'" in found)


def test_a_misspelt_node_fails_the_run_before_any_node_is_touched() -> None:
    check = load_plays(generate(plan(action(target_node_id="b"), action(target_node_id="a"))).text)[0]
    assert (check["hosts"], check["become"], check["gather_facts"]) == ("localhost", False, False)
    (task,) = check["tasks"]
    assert task["vars"]["pqcota_target_nodes"] == ["b", "a"]
    assert task["tags"] == ["always"]


@pytest.mark.parametrize("direction", Direction)
def test_an_unapproved_plan_gives_no_playbook(direction: Direction) -> None:
    with pytest.raises(PlanNotFinalized):
        generate(plan(action(), status=PlanStatus.IN_REVIEW), direction=direction)


@pytest.mark.parametrize(("level", "directories"), [(1, 1), (2, 2), (3, 2)])
def test_the_config_directory_is_made_only_where_config_is_placed(level: int, directories: int) -> None:
    subject = plan(action(automation_level=level, kind=RemediationKind.REBUILD))
    (play,) = node_plays(generate(subject).text)
    made = [arguments(task, "file") for task in regular_tasks(play)]
    assert [made_one["path"] for made_one in made if made_one] == ["/opt/pqcota", "/etc/pqcota"][:directories]


def test_an_l3_run_keeps_its_order() -> None:
    (play,) = node_plays(generate(plan(injection(**l3()))).text)
    assert (hooks_run(play), staged_modules(play), list(placed_files(play))) == (
        ["stop app", "enable pqc", "start app"],
        ["/opt/pqcota/oqsprovider.so"],
        ["/etc/pqcota/openssl-pqc.cnf"],
    )
    text = generate(plan(injection(**l3()))).text
    order = [
        "Check oqsprovider.so on the controller",
        "Keep the previous versions",
        "Run the pre hook",
        "Stage the module /opt/pqcota/oqsprovider.so",
        "Check the hash of /opt/pqcota/oqsprovider.so on the node",
        "Place the OpenSSL fragment /etc/pqcota/openssl-pqc.cnf",
        "Run the activate hook",
        "Run the restart hook",
    ]
    assert sorted(order, key=lambda name: position(text, name)) == order


def test_a_missing_module_is_found_before_the_service_is_stopped() -> None:
    text = generate(plan(jca_injection(**l3()))).text
    assert position(text, "Check BC.jar on the controller") < position(text, "Make the directory /opt/pqcota")


def test_a_failed_l3_run_undoes_activation_puts_files_back_and_restarts() -> None:
    (play,) = node_plays(generate(plan(injection(**l3()))).text)
    rescued = [task["name"] for task in rescue_tasks(play)]
    order = [
        "Note which step failed",
        "Run the deactivate hook to put the node back",
        "Put the previous versions back",
        "Remove the files that were not there before",
        "Run the restart hook to put the node back",
        "Fail with the step that failed",
    ]
    assert [name for name in rescued if name in order] == order


def test_no_step_of_putting_a_node_back_keeps_the_next_from_running() -> None:
    (play,) = node_plays(generate(plan(injection(**l3()))).text)
    fallible = [
        task for task in rescue_tasks(play) if not {"ansible.builtin.set_fact", "ansible.builtin.fail"} & {*task}
    ]
    assert all(task.get("ignore_errors") for task in fallible)


def test_every_file_of_the_plan_is_kept_before_an_l3_run_changes_it() -> None:
    subject = plan(jca_injection(**l3()), injection(id="a2", **l3()))
    (play,) = node_plays(generate(subject).text)
    looked = next(task for task in walk(play["tasks"]) if task["name"] == "Look at the files this run may change")
    assert set(looked["loop"]) == {*staged_modules(play), *placed_files(play)}


def test_l1_and_l2_runs_touch_no_service() -> None:
    (play,) = node_plays(generate(plan(injection(activation=HOOKS))).text)
    assert hooks_run(play) == []


def test_a_rollback_reverses_the_order_and_keeps_the_directories() -> None:
    (play,) = node_plays(generate(plan(injection(**l3())), direction=Direction.ROLLBACK).text)
    assert hooks_run(play) == ["stop app", "disable pqc", "start app"]
    assert removed_paths(play) == ["/etc/pqcota/openssl-pqc.cnf", "/opt/pqcota/oqsprovider.so"]


def test_a_failed_rollback_leaves_no_service_stopped() -> None:
    (play,) = node_plays(generate(plan(injection(**l3())), direction=Direction.ROLLBACK).text)
    rescued = [arguments(task, "shell") for task in rescue_tasks(play)]
    assert [shell["cmd"] for shell in rescued if shell] == ["start app"]


def test_a_pinned_module_must_have_a_proven_hash_here_and_on_the_node() -> None:
    digest = "ab" * 32
    text = generate(plan(injection()), pinned={"oqsprovider.so": [digest]}).text
    (play,) = node_plays(text)
    pinned = [
        task["vars"]["pqcota_pinned_hashes"]
        for task in regular_tasks(play)
        if "pqcota_pinned_hashes" in task.get("vars", {})
    ]
    assert pinned == [[digest], [digest]]


def test_verification_comes_before_the_service_is_touched() -> None:
    text = generate(plan(injection(**l3())), verify=True).text
    order = [
        "Place the OpenSSL fragment /etc/pqcota/openssl-pqc.cnf",
        "Check what OpenSSL makes of /etc/pqcota/openssl-pqc.cnf",
        "Note that the service is touched from here on",
        "Run the pre hook",
        "Run the activate hook",
    ]
    assert sorted(order, key=lambda name: position(text, name)) == order


def test_a_provider_with_a_dot_in_its_name_is_looked_for_as_openssl_lists_it() -> None:
    (play,) = node_plays(generate(plan(injection(provider_choice="acme-0.8.1")), verify=True).text)
    checks = [arguments(task, "assert") for task in regular_tasks(play)]
    assert "'8.1' in pqcota_active_providers" in [condition for check in checks if check for condition in check["that"]]


def test_verification_is_off_unless_asked_for() -> None:
    assert "ansible.builtin.command" not in generate(plan(injection(), jca_injection(id="a2"))).text


@pytest.mark.parametrize(
    ("direction", "words"),
    [
        (Direction.FORWARD, "ansible-playbook -i targets.ini provision.yml"),
        (Direction.ROLLBACK, "This is no version rollback"),
    ],
)
def test_the_header_says_how_to_apply_it_and_what_it_is_not(direction: Direction, words: str) -> None:
    assert words in generate(plan(action()), direction=direction).text


@pytest.mark.parametrize("note", ["\n- hosts: all", "x\u2028- hosts: all", "\r- hosts: all", "---\n", "x" * 500])
def test_no_note_or_id_breaks_out_of_the_comments(note: str) -> None:
    text = generate(plan(action(id=note, rollback_note=note), id=note)).text
    assert [play["hosts"] for play in load_plays(text)] == ["localhost", "node-1"]


def test_a_manual_action_is_named_with_the_reason() -> None:
    text = generate(plan(action(kind=RemediationKind.FORK_REPLACE))).text
    assert '# Action "a1": FORK_REPLACE on OPENSSL' in text
    assert "Manual: no config can do it" in text
