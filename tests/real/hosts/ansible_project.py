"""A directory as an operator keeps it: inventory, settings, playbook, files; and runs of ``ansible-playbook`` there."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet import LOGIN_USER, Fleet, Host

NODE_PYTHON = "/usr/bin/python3"
RUN_TIMEOUT = 600.0

_RECAP = re.compile(r"^(?P<host>\S+)\s+: (?P<counts>ok=.*)$", re.MULTILINE)


@dataclass(frozen=True)
class TaskEvent:
    """What became of one task on one host."""

    task: str
    host: str
    status: str
    changed: bool
    ignored: bool
    msg: str = ""
    stdout: str = ""
    stderr: str = ""
    rc: str = ""


@dataclass(frozen=True)
class Run:
    """One run of ``ansible-playbook``: how it ended, what it printed, what became of each task."""

    status: int
    stdout: str
    stderr: str
    events: tuple[TaskEvent, ...]

    @property
    def text(self) -> str:
        """All that was printed."""
        return self.stdout + self.stderr

    @property
    def changed(self) -> list[str]:
        """The names of the tasks that changed something, in order."""
        return [event.task for event in self.events if event.changed]

    @property
    def failure(self) -> str:
        """The message of the last task that failed for good."""
        failures = [event for event in self.events if event.status == "failed" and not event.ignored]
        assert failures, f"no task failed:\n{self.text}"
        return failures[-1].msg

    def tasks_on(self, host: str) -> list[str]:
        """Return the tasks that did something on a host other than being skipped, in order."""
        return [event.task for event in self.events if event.host == host and event.status != "skipped"]

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """The counts of the play recap, by host."""
        return {
            found["host"]: {name: int(count) for name, _, count in (c.partition("=") for c in found["counts"].split())}
            for found in _RECAP.finditer(self.stdout.rpartition("PLAY RECAP")[2])
        }

    def succeeded(self) -> Run:
        """Return the run, if it ended well and without a warning; else fail the test with what it printed."""
        assert self.status == 0, self.text
        assert "[WARNING]" not in self.text, self.text
        assert "[DEPRECATION" not in self.text, self.text
        return self

    def failed(self) -> Run:
        """Return the run, if it failed because of a task; else fail the test with what it printed."""
        assert self.status == 2, self.text
        return self


class Project:
    """An operator's directory, and the controller that its runs happen on."""

    def __init__(self, directory: Path, fleet: Fleet, *, pipelining: bool = True, runtime: Path) -> None:
        self.directory = directory
        self._fleet = fleet
        self._runtime = runtime
        self._runs = 0
        (runtime / "known_hosts").write_text(fleet.known_hosts())
        self.write("ansible.cfg", self._settings(pipelining=pipelining))
        self.write("targets.ini", self.inventory())

    @property
    def hosts(self) -> Mapping[str, Host]:
        """The hosts of the inventory, by name."""
        return self._fleet.hosts

    def add_ipv6(self, host: Host) -> None:
        """Have a host answer at its address of IPv6 too."""
        self._fleet.add_ipv6(host)

    def _settings(self, *, pipelining: bool) -> str:
        options = {
            "UserKnownHostsFile": self._runtime / "known_hosts",
            "GlobalKnownHostsFile": "none",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "ConnectTimeout": 30,
            "ControlMaster": "auto",
            "ControlPersist": "60s",
        }
        arguments = " ".join(f"-o {name}={value}" for name, value in options.items())
        return (
            "[defaults]\n"
            f"callback_plugins = {Path(__file__).with_name('callback_plugins')}\n"
            "callbacks_enabled = pqcota_events\n"
            f"local_tmp = {self._runtime}/local\n"
            "[ssh_connection]\n"
            f"pipelining = {pipelining}\n"
            f"ssh_args = -F none {arguments}\n"
            f"control_path_dir = {self._runtime}/cp\n"
        )

    def inventory(self, *, user: str = "root", extra: Iterable[str] = (), leave_out: Iterable[str] = ()) -> str:
        """Return an inventory of the fleet's hosts in INI form; ``extra`` lines come last."""
        left_out = set(leave_out)
        lines = [
            "[payment_hosts]",
            *(
                f"{name} ansible_host={host.address}"
                for name, host in self._fleet.hosts.items()
                if name not in left_out
            ),
            "",
            "[all:vars]",
            f"ansible_user={user}",
            f"ansible_ssh_private_key_file={self._fleet.keys / 'user_key'}",
            f"ansible_python_interpreter={NODE_PYTHON}",
            *extra,
        ]
        return "\n".join(lines) + "\n"

    def log_in_as_user(self) -> None:
        """Have the inventory log in as a user who is not root."""
        self.write("targets.ini", self.inventory(user=LOGIN_USER))

    def write(self, name: str, content: str | bytes) -> Path:
        """Put a file into the directory and return its path."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run(
        self,
        playbook: str,
        *options: str,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        name: str = "provision.yml",
    ) -> Run:
        """Write the playbook and run it with ``ansible-playbook -i targets.ini OPTIONS``."""
        path = self.write(name, playbook)
        return self.command(
            "ansible-playbook", "-i", str(self.directory / "targets.ini"), *options, str(path),
            environment=environment, cwd=cwd,
        )  # fmt: skip

    def command(self, *command: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> Run:
        """Run a command on the controller, by default in the directory."""
        self._runs += 1
        events = self._runtime / f"events-{self._runs}.jsonl"
        done = self._fleet.run(
            command,
            cwd=cwd or self.directory,
            environment=self._environment(events) | dict(environment or {}),
            timeout=RUN_TIMEOUT,
        )
        lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
        return Run(done.returncode, done.stdout, done.stderr, tuple(TaskEvent(**json.loads(line)) for line in lines))

    def _environment(self, events: Path) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._runtime),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(self.directory / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "PQCOTA_EVENTS": str(events),
        }


MakeProject = Callable[..., Project]


@contextmanager
def project_maker(keys: Path, directory: Path) -> Iterator[MakeProject]:
    """Yield a function that makes hosts of the names given and an operator's directory with their inventory.

    At the end the hosts are gone. Raises NamespacesRefused where the machine does not let them be made.
    """
    # Sockets of ssh need a short path.
    with tempfile.TemporaryDirectory(prefix="pqcota-") as runtime, closing(Fleet(keys)) as fleet:

        def make(*names: str, pipelining: bool = True) -> Project:
            for name in names:
                fleet.add(name)
            return Project(directory, fleet, pipelining=pipelining, runtime=Path(runtime))

        yield make
