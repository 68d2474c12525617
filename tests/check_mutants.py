"""Mutates the code that decides what is approved and where files go, and asks whether a test notices: ``make mutants``.

mutmut makes the mutants and runs the tests (its settings are in pyproject.toml). A mutant that no test notices has to
be argued in tests/mutants-argued.txt, by what it changes and not by its number, which moves with every edit.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
ARGUED = PROJECT / "tests" / "mutants-argued.txt"
FOLDER = PROJECT / "mutants"
MUTMUT = Path(sys.executable).with_name("mutmut")
SECONDS = 5400
# Some mutants count or grow without end.
MEMORY = 4 << 30

_NAME = re.compile(r"(?P<module>.+)\.x(?:ǁ(?P<owner>\w+)ǁ|_)(?P<function>\w+)__mutmut_\d+")
# A mutant that makes a loop endless is noticed by the time it takes.
_NOTICED = ("killed", "timeout")


@dataclass(frozen=True)
class Change:
    """What a mutant changes: the function, the lines it takes away and those it puts in their place."""

    function: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((self.function, *self.lines))


def read_argued(text: str) -> Iterator[Change]:
    """Yield the changes of the list: blocks of a function and its lines; lines with a # are the argument."""
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
        if lines:
            yield Change(lines[0].strip(), tuple(_squeezed(line) for line in lines[1:]))


def read_change(name: str, diff: str) -> Change:
    """Return what the mutant of that name changes, from the diff that mutmut shows."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is no mutant's name")
    function = ".".join(part for part in match.group("module", "owner", "function") if part)
    lines = [line for line in diff.splitlines() if line[:1] in ("-", "+") and line[:4] not in ("--- ", "+++ ")]
    return Change(function, tuple(map(_squeezed, lines)))


def _squeezed(line: str) -> str:
    return f"{line[:1]} {' '.join(line[1:].split())}"


def _mutmut(*arguments: str) -> str:
    done = subprocess.run([MUTMUT, *arguments], cwd=PROJECT, capture_output=True, text=True, check=True)
    return done.stdout


def _run(patterns: list[str], log: Path) -> bool:
    with log.open("w", encoding="utf-8") as written:
        running = subprocess.Popen(
            [MUTMUT, "run", *patterns],
            cwd=PROJECT,
            env={name: value for name, value in os.environ.items() if name != "CI"},
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return running.wait(timeout=SECONDS) == 0
        except subprocess.TimeoutExpired:
            print(f"mutmut is not done after {SECONDS} s")
            return False
        finally:
            # Its workers and the server that forks them outlive it.
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()


def _unnoticed(patterns: list[str]) -> Iterator[tuple[str, str]]:
    wanted = [re.compile(pattern.replace(".", r"\.").replace("*", ".*")) for pattern in patterns]
    for line in _mutmut("results").splitlines():
        name, _, status = line.strip().rpartition(": ")
        if status not in _NOTICED and (not wanted or any(pattern.fullmatch(name) for pattern in wanted)):
            yield name, status


def main(patterns: list[str]) -> int:
    """Run mutmut on all mutants, or on those whose names fit; return 1 where one goes unnoticed and unargued."""
    begin = time.monotonic()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    log = FOLDER / "mutmut.log"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    print(f"mutating; this takes some minutes, and {log.relative_to(PROJECT)} tells how far it is", flush=True)
    if not _run(patterns, log):
        print(*log.read_text(encoding="utf-8").replace("\r", "\n").splitlines()[-60:], sep="\n")
        return 1
    _mutmut("export-cicd-stats")
    counts = json.loads((FOLDER / "mutmut-cicd-stats.json").read_text(encoding="utf-8"))
    argued = set(read_argued(ARGUED.read_text(encoding="utf-8")))
    unnoticed = [(name, status, read_change(name, _mutmut("show", name))) for name, status in _unnoticed(patterns)]
    unargued = [(name, status, change) for name, status, change in unnoticed if change not in argued]
    for name, status, change in unargued:
        print(f"\n# {status}: {name}\n{change}")
    gone = argued - {change for _, _, change in unnoticed}
    if gone and not patterns:
        print("\nargued in vain, since a test notices these or they are no mutants any more:")
        print(*sorted(map(str, gone)), sep="\n\n")
    told = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in counts.items() if number)
    print(f"\n{told}; {len(unnoticed) - len(unargued)} argued, {len(unargued)} not; {time.monotonic() - begin:.0f} s")
    return 1 if unargued else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
