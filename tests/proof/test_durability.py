"""Writers that are killed at any moment leave whole records, and never take one back."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.state import NodeState
from pqcota_provision.proof.store import DirectoryProofStore

ROUNDS = 15
MOST_RECORDS = 3
LONGEST_LIFE_AFTER = 0.02

_WRITER = """
import itertools, sys
from pathlib import Path
from pqcota_provision.errors import ProofAlreadyThere
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof.census import Census, CensusEntry
from pqcota_provision.proof.state import HealthyBuild, NodeState, Refusal
from pqcota_provision.proof.store import DirectoryProofStore

directory, start = Path(sys.argv[1]), int(sys.argv[2])
state = NodeState(directory / "state", "acme")
store = DirectoryProofStore(directory / "proofs", "acme")
state.prepare(now=Timestamp(start))
print("begun", flush=True)
for number in itertools.count(start):
    sha256 = f"{number % 7:064x}"
    time = f"2026-01-01T00:00:00Z {number}"
    state.record_healthy(HealthyBuild("payments", "oqsprovider", sha256, "v" * 5000, "live", at=time, last_at=time))
    state.refuse(Refusal("payments", sha256, "r" * 400, time))
    state.mark_required(f"app-{number % 5}")
    state.keep_census(Census("/opt/pqcota", time, (CensusEntry("a.so", sha256, 0, 0, 0o644),) * (1 + number % 90)))
    try:
        store.put("payments", f"{number:064x}", "canary-1", f"{number} ".encode() * 3000)
    except ProofAlreadyThere:
        pass
    print(number, flush=True)
"""


def test_every_record_parses_and_every_proof_stands_after_writers_were_killed(tmp_path: Path) -> None:
    chance = random.Random(20260102)
    proofs: dict[str, bytes] = {}
    acknowledged = 0
    (tmp_path / "proofs").mkdir()
    for _ in range(ROUNDS):
        acknowledged = max(acknowledged, _write_until_killed(tmp_path, acknowledged + 1, chance))
        _every_state_file_parses(tmp_path / "state")
        stored = {entry.sha256: entry.data for entry in DirectoryProofStore(tmp_path / "proofs", "acme").entries()}
        assert proofs.items() <= stored.items(), "a proof was changed or lost"
        for sha256, data in stored.items():
            assert data == f"{int(sha256, 16)} ".encode() * 3000
        assert {f"{number:064x}" for number in range(1, acknowledged + 1)} <= stored.keys()
        proofs = stored
    assert acknowledged > ROUNDS, "the writers were killed too early to write anything"


_WRITER_KILLED_AT_EACH_LINE = """
import os, signal, sys
from pathlib import Path
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.proof import files
from pqcota_provision.proof.census import Census, CensusEntry
from pqcota_provision.proof.state import HealthyBuild, NodeState, Refusal
from pqcota_provision.proof.store import DirectoryProofStore

def write(directory, generation):
    state = NodeState(directory / "state", "acme")
    state.prepare(now=Timestamp(0))
    time = f"generation {generation}"
    state.record_healthy(HealthyBuild("payments", "oqsprovider", "1" * 64, "", "live", at=time, last_at=time))
    state.refuse(Refusal("payments", "1" * 64, "r" * generation, time))
    state.mark_required(f"app-{generation}")
    state.keep_census(Census("/opt/pqcota", time, (CensusEntry("a.so", "1" * 64, 0, 0, 0o644),)))
    DirectoryProofStore(directory / "proofs", "acme").put("payments", f"{generation:064x}", "canary-1", b"whole proof")

def killed_at(line, directory, generation):
    lines = 0
    def count(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename != files.__file__:
            return None
        if event == "line":
            lines += 1
            if lines == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return count
    writer = os.fork()
    if writer == 0:
        sys.settrace(count)
        write(directory, generation)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1])

line, status = 0, -signal.SIGKILL
while status == -signal.SIGKILL:
    line += 1
    directory = Path(sys.argv[1]) / str(line)
    write(directory, 1)
    status = killed_at(line, directory, 2)
    state, store = NodeState(directory / "state", "acme"), DirectoryProofStore(directory / "proofs", "acme")
    (build,), (refusal,) = state.healthy_builds(), state.refusals()
    assert build.last_at in ("generation 1", "generation 2")
    assert refusal.reason in ("r", "rr")
    assert state.census().taken_at in ("generation 1", "generation 2")
    assert set(state.required_apps()) <= {"app-1", "app-2"}
    assert {entry.data for entry in store.entries()} == {b"whole proof"}
print(status, line)
"""


def test_a_writer_killed_at_any_line_leaves_whole_records(tmp_path: Path) -> None:
    """At every single line of the code that writes files, over what an earlier writer wrote in full."""
    done = subprocess.run(
        [sys.executable, "-c", _WRITER_KILLED_AT_EACH_LINE, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    status, lines = map(int, done.stdout.split())
    assert status == 0
    assert lines > 60


def _write_until_killed(directory: Path, start: int, chance: random.Random) -> int:
    """Kill a writer some random while after some random record; return the last number it said was written."""
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(directory), str(start)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "begun\n"
    lines = [writer.stdout.readline().strip() for _ in range(chance.randint(0, MOST_RECORDS))]
    time.sleep(chance.uniform(0, LONGEST_LIFE_AFTER))
    writer.send_signal(signal.SIGKILL)
    lines += writer.stdout.read().splitlines()
    writer.wait()
    writer.stdout.close()
    numbers = [int(line) for line in lines if line.isdigit()]
    return numbers[-1] if numbers else start - 1


def _every_state_file_parses(directory: Path) -> None:
    state = NodeState(directory, "acme")
    assert len(state.healthy_builds()) <= 7
    assert len(state.refusals()) <= 7
    assert len(state.required_apps()) <= 5
    state.census()
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".json"):
                json.loads(Path(folder, name).read_text())


def test_what_a_killed_writer_left_half_written_is_cleared_away_later(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged = 0
    for _ in range(10):
        acknowledged = max(acknowledged, _write_until_killed(tmp_path, acknowledged + 1, chance))
    state = NodeState(tmp_path / "state", "acme")
    state.prepare(now=Timestamp(int(time.time()) + 7200))
    left = [name for _, _, names in os.walk(tmp_path / "state") for name in names if name.endswith(".tmp")]
    assert left == []
