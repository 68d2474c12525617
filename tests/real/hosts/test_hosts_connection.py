"""What becomes of a node whose connection is cut in the middle, and nodes that are reached over IPv6."""

from __future__ import annotations

import pytest
from ansible_project import MakeProject, Project
from approved_plans import action, playbook, rollback
from fleet import NamespacesRefused
from ledger_service import FRAGMENT, HOOKS, Ledger

from available import skip_or_fail
from pqcota_provision import Level

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

NODE = "web-1"
UNREACHABLE = 4

# The hook ends the sshd that serves this very connection, and the one that would take the next.
KILL_SSHD = """\
kill "$(cat /run/sshd.pid)"
pid=$$
while [ "$(cat /proc/$pid/comm)" != sshd ]; do pid=$(cut -d' ' -f4 /proc/$pid/stat); done
kill -9 "$pid"
sleep 60
"""
CUT_LINK = "ip link set eth0 down; sleep 60"
NOTICE_A_DEAD_LINK = "-o ServerAliveInterval=2 -o ServerAliveCountMax=3"


def cut(project: Project, step: str, command: str) -> str:
    """Return a playbook whose hook at a step cuts the connection, but only once."""
    once = f"mkdir /run/cut-once 2>/dev/null || exec true\n{command}"
    hooks = HOOKS | {step: f"{HOOKS[step]}\n{once}"}
    return playbook(action(NODE, "PROVIDER_INJECT", activation=hooks), action("web-2", id="act-2"), level=Level.L3)


def reconnect(project: Project) -> None:
    host = project.hosts[NODE]
    host.run("ip", "link", "set", "eth0", "up")
    host.start_sshd()


@pytest.mark.parametrize(
    ("step", "command"),
    [
        pytest.param("pre", KILL_SSHD, id="sshd-dies-in-pre"),
        pytest.param("activate", KILL_SSHD, id="sshd-dies-in-activate"),
        pytest.param("restart", CUT_LINK, id="link-cut-in-restart"),
    ],
)
def test_a_cut_connection_fails_the_run_and_running_it_again_heals(
    make_project: MakeProject, step: str, command: str
) -> None:
    project = make_project(NODE, "web-2")
    project.write("files/oqsprovider.so", b"\x7fELF module")
    host = project.hosts[NODE]
    ledger = Ledger(host)
    text = cut(project, step, command)
    assert "A node that becomes unreachable in the middle cannot be put back; run the playbook again." in text
    run = project.run(text, "--ssh-common-args", NOTICE_A_DEAD_LINK)
    assert run.status == UNREACHABLE, run.text
    assert [event.task for event in run.events if event.status == "unreachable"] == [f"Run the {step} hook"]
    assert not project.hosts["web-2"].exists(FRAGMENT)
    reconnect(project)
    project.run(text).succeeded()
    assert ledger.is_running
    assert ledger.started_with == ledger.found_now()
    assert ledger.started_with.activated
    assert project.hosts["web-2"].exists(FRAGMENT)


def test_what_was_there_before_a_cut_is_still_on_the_node(make_project: MakeProject) -> None:
    project = make_project(NODE, "web-2")
    project.write("files/oqsprovider.so", b"\x7fELF module")
    host = project.hosts[NODE]
    host.write(FRAGMENT, "previous version\n", 0o600)
    Ledger(host)
    assert project.run(cut(project, "activate", KILL_SSHD)).status == UNREACHABLE
    assert host.read(FRAGMENT) != b"previous version\n"
    kept = [state.content for path, state in host.snapshot("tmp").items() if path.startswith("/tmp/pqcota.")]
    assert b"previous version\n" in kept


def with_ipv6(project: Project) -> str:
    host = project.hosts[NODE]
    try:
        project.add_ipv6(host)
    except NamespacesRefused as refusal:
        skip_or_fail(f"no IPv6 here: {refusal}")
    return host.address6


def test_a_node_reached_over_ipv6_is_changed_and_rolled_back(make_project: MakeProject) -> None:
    project = make_project(NODE)
    address = with_ipv6(project)
    project.write("targets.ini", project.inventory().replace(project.hosts[NODE].address, address))
    project.run(playbook(action(NODE))).succeeded()
    assert project.hosts[NODE].exists(FRAGMENT)
    project.run(rollback(action(NODE))).succeeded()
    assert not project.hosts[NODE].exists(FRAGMENT)


def test_a_node_named_by_its_ipv6_address_is_changed_and_rolled_back(make_project: MakeProject) -> None:
    project = make_project(NODE)
    address = with_ipv6(project)
    inventory = project.inventory(leave_out=[NODE], extra=["[edge]", address])
    project.write("targets.ini", inventory)
    project.run(playbook(action(address))).succeeded()
    assert project.hosts[NODE].exists(FRAGMENT)
    project.run(rollback(action(address))).succeeded()
    assert not project.hosts[NODE].exists(FRAGMENT)
