"""The commands that the documentation shows, and what it says they print.

A ``console`` block is a terminal session: lines after ``$ `` (and ``> ``) are typed, the others are printed. A line
``...`` or ``…`` stands for any lines, ``…`` within a line for any text. An ``sh`` block is a script of which only
success is expected. Blocks of one document run in order in one shell, standard error with standard output.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from available import needs

PROJECT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One command of a document, the line it stands in, and what is printed after it."""

    line: int
    command: str
    output: tuple[str, ...] | None


def read_steps(document: Path) -> list[Step]:
    """Return the commands of a document in order."""
    text = document.read_text(encoding="utf-8")
    steps: list[Step] = []
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start(3)) + 1
        body = "\n".join(row.removeprefix(fence.group(1)) for row in fence.group(3).splitlines())
        if fence.group(2) == "sh":
            steps.append(Step(line, f"set -e\n{body}\nset +e", None))
        elif fence.group(2) == "console":
            steps.extend(_session(body, line))
    return steps


def _session(body: str, line: int) -> Iterator[Step]:
    command: list[str] = []
    output: list[str] = []
    start = line
    for number, row in enumerate(body.splitlines(), line):
        if row.startswith("$ "):
            if command:
                yield Step(start, "\n".join(command), tuple(output))
            command, output, start = [row[2:]], [], number
        elif row.startswith("> ") and not output:
            command.append(row[2:])
        else:
            output.append(row)
    if command:
        yield Step(start, "\n".join(command), tuple(output))


def run_steps(steps: list[Step], folder: Path, environment: dict[str, str] | None = None) -> list[list[str]]:
    """Run the steps in one shell and return the lines each of them printed.

    The shell works in a folder that holds the project's examples, with /opt and /etc of its own.
    """
    shutil.copytree(PROJECT / "examples", folder / "examples")
    private = {name: folder.parent / f"{folder.name}-{name}" for name in ("opt", "etc")}
    for path in private.values():
        path.mkdir()
    subprocess.run(["cp", "-a", "/etc/.", str(private["etc"])], stderr=subprocess.DEVNULL, check=False)
    marker = "@@end-of-step@@"
    # The next step may ask for the exit status of this one.
    script = "".join(f"{step.command}\nstatus=$?; echo; echo {marker}; (exit $status)\n" for step in steps)
    unshare = [needs("unshare"), "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    mounts = 'mount --bind "$1" /opt && mount --bind "$2" /etc && exec bash'
    finished = subprocess.run(
        [*unshare, "sh", "-c", mounts, "sh", str(private["opt"]), str(private["etc"])],
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(folder.parent),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            **(environment or {}),
        },
        input=script,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
    printed = [part.strip("\n").splitlines() for part in finished.stdout.split(marker)[:-1]]
    assert len(printed) == len(steps), f"the session ended early:\n{finished.stdout}"
    return printed


def matches(expected: tuple[str, ...], printed: list[str]) -> bool:
    """Tell whether what was printed is what the document says, wildcards allowed for."""
    wanted = list(expected)
    while wanted and not wanted[-1].strip():
        wanted.pop()
    pattern = ""
    for row in wanted:
        if row.strip() in ("...", "…"):
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in row.rstrip().split("…")) + r"[ ]*\n"
    return re.fullmatch(pattern, "".join(f"{row}\n" for row in printed)) is not None
