"""The throwaway hosts leave nothing behind on the machine and reach nothing but each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_project import MakeProject
from fleet import Fleet

pytest_plugins = ("host_fixtures",)
pytestmark = pytest.mark.real

PATIENCE = 20.0

STAYING_RUN = """
import sys, time
from pathlib import Path
from fleet import Fleet
fleet = Fleet(Path(sys.argv[1]))
host = fleet.add("web-1")
print(host.pid, fleet.controller.pid, flush=True)
time.sleep(1000)
"""


def links_and_mounts() -> tuple[set[str], str]:
    return set(os.listdir("/sys/class/net")), Path("/proc/self/mounts").read_text()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_test_run_that_is_killed_leaves_no_host_behind(host_keys: Path) -> None:
    command = [sys.executable, "-c", STAYING_RUN, str(host_keys)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent) as run:
        assert run.stdout is not None
        pids = [int(pid) for pid in run.stdout.readline().split()]
        assert [is_alive(pid) for pid in pids] == [True, True]
        run.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [is_alive(pid) for pid in pids] == [False, False]


def test_hosts_add_no_link_and_no_mount_to_the_machine(host_keys: Path) -> None:
    before = links_and_mounts()
    fleet = Fleet(host_keys)
    try:
        fleet.add("web-1")
        assert links_and_mounts() == before
    finally:
        fleet.close()


def test_what_is_written_on_a_host_is_neither_on_the_machine_nor_on_another_host(make_project: MakeProject) -> None:
    project = make_project("web-1", "web-2")
    path = "/etc/only-on-web-1"
    project.hosts["web-1"].write(path, "x")
    assert project.hosts["web-1"].exists(path)
    assert not project.hosts["web-2"].exists(path)
    assert not Path(path).exists()


def test_a_host_is_bare_even_where_the_machine_is_not(make_project: MakeProject) -> None:
    host = make_project("web-1").hosts["web-1"]
    assert [host.exists(path) for path in ("/etc/pqcota", "/opt/pqcota")] == [False, False]
    assert os.listdir(host.path("/tmp")) == []


def test_the_controller_has_no_way_out(make_project: MakeProject) -> None:
    project = make_project("web-1")
    (route,) = project.command("ip", "route").stdout.splitlines()
    assert route.startswith("10.77.1.0/30 dev port1 ")
