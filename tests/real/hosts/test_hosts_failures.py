"""A level 3 run that fails at any step leaves the node as it was: files, activation, a running service."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest
from ansible_project import MakeProject, Project, Run
from approved_plans import action, playbook, rollback
from fleet import FileState, Host
from ledger_service import ACTIVATION, FRAGMENT, HOOKS, MODULE, Ledger

from pqcota_provision import Level

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

NODE = "web-1"
NEW_MODULE = os.urandom(150_000)
OLD_MODULE = bytes(range(256)) * 160
OLD_FRAGMENT = b"# by hand\r\n\xff\xfe no newline at the end"
WRONG_HASH = "0" * 64
NO_SPACE = "100k"

READ_ONLY_CONFIG = "mount --bind /etc/pqcota /etc/pqcota && mount -o remount,bind,ro /etc/pqcota"
PIN_FRAGMENT = f"mount --bind {FRAGMENT} {FRAGMENT}"


class Scene(NamedTuple):
    """A node with a running service and files from before the plan, and a project that will change it."""

    project: Project
    host: Host
    ledger: Ledger
    before: dict[str, FileState]


@pytest.fixture
def scene(make_project: MakeProject) -> Scene:
    """The module and one fragment were there before, with owners and modes of their own; the JVM's files were not."""
    project = make_project(NODE)
    project.write("files/oqsprovider.so", NEW_MODULE)
    host = project.hosts[NODE]
    host.write(MODULE, OLD_MODULE, 0o640, uid=4321, gid=4322)
    host.write(FRAGMENT, OLD_FRAGMENT, 0o600)
    ledger = Ledger(host)
    return Scene(project, host, ledger, host.snapshot())


def change(**hooks: str) -> str:
    """Return a playbook that stages a module and places a fragment of each runtime, with some hooks replaced."""
    activation = HOOKS | hooks
    return playbook(
        action(NODE, "PROVIDER_INJECT", id="act-1", activation=activation),
        action(NODE, "CONFIG_ONLY", "JCA", id="act-2", activation=activation),
        level=Level.L3,
    )


def change_of_fragment(**hooks: str) -> str:
    """Return a playbook that places one fragment only, which takes less time, with some hooks replaced."""
    return playbook(action(NODE, activation=HOOKS | hooks), level=Level.L3)


def undoing(**hooks: str) -> str:
    """Return a rollback playbook of one action, with some hooks replaced."""
    return rollback(action(NODE, "PROVIDER_INJECT", activation=HOOKS | hooks), level=Level.L3)


def nothing(_: Scene) -> None:
    """Prepare nothing."""


def shrink_opt(scene: Scene) -> None:
    scene.host.run("mount", "-o", f"remount,size={NO_SPACE}", "/opt")


def shrink_tmp(scene: Scene) -> None:
    # Enough for what Ansible itself puts there, but not for the previous module.
    scene.host.run("mount", "-o", "remount,size=2m", "/tmp")
    scene.host.write(MODULE, bytes(3_000_000))


def replace_fragment_by_directory(scene: Scene) -> None:
    scene.host.path(FRAGMENT).unlink()
    scene.host.path(FRAGMENT).mkdir()


def remove_source(scene: Scene) -> None:
    (scene.project.directory / "files/oqsprovider.so").unlink()


class Failure(NamedTuple):
    """A way for a run to fail, and the step that the message has to name."""

    step: str
    hooks: Mapping[str, str] = MappingProxyType({})
    prepare: Callable[[Scene], None] = nothing
    options: tuple[str, ...] = ()


def assert_as_before(scene: Scene, *, but: frozenset[str] = frozenset()) -> None:
    after = scene.host.snapshot()
    assert {path: state for path, state in after.items() if path not in but} == scene.before
    assert not [path for path in after if path.startswith("/tmp/pqcota.")]


def assert_runs_as_before(scene: Scene) -> None:
    assert scene.ledger.is_running
    assert scene.ledger.started_with == scene.ledger.found_now()
    assert not scene.ledger.started_with.activated


IN_THE_MIDDLE = {
    "pre-fails": Failure("Run the pre hook", {"pre": "ledgerd stop; exit 7"}),
    "disk-full-at-staging": Failure(f"Stage the module {MODULE}", prepare=shrink_opt),
    "fragment-not-placed": Failure(
        f"Place the OpenSSL fragment {FRAGMENT}", {"pre": f"ledgerd stop; {READ_ONLY_CONFIG}"}
    ),
    "last-file-not-placed": Failure(
        "Place the JVM argument file /etc/pqcota/jvm.pqcota", {"pre": "ledgerd stop; mkdir -p /etc/pqcota/jvm.pqcota"}
    ),
    "activate-fails": Failure("Run the activate hook", {"activate": "ledgerd activate; exit 3"}),
    "restart-fails-once": Failure(
        "Run the restart hook",
        {"restart": "if mkdir /run/failed-once 2>/dev/null; then ledgerd stop; exit 5; fi; ledgerd restart"},
    ),
}


@pytest.mark.parametrize("failure", IN_THE_MIDDLE.values(), ids=IN_THE_MIDDLE)
def test_a_failed_step_leaves_files_as_before_and_the_service_running_on_them(scene: Scene, failure: Failure) -> None:
    failure.prepare(scene)
    run = scene.project.run(change(**failure.hooks), *failure.options).failed()
    assert f"This step failed: {failure.step} (" in run.failure
    assert "Files that could not be put back as they were: none." in run.failure
    assert "Hooks that failed while the node was put back: none." in run.failure
    assert_as_before(scene)
    assert_runs_as_before(scene)
    assert scene.ledger.log[-2:] == ["stop", scene.ledger.log[-1]]


def test_the_message_shows_what_a_hook_complained_of_and_never_expands_it(scene: Scene) -> None:
    pre = "ledgerd stop; echo \"{{ lookup('pipe', 'echo expanded') }}\" >&2; exit 7"
    run = scene.project.run(change_of_fragment(pre=pre)).failed()
    assert "status 7: {{ lookup('pipe', 'echo expanded') }}). " in run.failure
    assert "The restart hook was run." in run.failure


def test_another_module_on_the_node_than_was_checked_is_never_activated(scene: Scene) -> None:
    # From the moment the node was looked at, the source is another file than the one that was checked.
    scene.project.write("files/tampered.so", NEW_MODULE[::-1])
    source = "{{ 'tampered.so' if pqcota_before is defined else 'oqsprovider.so' }}"
    variables = {"pqcota_module_src": source, "pqcota_module_sha256": hashlib.sha256(NEW_MODULE).hexdigest()}
    run = scene.project.run(change(), "-e", json.dumps(variables)).failed()
    assert f"This step failed: Check the hash of {MODULE} on the node (" in run.failure
    assert "Run the activate hook" not in run.tasks_on(NODE)
    assert_as_before(scene)
    assert_runs_as_before(scene)


BEFORE_ANYTHING = {
    "wrong-hash-on-the-controller": Failure(
        "Check oqsprovider.so on the controller", options=("-e", f"pqcota_module_sha256={WRONG_HASH}")
    ),
    "module-missing-on-the-controller": Failure("Check oqsprovider.so on the controller", prepare=remove_source),
}


@pytest.mark.parametrize("failure", BEFORE_ANYTHING.values(), ids=BEFORE_ANYTHING)
def test_what_can_be_known_beforehand_fails_before_the_service_is_touched(scene: Scene, failure: Failure) -> None:
    failure.prepare(scene)
    before, log = scene.host.snapshot(), scene.ledger.log
    run = scene.project.run(change(), *failure.options).failed()
    assert [event.task for event in run.events if event.status == "failed"] == [failure.step]
    assert scene.host.snapshot() == before
    assert (scene.ledger.is_running, scene.ledger.log) == (True, log)


def test_without_space_for_the_previous_versions_nothing_is_changed(scene: Scene) -> None:
    # Where the space is used up, no module of Ansible can run to tidy up: what was kept so far stays in /tmp.
    shrink_tmp(scene)
    before, log = scene.host.snapshot("etc", "opt"), scene.ledger.log
    run = scene.project.run(change()).failed()
    assert next(event.task for event in run.events if event.status == "failed") == "Keep the previous versions"
    assert scene.host.snapshot("etc", "opt") == before
    assert (scene.ledger.is_running, scene.ledger.log) == (True, log)


def test_a_directory_in_place_of_a_file_stops_the_run_before_anything(scene: Scene) -> None:
    replace_fragment_by_directory(scene)
    before, log = scene.host.snapshot(), scene.ledger.log
    run = scene.project.run(change()).failed()
    assert f"Neither regular files nor absent: {FRAGMENT}" in run.failure
    assert scene.host.snapshot() == before
    assert (scene.ledger.is_running, scene.ledger.log) == (True, log)


def test_a_failing_deactivation_hinders_neither_files_nor_restart_and_is_named(scene: Scene) -> None:
    hooks = {"activate": "ledgerd activate; exit 3", "deactivate": "exit 9"}
    run = scene.project.run(change_of_fragment(**hooks)).failed()
    assert "This step failed: Run the activate hook (" in run.failure
    assert "Hooks that failed while the node was put back: deactivate." in run.failure
    assert_as_before(scene, but=frozenset([ACTIVATION]))
    assert scene.ledger.is_running
    assert scene.ledger.started_with == scene.ledger.found_now()


def test_a_restart_that_keeps_failing_is_named_and_the_files_are_back(scene: Scene) -> None:
    run = scene.project.run(change_of_fragment(restart="exit 5")).failed()
    assert "This step failed: Run the restart hook (" in run.failure
    assert "Hooks that failed while the node was put back: restart." in run.failure
    assert_as_before(scene)


def test_a_file_that_cannot_be_put_back_is_named_and_its_previous_version_kept(scene: Scene) -> None:
    run = scene.project.run(change_of_fragment(activate=f"ledgerd activate; {PIN_FRAGMENT}; exit 3")).failed()
    assert f"Files that could not be put back as they were: {FRAGMENT}; what was there before is in /tmp/pqcota." in (
        run.failure
    )
    named = re.search(r"/tmp/pqcota\.[^. ]+", run.failure)
    assert named
    kept = scene.host.snapshot(named[0])
    assert OLD_FRAGMENT in [state.content for state in kept.values()]
    assert {state.mode for state in kept.values()} == {"drwx------", "-rw-------"}
    after = scene.host.snapshot()
    unlike = {path for path in after if after[path] != scene.before.get(path)} - set(kept)
    assert unlike == {FRAGMENT}
    assert scene.ledger.is_running
    assert not scene.ledger.started_with.activated


def test_a_failed_first_run_on_a_bare_node_leaves_nothing_but_the_directories(make_project: MakeProject) -> None:
    project = make_project(NODE)
    project.write("files/oqsprovider.so", NEW_MODULE)
    host = project.hosts[NODE]
    ledger = Ledger(host)
    before = host.snapshot()
    project.run(change(activate="ledgerd activate; exit 3")).failed()
    assert set(host.snapshot()) - set(before) == {"/etc/pqcota", "/opt/pqcota"}
    assert ledger.is_running
    assert ledger.started_with == ledger.found_now()


def test_with_two_hooks_the_message_says_which_one_failed(scene: Scene) -> None:
    second = {"pre": "exit 8", "activate": "true", "deactivate": "true", "restart": "ledgerd restart"}
    text = playbook(
        action(NODE, id="act-1", activation=HOOKS), action(NODE, id="act-2", activation=second), level=Level.L3
    )
    run = scene.project.run(text).failed()
    assert "This step failed: Run the pre hook 2 of 2 (" in run.failure
    assert_as_before(scene)
    assert_runs_as_before(scene)


def test_without_a_restart_hook_the_message_says_that_nothing_was_restarted(scene: Scene) -> None:
    hooks = {"pre": "true", "activate": "exit 3", "restart": ""}
    run = scene.project.run(change_of_fragment(**hooks)).failed()
    assert "The plan has no restart hook, so nothing was restarted." in run.failure
    assert_as_before(scene)


UNDOING = {
    "pre-fails": Failure("Run the pre hook", {"pre": "ledgerd stop; exit 7"}),
    "deactivate-fails": Failure("Run the deactivate hook", {"deactivate": "exit 9"}),
    "file-not-removed": Failure(f"Remove the OpenSSL fragment {FRAGMENT}", {"deactivate": PIN_FRAGMENT}),
    "restart-fails-once": Failure(
        "Run the restart hook",
        {"restart": "if mkdir /run/failed-once 2>/dev/null; then exit 5; fi; ledgerd restart"},
    ),
}


@pytest.mark.parametrize("failure", UNDOING.values(), ids=UNDOING)
def test_a_failed_rollback_leaves_files_as_before_and_the_service_running_on_them(
    scene: Scene, failure: Failure
) -> None:
    run: Run = scene.project.run(undoing(**failure.hooks)).failed()
    assert f"This step failed: {failure.step} (" in run.failure
    assert "Files that could not be put back as they were: none." in run.failure
    assert_as_before(scene)
    assert_runs_as_before(scene)


def test_after_a_failure_is_mended_the_same_playbook_goes_through(scene: Scene) -> None:
    text = change_of_fragment(activate="test ! -e /run/broken && ledgerd activate")
    scene.host.write("/run/broken", "")
    scene.project.run(text).failed()
    scene.host.path("/run/broken").unlink()
    scene.project.run(text).succeeded()
    assert scene.host.read(FRAGMENT) != OLD_FRAGMENT
    assert scene.ledger.started_with == scene.ledger.found_now()
    assert scene.ledger.started_with.activated
