"""docs/proofs.md, played through beside a systemd of its own: a canary, a fleet, a bad build."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from documents import PROJECT, matches, read_steps

from booted_systemd import BootedSystemd, boot

pytestmark = pytest.mark.real

_FOLDER = "/srv/rollout"
_MARKER = "@@end-of-step@@"
_SETTINGS = f"export HOME=/root ANSIBLE_NOCOLOR=1 ANSIBLE_PYTHON_INTERPRETER={sys.executable}\n"


@pytest.fixture
def system(needs: Callable[[str], str], skip_or_fail: Callable[[str], NoReturn]) -> Iterator[BootedSystemd]:
    with boot(needs, skip_or_fail) as system:
        yield system


def test_a_rollout_with_one_canary_goes_as_the_document_says(system: BootedSystemd) -> None:
    steps = read_steps(PROJECT / "docs" / "proofs.md")
    assert len(steps) > 40
    shutil.copytree(PROJECT / "examples", Path(f"{system.root}{_FOLDER}") / "examples")
    script = "".join(f"{step.command}\nstatus=$?; echo; echo {_MARKER}; (exit $status)\n" for step in steps)
    system.write(f"{_FOLDER}/../session.sh", f"exec 2>&1\ncd {_FOLDER}\n{_SETTINGS}{script}")
    done = system.run("bash", "/srv/session.sh", timeout=420)
    printed = [part.strip("\n").splitlines() for part in done.stdout.split(_MARKER)[:-1]]
    assert len(printed) == len(steps), f"the session ended early:\n{done.stdout}"
    wrong = [
        f"docs/proofs.md:{step.line}: $ {step.command}\n" + "\n".join(lines)
        for step, lines in zip(steps, printed, strict=True)
        if step.output is not None and not matches(step.output, lines)
    ]
    assert not wrong, "\n\n".join(wrong)


def test_the_units_of_the_examples_start_under_systemd(system: BootedSystemd) -> None:
    for name in ("pqcota-prove.service", "pqcota-prove.timer", "payments.service"):
        system.write(f"/etc/systemd/system/{name}", (PROJECT / "examples" / "proofs" / name).read_bytes())
    system.write("/usr/local/lib/payments.py", (PROJECT / "examples" / "proofs" / "payments.py").read_bytes())
    system.write("/etc/pqcota/services.yml", (PROJECT / "examples" / "proofs" / "services.yml").read_bytes())
    command = Path(sys.executable).parent / "pqcota-prove"
    assert system.run("ln", "-sf", str(command), "/usr/local/bin/pqcota-prove").returncode == 0
    system.systemctl("daemon-reload")
    system.systemctl("start", "pqcota-prove.timer", "payments.service")
    system.systemctl("start", "pqcota-prove.service")
    assert "Result=success" in system.systemctl("show", "--property=Result", "pqcota-prove.service")
    assert system.run("test", "-f", "/var/lib/pqcota/census.json").returncode in (0, 1)


def test_the_example_plays_through_without_systemd(skip_or_fail: Callable[[str], NoReturn]) -> None:
    import os

    if os.geteuid() != 0:
        skip_or_fail("only root may look at what another process has mapped")
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [PROJECT / "examples" / "proofs" / "play.sh"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout
    for part in (
        'there is no proof of "oqsprovider" in the store',
        "minted a proof of oqsprovider 0.8.0",
        'oqsprovider.so is proven by "canary-1"',
        "not minting oqsprovider 0.9.0",
        '"leaks a file handle per connection"',
    ):
        assert part in told
