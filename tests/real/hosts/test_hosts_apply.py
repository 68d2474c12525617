"""What a playbook does to a host over SSH: apply, apply again, only check, roll back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible_project import MakeProject, Project, Run, project_maker
from approved_plans import APPROVER, action, in_review, playbook, rollback
from fleet import FileState
from ledger_service import HOOKS, Ledger, Start

from pqcota_provision import Level

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

NODE = "web-1"
# No text at all: every byte there is.
MODULES = {name: bytes(range(256)) * 40 + name.encode() for name in ("oqsprovider.so", "acme-jca.jar")}
FOREIGN_FILES = ("/etc/pqcota/somebody-elses.cnf", "/opt/pqcota/somebody-elses.so")
DIRECTORIES = {path: FileState("drwxr-xr-x", 0, 0, b"") for path in ("/opt/pqcota", "/etc/pqcota")}

Snapshot = dict[str, FileState]


def varied_actions(**fields: Any) -> list[dict[str, Any]]:
    """Return actions of every kind that generates something, with fragments that share and that split."""
    acme = {"providerChoice": "acme-jca", "providerClass": "com.acme.AcmeProvider"}
    return [
        action(NODE, "PROVIDER_INJECT", id="act-1", **fields),
        action(NODE, "CONFIG_ONLY", id="act-2", **fields),
        action(NODE, "PROVIDER_INJECT", "JCA", id="act-3", **acme, **fields),
        action(NODE, "FORK_REPLACE", id="act-4", **fields),
    ]


def project_with_modules(make_project: MakeProject) -> Project:
    project = make_project(NODE)
    for name, content in MODULES.items():
        project.write(f"files/{name}", content)
    return project


def added(before: Snapshot, after: Snapshot) -> Snapshot:
    """Return what is new, once nothing else turns out to be changed."""
    assert {path: after.get(path) for path in before} == before
    return {path: state for path, state in after.items() if path not in before}


class Course(NamedTuple):
    """A host's whole course: as it was, the plan applied, applied again, rolled back."""

    level: Level
    before: Snapshot
    applied: Snapshot
    again: Run
    applied_again: Snapshot
    rolled_back: Snapshot
    starts: tuple[Start, Start, Start]


@pytest.fixture(
    scope="module",
    params=[pytest.param(level, id=level.option, marks=pytest.mark.xdist_group(f"course-{level}")) for level in Level],
)
def course(
    request: pytest.FixtureRequest, host_keys: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Course]:
    """The course of a host on which the plan's actions set no level."""
    level = request.param
    actions = varied_actions(activation=HOOKS)
    with project_maker(host_keys, tmp_path_factory.mktemp("course")) as make:
        project = project_with_modules(make)
        host = project.hosts[NODE]
        for path in FOREIGN_FILES:
            host.write(path, "kept\n")
        ledger = Ledger(host)
        before, first_start = host.snapshot(), ledger.started_with
        forward = playbook(*actions, level=level)
        project.run(forward).succeeded()
        applied, applied_start = host.snapshot(), ledger.started_with
        again = project.run(forward).succeeded()
        applied_again = host.snapshot()
        project.run(rollback(*actions, level=level), name="rollback.yml").succeeded()
        starts = (first_start, applied_start, ledger.started_with)
        yield Course(level, before, applied, again, applied_again, host.snapshot(), starts)


def test_files_arrive_byte_for_byte_where_and_how_the_suite_says(course: Course) -> None:
    new = added(course.before, course.applied)
    modules = {path: state for path, state in new.items() if path.startswith("/opt")}
    assert modules == {
        f"/opt/pqcota/{name}": FileState("-rw-r--r--", 0, 0, content) for name, content in MODULES.items()
    }
    fragments = {path: state for path, state in new.items() if path.startswith("/etc/pqcota")}
    at_level_2 = [
        "/etc/pqcota/java.security.pqcota",
        "/etc/pqcota/jvm.pqcota",
        "/etc/pqcota/openssl-pqc.act-1.cnf",
        "/etc/pqcota/openssl-pqc.act-2.cnf",
    ]
    assert sorted(fragments) == ([] if course.level is Level.L1 else at_level_2)
    assert {(state.mode, state.uid, state.gid) for state in fragments.values()} <= {("-rw-r--r--", 0, 0)}


def test_nothing_but_the_files_of_the_plan_is_left_on_the_node(course: Course) -> None:
    elsewhere = {
        path for path in added(course.before, course.applied) if not path.startswith(("/opt/pqcota/", "/etc/pqcota/"))
    }
    assert elsewhere == ({"/etc/default/ledgerd"} if course.level is Level.L3 else set())


def test_applying_again_changes_nothing_but_runs_the_hooks(course: Course) -> None:
    hooks = ["Run the pre hook", "Run the activate hook", "Run the restart hook"]
    assert course.again.changed == (hooks if course.level is Level.L3 else [])
    assert course.applied_again == course.applied


def test_a_rollback_leaves_no_file_of_the_plan_and_every_other(course: Course) -> None:
    assert course.rolled_back == course.before


def test_the_service_is_activated_at_level_3_only_and_rolled_back_to_what_it_was(course: Course) -> None:
    first, applied, rolled_back = course.starts
    assert applied.activated is (course.level is Level.L3)
    assert rolled_back == first


def test_the_operators_whole_way_from_keys_to_a_changed_host_ends_well(make_project: MakeProject) -> None:
    project = make_project(NODE)
    project.write("plan.json", in_review(action(NODE)))
    script = f"""
        set -eu
        eval "$(pqcota-keygen | grep '^PQCOTA_')"
        PQCOTA_APPROVAL_KEY=$PQCOTA_SIGN_KEY pqcota-approve --approver {APPROVER} plan.json >plan.signed.json
        export PQCOTA_APPROVAL_KEYS={APPROVER}=$PQCOTA_VERIFY_KEY
        pqcota-provision --level l2 plan.signed.json >provision.yml || [ $? -eq 3 ]
        ansible-playbook -i targets.ini provision.yml
    """
    run = project.command("sh", "-c", script)
    assert run.status == 0, run.text
    assert b"Groups = ?*X25519MLKEM768:" in project.hosts[NODE].read("/etc/pqcota/openssl-pqc.cnf")


@pytest.mark.parametrize("level", [Level.L2, Level.L3], ids=lambda level: level.option)
def test_check_mode_on_a_bare_node_ends_well_and_changes_nothing(make_project: MakeProject, level: Level) -> None:
    project = project_with_modules(make_project)
    host = project.hosts[NODE]
    ledger = Ledger(host)
    before, log = host.snapshot(), ledger.log
    run = project.run(playbook(*varied_actions(activation=HOOKS), level=level), "--check", "--diff").succeeded()
    assert "Make the directory /opt/pqcota" in run.changed
    assert host.snapshot() == before
    assert (ledger.is_running, ledger.log) == (True, log)


def test_check_mode_of_a_rollback_changes_nothing(make_project: MakeProject) -> None:
    project = make_project(NODE)
    host = project.hosts[NODE]
    ledger = Ledger(host)
    host.write("/opt/pqcota/oqsprovider.so", MODULES["oqsprovider.so"])
    before, log = host.snapshot(), ledger.log
    injection = action(NODE, "PROVIDER_INJECT", activation=HOOKS)
    run = project.run(rollback(injection, level=Level.L3), "--check").succeeded()
    assert "Remove the module /opt/pqcota/oqsprovider.so" in run.changed
    assert host.snapshot() == before
    assert (ledger.is_running, ledger.log) == (True, log)


def test_rolling_back_a_bare_node_changes_nothing(make_project: MakeProject) -> None:
    project = make_project(NODE)
    before = project.hosts[NODE].snapshot()
    assert project.run(rollback(*varied_actions())).succeeded().changed == []
    assert project.hosts[NODE].snapshot() == before


def test_a_rollback_with_another_default_level_finds_every_file(make_project: MakeProject) -> None:
    project = project_with_modules(make_project)
    before = project.hosts[NODE].snapshot()
    split = varied_actions()[:2]
    project.run(playbook(*split, level=Level.L2)).succeeded()
    project.run(rollback(*split, level=Level.L3)).succeeded()
    assert added(before, project.hosts[NODE].snapshot()) == DIRECTORIES


def test_an_activated_service_runs_on_the_new_files_and_no_previous_version_lies_about(
    make_project: MakeProject,
) -> None:
    project = project_with_modules(make_project)
    host = project.hosts[NODE]
    host.write("/etc/pqcota/openssl-pqc.cnf", "previous version\n", 0o600)
    ledger = Ledger(host)
    before = host.snapshot()
    project.run(playbook(action(NODE, "PROVIDER_INJECT", activation=HOOKS), level=Level.L3)).succeeded()
    assert ledger.is_running
    assert ledger.started_with == ledger.found_now()
    assert ledger.started_with.module == hashlib.sha256(MODULES["oqsprovider.so"]).hexdigest()
    new = set(host.snapshot()) - set(before)
    assert new == {"/opt/pqcota", "/opt/pqcota/oqsprovider.so", "/etc/default/ledgerd"}
    assert os.listdir(host.path("/root/.ansible/tmp")) == []


def test_a_restart_hook_that_leaves_its_output_open_does_not_hold_the_run_up(make_project: MakeProject) -> None:
    project = make_project(NODE)
    hooks = {"activate": "true", "deactivate": "true", "restart": "sleep 1000 & echo $! >/run/left-running.pid"}
    run = project.run(playbook(action(NODE, activation=hooks), level=Level.L3)).succeeded()
    host = project.hosts[NODE]
    assert host.is_running(int(host.read("/run/left-running.pid")))
    assert run.changed[-1] == "Run the restart hook"


def test_no_facts_are_gathered(make_project: MakeProject) -> None:
    run = make_project(NODE).run(playbook(action(NODE), level=Level.L1)).succeeded()
    assert run.tasks_on(NODE) == ["Make the directory /opt/pqcota"]


def test_a_link_in_place_of_a_file_of_the_plan_is_never_written_through(make_project: MakeProject) -> None:
    project = project_with_modules(make_project)
    host = project.hosts[NODE]
    links = {"/etc/pqcota/openssl-pqc.cnf": "/etc/precious", "/opt/pqcota/oqsprovider.so": "/opt/precious"}
    for link, target in links.items():
        host.write(target, "untouched\n")
        host.run("mkdir", "-p", os.path.dirname(link))
        host.run("ln", "-s", target, link)
    project.run(playbook(action(NODE, "PROVIDER_INJECT"))).succeeded()
    assert [host.read(target) for target in links.values()] == [b"untouched\n"] * 2
    assert {host.snapshot()[link].mode for link in links} == {"-rw-r--r--"}
