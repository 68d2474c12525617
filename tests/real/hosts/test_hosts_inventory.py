"""Which hosts a playbook reaches, and what becomes of the others."""

from __future__ import annotations

import pytest
from ansible_project import NODE_PYTHON, MakeProject, Project
from approved_plans import action, playbook
from fleet import CLOSED_PORT, LOGIN_USER
from ledger_service import FRAGMENT, HOOKS, Ledger

from pqcota_provision import Level

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

UNREACHABLE = 4
NO_HOSTS = 1


def two_nodes(first_kind: str = "CONFIG_ONLY") -> str:
    """Return a playbook for web-1, then web-2."""
    return playbook(action("web-1", first_kind, id="act-1"), action("web-2", id="act-2"))


def is_applied(project: Project, node: str) -> bool:
    return project.hosts[node].exists(FRAGMENT)


def test_a_node_missing_from_the_inventory_fails_the_run_before_any_other_is_changed(
    make_project: MakeProject,
) -> None:
    project = make_project("web-1")
    before = project.hosts["web-1"].snapshot()
    run = project.run(two_nodes()).failed()
    assert run.failure.startswith("Nothing was changed. Not a host of the inventory: web-2.")
    assert project.hosts["web-1"].snapshot() == before


def test_without_that_check_ansible_would_pass_over_the_missing_node(make_project: MakeProject) -> None:
    project = make_project("web-1")
    head, _, rest = two_nodes().partition("- name: Check the inventory")
    run = project.run(head + rest[rest.index("- name: Provision web-1") :])
    assert (run.status, is_applied(project, "web-1")) == (0, True), run.text
    assert "Could not match supplied host pattern, ignoring: web-2" in run.text


def test_a_node_that_is_also_a_group_fails_the_run_with_nothing_changed(make_project: MakeProject) -> None:
    project = make_project("web-1", "web-2")
    project.write("targets.ini", project.inventory() + "[web-1]\nweb-1\nweb-2\n")
    run = project.run(playbook(action("web-1"))).failed()
    assert "Also the name of a group: web-1." in run.failure
    assert not any(is_applied(project, node) for node in project.hosts)


def test_the_first_node_that_fails_stops_the_run_before_the_next(make_project: MakeProject) -> None:
    project = make_project("web-1", "web-2")
    before = project.hosts["web-2"].snapshot()
    run = project.run(two_nodes("PROVIDER_INJECT")).failed()
    assert "oqsprovider.so on the controller: no such file" in run.failure
    assert run.tasks_on("web-2") == []
    assert project.hosts["web-2"].snapshot() == before


def test_a_node_done_before_the_one_that_fails_stays_done(make_project: MakeProject) -> None:
    project = make_project("web-1", "web-2")
    project.run(playbook(action("web-1"), action("web-2", "PROVIDER_INJECT", id="act-2"))).failed()
    assert is_applied(project, "web-1")


def test_a_node_that_is_put_back_stops_the_run_before_the_next(make_project: MakeProject) -> None:
    project = make_project("web-1", "web-2")
    ledgers = [Ledger(host) for host in project.hosts.values()]
    log = ledgers[1].log
    text = playbook(
        action("web-1", activation=HOOKS | {"activate": "exit 3"}),
        action("web-2", id="act-2", activation=HOOKS),
        level=Level.L3,
    )
    run = project.run(text).failed()
    assert "This step failed: Run the activate hook" in run.failure
    assert [ledger.is_running for ledger in ledgers] == [True, True]
    assert (ledgers[1].log, is_applied(project, "web-2")) == (log, False)


def test_an_unreachable_node_stops_the_run_before_the_next(make_project: MakeProject) -> None:
    project = make_project("web-2")
    inventory = project.inventory(extra=["[edge]", f"web-1 ansible_host=127.0.0.1 ansible_port={CLOSED_PORT}"])
    project.write("targets.ini", inventory)
    run = project.run(two_nodes())
    assert run.status == UNREACHABLE, run.text
    assert [event.host for event in run.events if event.status == "unreachable"] == ["web-1"]
    assert not is_applied(project, "web-2")


def test_limit_confines_the_run_to_the_nodes_named(make_project: MakeProject) -> None:
    project = make_project("web-1", "web-2")
    project.run(two_nodes(), "--limit", "web-2").succeeded()
    assert [is_applied(project, node) for node in ("web-1", "web-2")] == [False, True]


def test_limit_with_localhost_keeps_the_check_of_the_inventory(make_project: MakeProject) -> None:
    project = make_project("web-1")
    project.run(two_nodes(), "--limit", "web-1,localhost").failed()
    assert not is_applied(project, "web-1")


def test_limit_to_a_misspelt_node_fails(make_project: MakeProject) -> None:
    project = make_project("web-1")
    run = project.run(playbook(action("web-1")), "--limit", "web-9")
    assert run.status == NO_HOSTS, run.text
    assert not is_applied(project, "web-1")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--tags", "config"), id="tag-nobody-set"),
        pytest.param(("--tags", "always"), id="always"),
        pytest.param(("--tags", "tagged"), id="tagged"),
        pytest.param(("--skip-tags", "untagged"), id="skip-untagged"),
    ],
)
def test_no_tags_run_half_of_a_transaction(make_project: MakeProject, options: tuple[str, str]) -> None:
    project = make_project("web-1")
    host = project.hosts["web-1"]
    ledger = Ledger(host)
    before, log = host.snapshot(), ledger.log
    run = project.run(playbook(action("web-1", activation=HOOKS), level=Level.L3), *options).succeeded()
    assert run.tasks_on("web-1") == []
    assert run.tasks_on("localhost") == ["Check that every target node is one host of the inventory"]
    assert host.snapshot() == before
    assert (ledger.is_running, ledger.log) == (True, log)


def test_tags_do_not_hide_a_missing_node(make_project: MakeProject) -> None:
    make_project("web-1").run(two_nodes(), "--tags", "config").failed()


def test_skipping_the_check_of_the_inventory_leaves_the_transaction_whole(make_project: MakeProject) -> None:
    project = make_project("web-1")
    ledger = Ledger(project.hosts["web-1"])
    text = playbook(action("web-1", activation=HOOKS), level=Level.L3)
    project.run(text, "--skip-tags", "always").succeeded()
    assert ledger.is_running
    assert ledger.started_with == ledger.found_now()
    assert ledger.started_with.activated


@pytest.mark.parametrize("pipelining", [True, False], ids=["pipelining", "files-over-sftp"])
def test_a_login_that_is_not_root_applies_by_sudo_whatever_the_umask(
    make_project: MakeProject, pipelining: bool
) -> None:
    project = make_project("web-1", pipelining=pipelining)
    project.write("files/oqsprovider.so", b"\x7fELF module")
    project.log_in_as_user()
    host = project.hosts["web-1"]
    sudoers = f"{LOGIN_USER} ALL=(ALL) NOPASSWD: ALL\nDefaults umask=0077, umask_override\n"
    host.write(f"/etc/sudoers.d/{LOGIN_USER}", sudoers, 0o440)
    ledger = Ledger(host)
    project.run(playbook(action("web-1", "PROVIDER_INJECT", activation=HOOKS), level=Level.L3)).succeeded()
    state = {path: state for path, state in host.snapshot().items() if "/pqcota" in path}
    assert {path: (entry.mode, entry.uid, entry.gid) for path, entry in state.items()} == {
        "/etc/pqcota": ("drwxr-xr-x", 0, 0),
        "/etc/pqcota/openssl-pqc.cnf": ("-rw-r--r--", 0, 0),
        "/opt/pqcota": ("drwxr-xr-x", 0, 0),
        "/opt/pqcota/oqsprovider.so": ("-rw-r--r--", 0, 0),
    }
    assert ledger.is_running


def test_a_login_that_may_not_become_root_changes_nothing(make_project: MakeProject) -> None:
    project = make_project("web-1")
    project.log_in_as_user()
    before = project.hosts["web-1"].snapshot()
    project.run(playbook(action("web-1"))).failed()
    assert project.hosts["web-1"].snapshot() == before


def test_settings_for_every_host_do_not_reach_the_tasks_on_the_controller(make_project: MakeProject) -> None:
    project = make_project("web-1")
    host = project.hosts["web-1"]
    for name, target in {"node-python": NODE_PYTHON, "node-sudo": "/usr/bin/sudo"}.items():
        host.run("ln", "-s", target, f"/usr/local/bin/{name}")
    settings = [
        "ansible_connection=ssh",
        "ansible_become_exe=/usr/local/bin/node-sudo",
        "ansible_python_interpreter=/usr/local/bin/node-python",
    ]
    project.write("targets.ini", project.inventory(extra=settings))
    project.write("files/oqsprovider.so", b"\x7fELF module")
    run = project.run(playbook(action("web-1", "PROVIDER_INJECT"))).succeeded()
    assert run.recap["web-1"]["failed"] == 0
    assert is_applied(project, "web-1")
