"""A node for one test: this machine with /opt and /etc of its own, in a private mount namespace.

Playbooks run with a local connection inside it; what they leave behind stays in the test's own folders.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from available import needs, skip_or_fail
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.playbook.generate import Direction, generate
from pqcota_provision.playbook.levels import Level

NODE = "node-1"

_MOUNT_AND_RUN = 'mount --bind "$1" /opt && mount --bind "$2" /etc && shift 2 && exec "$@"'
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """How a playbook run ended: exit status, output, and what the recap says of the node."""

    status: int
    output: str

    @property
    def changed(self) -> int:
        """How many tasks changed something on the node."""
        return sum(int(match.group(3)) for match in _RECAP.finditer(self.output) if match.group(1) == NODE)


@dataclass
class Sandbox:
    """The folders that stand for a node's /opt and /etc, and the controller's folder with modules."""

    root: Path
    inventory: str = f"{NODE} ansible_connection=local ansible_become=false\n"
    opt: Path = field(init=False)
    etc: Path = field(init=False)
    controller: Path = field(init=False)
    temporary: Path = field(init=False)

    def __post_init__(self) -> None:
        for name in ("opt", "etc", "controller", "temporary"):
            folder = self.root / name
            folder.mkdir()
            setattr(self, name, folder)
        (self.controller / "files").mkdir()
        # A copy, since some of /etc is what name look-ups and the tools themselves need.
        subprocess.run(["cp", "-a", "/etc/.", str(self.etc)], stderr=subprocess.DEVNULL, check=False)

    @property
    def state(self) -> Path:
        """A file that hooks write to, standing for a service."""
        return self.root / "state"

    def supply(self, file_name: str, content: bytes = b"a module") -> bytes:
        """Put a module into the controller's files folder and return its bytes."""
        (self.controller / "files" / file_name).write_bytes(content)
        return content

    def run(
        self,
        plan: FinalizedPlan,
        *arguments: str,
        level: Level = Level.L2,
        direction: Direction = Direction.FORWARD,
        verify: bool = False,
    ) -> Outcome:
        """Generate the plan's playbook and run it inside the sandbox."""
        text = generate(plan, level=level, direction=direction, verify=verify).text
        return self.play(text, *arguments)

    def play(self, text: str, *arguments: str) -> Outcome:
        """Run a playbook's text inside the sandbox."""
        ansible = needs("ansible-playbook")
        (self.controller / "play.yml").write_text(text, encoding="utf-8")
        (self.controller / "targets.ini").write_text(self.inventory, encoding="utf-8")
        command = [ansible, "-i", "targets.ini", "play.yml", *arguments]
        finished = self.inside(command, cwd=self.controller, timeout=240)
        return Outcome(finished.returncode, finished.stdout)

    def inside(
        self, command: list[str], *, cwd: Path | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command where /opt and /etc are the sandbox's own."""
        unshare = [needs("unshare"), "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.root),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.temporary),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        }
        return subprocess.run(
            [*unshare, "sh", "-c", _MOUNT_AND_RUN, "sandbox", str(self.opt), str(self.etc), *command],
            cwd=cwd,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
        )

    def files(self) -> dict[str, bytes]:
        """Return every file below the suite's two directories, by the path it has on the node."""
        folders = ((self.opt / "pqcota", "/opt/pqcota"), (self.etc / "pqcota", "/etc/pqcota"))
        return {
            f"{path}/{file.relative_to(folder)}": file.read_bytes()
            for folder, path in folders
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }

    def on_node(self, path: str) -> Path:
        """Return where a path of the node is kept."""
        root, rest = path.lstrip("/").split("/", 1)
        return {"opt": self.opt, "etc": self.etc}[root] / rest

    def leftovers(self) -> list[str]:
        """Return what is left of the directories for previous versions."""
        return sorted(folder.name for folder in self.temporary.glob("pqcota.*"))


def require_mount_namespaces() -> None:
    """Skip the test where no private mounts can be had."""
    command = [needs("unshare"), "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if subprocess.run([*command, "mount", "--bind", "/opt", "/opt"], capture_output=True, check=False).returncode:
        skip_or_fail("this user cannot make a private mount namespace")
