"""Throwaway hosts with a real sshd, and a controller that alone can reach them.

Each of them is a set of Linux namespaces behind one process. All mounts, processes, links and addresses belong to
the namespaces, so that the end of that process is the end of them all; and it ends with the test run, even if that
is killed. Nothing outside of them is ever contacted: the controller has no way out.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

NAME_PREFIX = "pqcota-test-"
LOGIN_USER = "ops"
LOGIN_UID = 7700
CLOSED_PORT = 9

_INIT = Path(__file__).with_name("namespace_init.py")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PATIENCE = 20.0
_SSHD = "/usr/sbin/sshd"
_SSHD_PID = "/run/sshd.pid"
_SSHD_CONFIG = f"""\
Port 22
HostKey /etc/ssh/test_host_key
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
PidFile {_SSHD_PID}
Subsystem sftp internal-sftp
"""
_SNAPSHOT_ROOTS = ("etc", "opt", "srv", "tmp", "var/tmp")


class NamespacesRefused(Exception):
    """The machine does not let the tests make namespaces, mounts or links."""


class FileState(NamedTuple):
    """All of a file that has to be as it was before: kind and mode, owner, and the bytes or the link's target."""

    mode: str
    uid: int
    gid: int
    content: bytes


class Namespaces:
    """Namespaces of mounts, processes, network and host name, alive until closed."""

    def __init__(self, name: str, *arguments: str) -> None:
        self.name = name
        command = (
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child=KILL"),
            *(sys.executable, "-I", str(_INIT), NAME_PREFIX + name, *arguments),
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            problem = self._end()
            raise NamespacesRefused(f"namespaces cannot be made here: {problem}")
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        self.pid = int(children.split()[0])

    def _end(self) -> str:
        """Kill the processes and return what they said on standard error."""
        self._process.kill()
        _, error = self._process.communicate()
        return error.strip()

    def close(self) -> None:
        """End the namespaces with all that runs in them; more than once does no harm."""
        if self._process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._process.communicate()

    def enter(self, *namespaces: str) -> list[str]:
        """Return the beginning of a command line that runs the rest of it inside."""
        return ["nsenter", f"--target={self.pid}", *(f"--{namespace}" for namespace in namespaces)]


class Host(Namespaces):
    """A host of its own: root directory, processes, network, sshd."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, "host")
        self.address = f"10.77.{number}.2"
        self.address6 = f"fd77:0:0:{number:x}::2"

    def furnish(self, keys: Path) -> None:
        """Give the host its users, and all that sshd needs."""
        self._users(keys)
        self.write("/etc/ssh/test_host_key", (keys / "host_key").read_bytes(), 0o600)
        self.write("/etc/ssh/test_sshd_config", _SSHD_CONFIG)
        self.write("/etc/hosts", f"127.0.0.1 localhost\n{self.address} {NAME_PREFIX}{self.name}\n")
        self.run("mkdir", "-m", "0755", "/run/sshd")

    def _users(self, keys: Path) -> None:
        authorized = (keys / "user_key.pub").read_text()
        home = f"/home/{LOGIN_USER}"
        for path, line in {
            "/etc/passwd": f"{LOGIN_USER}:x:{LOGIN_UID}:{LOGIN_UID}::{home}:/bin/sh\n",
            "/etc/group": f"{LOGIN_USER}:x:{LOGIN_UID}:\n",
            "/etc/shadow": f"{LOGIN_USER}:*:19000:0:99999:7:::\n",
        }.items():
            with self.path(path).open("a") as accounts:
                accounts.write(line)
        for owner, directory in {0: "/root", LOGIN_UID: home}.items():
            self.run("mkdir", "-p", "-m", "0700", f"{directory}/.ssh")
            self.write(f"{directory}/.ssh/authorized_keys", authorized, 0o600)
            self.run("chown", "-R", f"{owner}:{owner}", directory)

    def path(self, path: str) -> Path:
        """Return where a path of the host is seen from outside; links are not to be followed."""
        return Path(f"/proc/{self.pid}/root{path}")

    def write(self, path: str, content: str | bytes, mode: int = 0o644, *, uid: int = 0, gid: int = 0) -> None:
        """Put a file on the host, with the directories above it."""
        target = self.path(path)
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        os.chown(target, uid, gid)
        target.chmod(mode)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file of the host."""
        return self.path(path).read_bytes()

    def exists(self, path: str) -> bool:
        """Tell whether anything is at a path of the host."""
        return os.path.lexists(self.path(path))

    def run(self, *command: str) -> str:
        """Run a command on the host as root and return its output; a failing command fails the test."""
        done = subprocess.run(
            [*self.enter("mount", "pid", "net", "uts"), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            env={"PATH": _PATH, "HOME": "/root", "LC_ALL": "C.UTF-8"},
            timeout=_PATIENCE,
        )
        assert done.returncode == 0, f"{command} failed on {self.name}: {done.stderr}"
        return done.stdout

    def start_sshd(self) -> None:
        """Start the host's sshd, unless it runs, and wait until it listens."""
        if self.exists(_SSHD_PID):
            if self.is_running(int(self.read(_SSHD_PID))):
                return
            self.path(_SSHD_PID).unlink()
        self.run(_SSHD, "-f", "/etc/ssh/test_sshd_config", "-E", "/var/log/sshd.log")
        # sshd writes its process id only once it listens.
        self.wait_for(_SSHD_PID)

    def wait_for(self, path: str) -> None:
        """Wait until there is a file with something in it; fail the test after a while."""
        deadline = time.monotonic() + _PATIENCE
        while not (self.exists(path) and self.read(path)):
            assert time.monotonic() < deadline, f"{path} did not come to be on {self.name}"
            time.sleep(0.005)

    def is_running(self, pid: int) -> bool:
        """Tell whether a process of the host, by its number there, runs and is no zombie."""
        try:
            status = self.read(f"/proc/{pid}/stat")
        except (FileNotFoundError, ProcessLookupError):
            return False
        return status.rpartition(b")")[2].split()[0] != b"Z"

    def snapshot(self, *roots: str) -> dict[str, FileState]:
        """Return the state of every file under some directories, by default all that a playbook could touch."""
        return dict(self._walk(roots or _SNAPSHOT_ROOTS))

    def _walk(self, roots: Iterable[str]) -> Iterable[tuple[str, FileState]]:
        base = self.path("/")
        for root in roots:
            for directory, _, names in os.walk(base / root.strip("/")):
                for path in (Path(directory), *(Path(directory, name) for name in names)):
                    yield f"/{path.relative_to(base)}", _state(path)


def _state(path: Path) -> FileState:
    status = path.lstat()
    content = b""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path).encode()
    elif stat.S_ISREG(status.st_mode):
        content = path.read_bytes()
    return FileState(stat.filemode(status.st_mode), status.st_uid, status.st_gid, content)


def made_keys(directory: Path) -> Path:
    """Make the key pairs of a fleet: one for the user who logs in, one for the hosts."""
    directory.mkdir(mode=0o700, exist_ok=True)
    for name in ("user_key", "host_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", NAME_PREFIX + name, "-f", str(directory / name)],
            check=True,
        )
    return directory


class Fleet:
    """A controller and the hosts that it reaches, each over a link of its own."""

    def __init__(self, keys: Path) -> None:
        self.keys = keys
        self.hosts: dict[str, Host] = {}
        self.controller = Namespaces("controller")
        try:
            self._ip(self.controller, "link set lo up")
        except NamespacesRefused:
            self.close()
            raise

    def add(self, name: str) -> Host:
        """Make a host and link it to the controller."""
        number = len(self.hosts) + 1
        host = self.hosts[name] = Host(name, number)
        host.furnish(self.keys)
        self._ip(
            self.controller,
            f"link add port{number} type veth peer name eth0 netns {host.pid}",
            f"addr add 10.77.{number}.1/30 dev port{number}",
            f"link set port{number} up",
        )
        self._ip(host, "link set lo up", f"addr add {host.address}/30 dev eth0", "link set eth0 up")
        host.start_sshd()
        return host

    def add_ipv6(self, host: Host) -> None:
        """Give a host and its link addresses of IPv6; without duplicate address detection they serve at once."""
        number = list(self.hosts.values()).index(host) + 1
        for end, side, device in ((self.controller, 1, f"port{number}"), (host, 2, "eth0")):
            self._ip(end, f"-6 addr add fd77:0:0:{number:x}::{side}/64 dev {device} nodad")

    def _ip(self, end: Namespaces, *commands: str) -> None:
        for command in commands:
            done = subprocess.run(
                [*end.enter("net"), "ip", *command.split()], capture_output=True, text=True, timeout=_PATIENCE
            )
            if done.returncode:
                raise NamespacesRefused(f"ip {command}: {done.stderr.strip()}")

    def known_hosts(self) -> str:
        """Return the lines of known_hosts that vouch for every host."""
        key = " ".join((self.keys / "host_key.pub").read_text().split()[:2])
        return "".join(f"{host.address},{host.address6} {key}\n" for host in self.hosts.values())

    def run(
        self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the controller, which has the files of this machine and the links to the hosts."""
        process = subprocess.Popen(
            [*self.controller.enter("pid", "net"), *command],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, error = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return subprocess.CompletedProcess(list(command), process.returncode, output, error)

    def close(self) -> None:
        """End every host and the controller, whatever they are doing."""
        for namespaces in (*self.hosts.values(), self.controller):
            namespaces.close()
