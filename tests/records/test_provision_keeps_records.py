"""pqcota-provision --dsn: the playbook goes out once every record of the plan is committed, or not at all."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from record_samples import action, by_id, openssl_finding, plan_of

from postgres_fixture import Database
from pqcota_provision.cli.provision import main
from pqcota_provision.plan.approvals import approve
from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.model import FinalizedPlan, PlanStatus, ProvisioningRecord, RemediationAction
from pqcota_provision.plan.protojson import dump_message
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.schema import RECORD_TABLE_STATEMENTS
from pqcota_provision.records.postgres.store import PostgresRecordStore
from pqcota_provision.records.store import StoredRecord

KEY = PrivateKey(bytes(range(32)))
COMMAND = str(Path(sys.executable).parent / "pqcota-provision")

PlanFile = Callable[..., str]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PQCOTA_ORG", "PQCOTA_REQUIRE_ORG", "PQCOTA_AUTO_DDL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PQCOTA_APPROVAL_KEYS", f"reviewer={KEY.public.to_text()}")


def approved(plan: FinalizedPlan) -> FinalizedPlan:
    in_review = replace(plan, status=PlanStatus.IN_REVIEW, approval_signatures=(), finalized_at=None)
    return approve(in_review, "reviewer", KEY, now=Timestamp(1_700_000_000), registered=None)


@pytest.fixture
def plan_file(tmp_path: Path) -> PlanFile:
    def write(*actions: RemediationAction) -> str:
        path = tmp_path / "plan.json"
        path.write_text(dump_message(approved(plan_of(*actions))))
        return str(path)

    return write


@pytest.fixture
def history(database: Database) -> Database:
    database.create_history()
    database.add_snapshot("snap-1", "node-1", [openssl_finding("f-1", "payments")])
    database.add_snapshot("snap-2", "node-2", [openssl_finding("f-1", "theirs")])
    return database


def records_in(database: Database, organization: str = "default") -> list[ProvisioningRecord]:
    with Connection.open(database.dsn) as connection:
        rows = list(PostgresRecordStore(connection, organization).select())
    return [row.record for row in rows if isinstance(row, StoredRecord)]


def row_count(database: Database) -> int:
    if database.query("SELECT to_regclass('pqcota_provisioning_record')") == [(None,)]:
        return 0
    return int(database.query("SELECT count(*) FROM pqcota_provisioning_record")[0][0])


def test_what_the_node_looks_like_now_is_kept_when_the_playbook_goes_out(
    history: Database, plan_file: PlanFile, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Timestamp.from_nanoseconds(time.time_ns())
    assert main(["--dsn", history.dsn, plan_file(action(1, by_id("snap-1")))]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("---\n")
    (record,) = records_in(history)
    assert record.before is not None
    assert (record.id, record.before.modules, record.app_keys) == ("plan-1:a1", ("openssl@3.0.13",), ("payments",))
    assert record.at is not None
    assert before <= record.at <= Timestamp.from_nanoseconds(time.time_ns())
    assert err.splitlines()[-1] == (
        'pqcota-provision: 1 record kept for the organization "default"; snapshot references: 1 resolved, 0 unresolved.'
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("gone", 'there is no snapshot "gone"', id="unresolved"),
        pytest.param("snap-2", 'the snapshot "snap-2" is one of the node "node-2"', id="mispaired"),
    ],
)
@pytest.mark.parametrize(
    ("options", "status"), [pytest.param([], 3, id="told"), pytest.param(["--allow-incomplete"], 0, id="allowed")]
)
def test_a_reference_that_does_not_hold_is_told_and_recorded_all_the_same(
    history: Database,
    plan_file: PlanFile,
    capsys: pytest.CaptureFixture[str],
    source: str,
    reason: str,
    options: list[str],
    status: int,
) -> None:
    assert main(["--dsn", history.dsn, *options, plan_file(action(1, by_id(source)))]) == status
    out, err = capsys.readouterr()
    assert out.startswith("---\n")
    assert 'blank reference-unresolved action "a1" on node-1: ' in err
    (record,) = records_in(history)
    assert reason in record.snapshot_resolutions[0].reason
    assert err.endswith("snapshot references: 0 resolved, 1 unresolved.\n")


def test_without_a_database_a_reference_is_not_held_against_a_plan(
    plan_file: PlanFile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([plan_file(action(1, by_id("gone")))]) == 0
    assert "reference-unresolved" not in capsys.readouterr().err


def test_a_database_without_history_keeps_records_and_says_what_they_lack(
    database: Database, plan_file: PlanFile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dsn", database.dsn, plan_file(action(1, by_id("snap-1")))]) == 3
    assert "the database holds no history (no table pqcota_snapshots)" in capsys.readouterr().err
    assert [record.before for record in records_in(database)] == [None]
    assert database.query("SELECT to_regclass('pqcota_snapshots')") == [(None,)]


def test_a_rollback_keeps_no_record(history: Database, plan_file: PlanFile, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rollback", "--dsn", history.dsn, plan_file(action(1, by_id("gone")))]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("---\n")
    assert "a rollback keeps no record" in err
    assert row_count(history) == 0


def test_a_plan_that_is_refused_leaves_no_record(
    history: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = replace(approved(plan_of(action(1))), scope="wider")
    path = tmp_path / "plan.json"
    path.write_text(dump_message(forged))
    assert main(["--dsn", history.dsn, str(path)]) == 1
    assert capsys.readouterr().out == ""
    assert row_count(history) == 0


def test_records_go_to_the_organization_that_is_named_and_so_does_the_look_up(
    history: Database, plan_file: PlanFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_ORG", "acme")
    assert main(["--dsn", history.dsn, plan_file(action(1, by_id("snap-1")))]) == 3
    assert [record.id for record in records_in(history, "acme")] == ["plan-1:a1"]
    assert records_in(history, "default") == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param({"PQCOTA_ORG": "Acme"}, 'the organization "Acme" is malformed', id="malformed"),
        pytest.param({"PQCOTA_REQUIRE_ORG": "1"}, "no organization is named", id="none where one must be"),
        pytest.param({"PQCOTA_REQUIRE_ORG": "1", "PQCOTA_ORG": "default"}, "of your own", id="the reserved one"),
        pytest.param({"PQCOTA_AUTO_DDL": "off"}, 'PQCOTA_AUTO_DDL is "off"', id="a switch that is none"),
    ],
)
def test_nothing_is_kept_or_printed_under_a_wrong_setting(
    history: Database,
    plan_file: PlanFile,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    said: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["--dsn", history.dsn, plan_file(action(1))]) == 2
    out, err = capsys.readouterr()
    assert (out, said in err, row_count(history)) == ("", True, 0)


def test_nothing_is_printed_where_the_table_may_not_be_created(
    history: Database, plan_file: PlanFile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_AUTO_DDL", "0")
    assert main(["--dsn", history.dsn, plan_file(action(1))]) == 1
    out, err = capsys.readouterr()
    assert (out, "PQCOTA_AUTO_DDL=0 forbids creating it" in err) == ("", True)


@pytest.mark.parametrize(
    ("dsn", "status"),
    [
        pytest.param("", 2, id="empty"),
        pytest.param(" ", 2, id="blank"),
        pytest.param("password=Corr3ct horse", 2, id="not understood"),
        pytest.param("host=/nowhere dbname=d user=u password='Corr3ct horse'", 1, id="no server"),
    ],
)
def test_without_its_database_nothing_is_written_anywhere(
    plan_file: PlanFile, tmp_path: Path, capsys: pytest.CaptureFixture[str], dsn: str, status: int
) -> None:
    output, report = tmp_path / "out.yml", tmp_path / "report.json"
    arguments = ["--dsn", dsn, "--output", str(output), "--report", str(report), plan_file(action(1))]
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert (out, output.exists(), report.exists()) == ("", False, False)
    assert ("Corr3ct" in err, "horse" in err, "Traceback" in err) == (False, False, False)


def test_the_report_tells_what_was_kept(history: Database, plan_file: PlanFile, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    plan = plan_file(action(1, by_id("snap-1")), action(2, by_id("gone")))
    assert main(["--dsn", history.dsn, "--report", str(report), plan]) == 3
    document = json.loads(report.read_text())
    assert document["records"] == {
        "organization": "default",
        "kept": 2,
        "referencesResolved": 1,
        "referencesUnresolved": 1,
    }
    assert [notice["id"] for notice in document["notices"]] == ["reference-unresolved"]


def start(dsn: str, plan: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([COMMAND, "--dsn", dsn, plan], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextmanager
def held_up(database: Database) -> Iterator[None]:
    """Hold a lock that no row gets past, until the block ends."""
    for statement in RECORD_TABLE_STATEMENTS:
        database.execute(statement)
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE pqcota_provisioning_record IN ACCESS EXCLUSIVE MODE")
        yield


def wait_for_insert(database: Database) -> int:
    """Return the process of the server that is in the middle of keeping records."""
    for _ in range(600):
        waiting = database.query(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'pqcota-provision'"
            " AND wait_event_type = 'Lock' AND query LIKE '%%INSERT INTO%%' AND datname = %s",
            (database.name,),
        )
        if waiting:
            return int(waiting[0][0])
        time.sleep(0.05)
    raise AssertionError("the command never came to keep its records")


def test_an_interrupt_before_the_commit_leaves_no_record_and_no_playbook(
    history: Database, plan_file: PlanFile
) -> None:
    with held_up(history), start(history.dsn, plan_file(action(1))) as process:
        wait_for_insert(history)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, b"Traceback" in err) == (130, b"", False)
    assert row_count(history) == 0


def test_a_backend_killed_before_the_commit_leaves_no_record_and_no_playbook(
    history: Database, plan_file: PlanFile
) -> None:
    with held_up(history), start(history.dsn, plan_file(action(1))) as process:
        history.query("SELECT pg_terminate_backend(%s)", (wait_for_insert(history),))
        out, err = process.communicate()
    assert (process.returncode, out, b"Traceback" in err) == (1, b"", False)
    assert re.search(rb"(server ended the connection|connection to the database was lost) while keeping the rec", err)
    assert row_count(history) == 0


def test_a_command_that_is_killed_before_the_commit_leaves_no_record(history: Database, plan_file: PlanFile) -> None:
    with held_up(history), start(history.dsn, plan_file(action(1))) as process:
        wait_for_insert(history)
        process.kill()
        out, _ = process.communicate()
    assert out == b""
    assert row_count(history) == 0


def test_a_playbook_that_nobody_takes_is_not_one_that_was_not_recorded(history: Database, plan_file: PlanFile) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [COMMAND, "--dsn", history.dsn, plan_file(action(1))], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert process.returncode == 1
    assert b"1 record kept" in process.stderr
    assert row_count(history) == 1


def test_twenty_commands_that_start_on_an_empty_database_all_succeed(database: Database, plan_file: PlanFile) -> None:
    plan = plan_file(action(1), action(2))
    processes = [start(database.dsn, plan) for _ in range(20)]
    ended = [(process.communicate(), process.returncode) for process in processes]
    assert [(out[:4], status) for (out, _), status in ended] == [(b"---\n", 3)] * 20
    assert row_count(database) == 40


def test_without_a_database_no_driver_is_loaded(plan_file: PlanFile) -> None:
    program = (
        "import sys; from pqcota_provision.cli.provision import main; main([sys.argv[1]]);"
        "print([name for name in ('psycopg', 'pydantic', 'asyncio') if name in sys.modules], file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, plan_file(action(1))], capture_output=True, check=True, text=True
    )
    assert process.stderr.splitlines()[-1] == "[]"
