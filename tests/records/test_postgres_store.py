"""The table of records on a real server: its format, who may do what, and what a failure leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from record_samples import NOW, RECORD, action, by_id, openssl_finding, plan_of, record

from postgres_fixture import Database
from pqcota_provision.errors import CommitUncertain, RecordsUnavailable, RecordTableMissing, RecordUnstorable
from pqcota_provision.plan.model import ProvisioningRecord
from pqcota_provision.plan.protojson import dump_message
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.postgres import connection as connection_module
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.history import PostgresHistory
from pqcota_provision.records.postgres.schema import RECORD_TABLE_STATEMENTS
from pqcota_provision.records.postgres.store import PostgresRecordStore
from pqcota_provision.records.recording import record_plan
from pqcota_provision.records.store import RecordSelection, StoredRecord, UnreadableRecord

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"

WRITER_GRANTS = (
    "GRANT INSERT ON pqcota_provisioning_record TO {role}",
    "GRANT USAGE ON SEQUENCE pqcota_provisioning_record_seq_seq TO {role}",
)

# As the Go tools write it: another order of keys, blanks, and a row that says less.
GO_ROW = """{"snapshotResolutions": [{"submitted": {"snapshotId": "snap-1", "sourceNodeId": "node-1"},
  "resolvedSnapshotId": "snap-1"}], "status":"PROVISIONING_STATUS_STAGED", "id":"plan-1:a1", "nodeId":"node-1",
  "appKeys":["payments","ledger"],"actionId":"a1", "planId": "plan-1", "before":{"modules":["openssl@3.0.13"]}}"""


def create_table(database: Database) -> None:
    for statement in RECORD_TABLE_STATEMENTS:
        database.execute(statement)


def rows_in(database: Database) -> int:
    return int(database.query("SELECT count(*) FROM pqcota_provisioning_record")[0][0])


def insert(database: Database, json_text: str, *, org: str = "acme", plan_id: str | None = "plan-1") -> None:
    database.execute(
        "INSERT INTO pqcota_provisioning_record (id, node_id, plan_id, record, org)"
        " VALUES ('r', 'n', %s, %s::jsonb, %s)",
        (plan_id, json_text, org),
    )


def test_a_row_holds_what_the_other_tools_look_for(database: Database, store: PostgresRecordStore) -> None:
    store.append([RECORD])
    assert database.query(
        "SELECT seq, id, node_id, app_keys, plan_id, record, org, created_at > now() - interval '1 hour'"
        " FROM pqcota_provisioning_record"
    ) == [(1, "plan-1:a1", "node-1", "payments,ledger", "plan-1", json.loads(dump_message(RECORD)), "acme", True)]


def test_the_table_is_the_one_the_other_tools_create(database: Database, store: PostgresRecordStore) -> None:
    store.append([])
    assert database.query(
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_name = 'pqcota_provisioning_record' ORDER BY ordinal_position"
    ) == [
        ("seq", "bigint", "NO", "nextval('pqcota_provisioning_record_seq_seq'::regclass)"),
        ("id", "text", "NO", None),
        ("node_id", "text", "NO", None),
        ("app_keys", "text", "YES", None),
        ("plan_id", "text", "YES", None),
        ("record", "jsonb", "NO", None),
        ("created_at", "timestamp with time zone", "NO", "now()"),
        ("org", "text", "NO", "'default'::text"),
    ]
    assert [
        definition.partition(" USING ")[2]
        for (definition,) in database.query(
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'pqcota_provisioning_record' ORDER BY indexname"
        )
    ] == ["btree (node_id, seq)", "btree (org, node_id, seq)", "btree (seq)"]


def test_a_stock_protobuf_reads_what_comes_back_from_the_table(
    database: Database, store: PostgresRecordStore, tmp_path: Path
) -> None:
    store.append([RECORD])
    out = tmp_path / "plan.desc"
    protoc = (sys.executable, "-m", "grpc_tools.protoc", f"-I{SCHEMAS}", "--include_imports")
    subprocess.run([*protoc, f"--descriptor_set_out={out}", "plan.proto"], check=True)
    pool: Any = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    name = "pqcota.provisioning.v1.ProvisioningRecord"
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    ((text,),) = database.query("SELECT record::text FROM pqcota_provisioning_record")
    assert json_format.Parse(text, message()) == json_format.Parse(dump_message(RECORD), message())


def test_rows_of_the_other_tools_are_read(database: Database, store: PostgresRecordStore) -> None:
    create_table(database)
    insert(database, GO_ROW, plan_id=None)
    ((row),) = store.select()
    assert isinstance(row, StoredRecord)
    assert (row.record.id, row.record.app_keys, row.record.at) == ("plan-1:a1", ("payments", "ledger"), None)
    assert row.stored_at is not None
    assert row.newer_json is None


def test_a_row_of_a_newer_version_is_read_and_nothing_of_it_is_lost(
    database: Database, store: PostgresRecordStore
) -> None:
    create_table(database)
    newer = {"id": "plan-1:a1", "status": "PROVISIONING_STATUS_VERIFIED", "verifiedBy": ["x"], "nodeId": "node-1"}
    insert(database, json.dumps(newer))
    ((row),) = store.select()
    assert isinstance(row, StoredRecord)
    assert (row.record.id, row.record.node_id) == ("plan-1:a1", "node-1")
    assert json.loads(row.newer_json or "") == newer
    assert "\n" not in (row.newer_json or "")


@pytest.mark.parametrize(
    "json_text",
    [
        pytest.param("[]", id="a list"),
        pytest.param("null", id="null"),
        pytest.param('"text"', id="a string"),
        pytest.param('{"at": "yesterday"}', id="a time that is none"),
        pytest.param('{"nodeId": 7}', id="a node that is a number"),
        pytest.param('{"snapshotResolutions": [{"submitted": {}, "legacyPlanSnapshotId": "x"}]}', id="both of a oneof"),
    ],
)
def test_a_row_that_is_no_record_does_not_hide_the_others(
    database: Database, store: PostgresRecordStore, json_text: str
) -> None:
    create_table(database)
    store.append([record(1)])
    insert(database, json_text)
    store.append([record(2)])
    first, broken, last = store.select()
    assert (isinstance(first, StoredRecord), isinstance(last, StoredRecord)) == (True, True)
    assert isinstance(broken, UnreadableRecord)
    assert (broken.seq, broken.record_id, broken.node_id) == (2, "r", "n")
    assert broken.reason


def test_a_time_out_of_range_does_not_hide_its_row(database: Database, store: PostgresRecordStore) -> None:
    create_table(database)
    store.append([record(1)])
    database.execute("UPDATE pqcota_provisioning_record SET created_at = 'infinity'")
    ((row),) = store.select()
    assert isinstance(row, StoredRecord)
    assert row.stored_at is None


@pytest.mark.parametrize(
    ("since", "numbers"),
    [
        pytest.param("2026-01-01T00:00:00Z", ["a1", "a2", "a3"], id="before all"),
        pytest.param("2026-01-02T00:00:00.000002Z", ["a2", "a3"], id="the very microsecond"),
        pytest.param("2026-01-02T00:00:00.000002001Z", ["a3"], id="a nanosecond later"),
        pytest.param("2026-01-02T01:00:00.000002+01:00", ["a2", "a3"], id="with an offset"),
        pytest.param("0001-01-01T00:00:00Z", ["a1", "a2", "a3"], id="the first time there is"),
        pytest.param("9999-12-31T23:59:59.999999999Z", [], id="the last time there is"),
    ],
)
def test_nothing_is_listed_that_was_stored_before_the_time_asked_for(
    database: Database, store: PostgresRecordStore, since: str, numbers: list[str]
) -> None:
    store.append([record(1), record(2), record(3)])
    database.execute(
        "UPDATE pqcota_provisioning_record SET created_at ="
        " '2026-01-02T00:00:00Z'::timestamptz + seq * interval '1 microsecond'"
    )
    rows = store.select(RecordSelection(since=Timestamp.parse(since)))
    assert [row.record.action_id for row in rows if isinstance(row, StoredRecord)] == numbers


def test_a_large_organization_is_listed_in_order_too(database: Database, store: PostgresRecordStore) -> None:
    store.append([record(1)])
    database.execute(
        "INSERT INTO pqcota_provisioning_record (id, node_id, plan_id, record, org)"
        " SELECT 'x', 'node-' || 30000 - i, 'plan-1', %s::jsonb, CASE i %% 3 WHEN 0 THEN 'other' ELSE 'acme' END"
        " FROM generate_series(1, 36000) AS i",
        (dump_message(RECORD),),
    )
    seqs = [row.seq for row in store.select()]
    assert len(seqs) == 24_001
    assert seqs == sorted(seqs)
    newest = [row.seq for row in store.select(RecordSelection(newest=22_000))]
    assert newest == seqs[-22_000:]


def test_listing_can_be_left_early_and_started_again(store: PostgresRecordStore) -> None:
    store.append([record(number) for number in range(200)])
    rows = store.select()
    assert next(rows).seq == 1
    rows.close()
    assert len(list(store.select())) == 200


def test_all_of_ten_thousand_actions_are_recorded(database: Database, connection: Connection) -> None:
    database.create_history()
    for node in range(10):
        finding = openssl_finding("f-1", f"app-{node}")
        database.add_snapshot(f"snap-{node}", f"node-{node}", [finding], organization="acme")
    actions = [
        action(number, by_id(f"snap-{number % 20}", node=f"node-{number % 10}"), target_node_id=f"node-{number % 10}")
        for number in range(10_000)
    ]
    recording = record_plan(plan_of(*actions), history=PostgresHistory(connection, "acme"), now=NOW)
    assert (recording.resolved, recording.unresolved) == (5000, 5000)
    store = PostgresRecordStore(connection, "acme")
    assert store.append(recording.records) == 10_000
    assert tuple(row.record for row in store.select() if isinstance(row, StoredRecord)) == recording.records


# Who may do what.


def at_once(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Let that many threads work from the same moment on, and return what they raised."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(30)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_twenty_writers_that_start_on_an_empty_database_all_succeed(database: Database) -> None:
    connections = [Connection.open(database.dsn) for _ in range(20)]

    def write(number: int) -> None:
        PostgresRecordStore(connections[number], "acme").append([record(number)])

    try:
        assert at_once(20, write) == []
    finally:
        for connection in connections:
            connection.close()
    assert rows_in(database) == 20


def test_a_writer_that_does_not_know_of_the_others_does_not_disturb_them(database: Database) -> None:
    connections = [Connection.open(database.dsn) for _ in range(8)]

    def write(number: int) -> None:
        if number % 2:
            PostgresRecordStore(connections[number], "acme").append([record(number)])
            return
        # The stranger takes no lock, so here it may well lose the race; ours may not.
        try:
            create_table(database)
        except psycopg.Error:
            return

    try:
        assert at_once(8, write) == []
    finally:
        for connection in connections:
            connection.close()
    assert rows_in(database) == 4


def test_a_role_that_may_only_insert_can_keep_records(database: Database) -> None:
    create_table(database)
    with Connection.open(database.dsn_of(database.role(grants=WRITER_GRANTS))) as connection:
        PostgresRecordStore(connection, "acme").append([record(1)])
    assert rows_in(database) == 1


def test_a_role_that_may_only_select_can_list_records(database: Database, store: PostgresRecordStore) -> None:
    store.append([record(1)])
    reader = database.role(grants=("GRANT SELECT ON pqcota_provisioning_record TO {role}",))
    with Connection.open(database.dsn_of(reader)) as connection:
        assert len(list(PostgresRecordStore(connection, "acme").select())) == 1


def test_a_role_that_may_only_select_is_told_which_right_it_lacks_to_write(database: Database) -> None:
    create_table(database)
    reader = database.role(grants=("GRANT SELECT ON pqcota_provisioning_record TO {role}",))
    with (
        Connection.open(database.dsn_of(reader)) as connection,
        pytest.raises(RecordsUnavailable, match=r"lacks a right for keeping the records .*permission denied"),
    ):
        PostgresRecordStore(connection, "acme").append([record(1)])
    assert rows_in(database) == 0


def test_a_role_that_may_not_create_the_table_is_told_so(database: Database) -> None:
    with (
        Connection.open(database.dsn_of(database.role())) as connection,
        pytest.raises(RecordsUnavailable, match="lacks a right for creating the table pqcota_provisioning_record"),
    ):
        PostgresRecordStore(connection, "acme").append([record(1)])


def test_a_role_without_any_right_is_told_so_when_it_lists(database: Database) -> None:
    create_table(database)
    with (
        Connection.open(database.dsn_of(database.role())) as connection,
        pytest.raises(RecordsUnavailable, match="lacks a right for reading the records"),
    ):
        list(PostgresRecordStore(connection, "acme").select())


def test_a_history_that_the_role_may_not_read_is_no_absent_history(database: Database) -> None:
    database.create_history()
    with Connection.open(database.dsn_of(database.role())) as connection:
        history = PostgresHistory(connection, "acme")
        assert history.exists()
        with pytest.raises(RecordsUnavailable, match="lacks a right for reading the history"):
            history.latest(["node-1"])


def test_a_snapshot_of_no_node_is_no_reason_to_fail(database: Database, connection: Connection) -> None:
    database.create_history()
    database.execute("ALTER TABLE pqcota_snapshots ALTER node_id DROP NOT NULL")
    database.execute("INSERT INTO pqcota_snapshots (id, org) VALUES ('snap-1', 'acme')")
    history = PostgresHistory(connection, "acme")
    recording = record_plan(plan_of(action(1, by_id("snap-1"))), history=history, now=NOW)
    assert 'is one of the node "", not of "node-1"' in recording.records[0].snapshot_resolutions[0].reason


def test_a_missing_table_is_said_to_be_missing_and_not_created_by_reading(
    database: Database, store: PostgresRecordStore
) -> None:
    with pytest.raises(RecordTableMissing, match="pqcota_provisioning_record is not in this database"):
        list(store.select())
    assert database.query("SELECT to_regclass('pqcota_provisioning_record')") == [(None,)]


def test_no_table_is_created_where_that_is_forbidden(database: Database, connection: Connection) -> None:
    store = PostgresRecordStore(connection, "acme", create_table=False)
    with pytest.raises(RecordTableMissing, match="PQCOTA_AUTO_DDL=0"):
        store.append([record(1)])
    assert database.query("SELECT to_regclass('pqcota_provisioning_record')") == [(None,)]


def test_records_are_kept_where_creating_is_forbidden_and_the_table_is_there(
    database: Database, connection: Connection
) -> None:
    create_table(database)
    PostgresRecordStore(connection, "acme", create_table=False).append([record(1)])
    assert rows_in(database) == 1


def test_the_table_is_looked_for_along_the_search_path(database: Database) -> None:
    database.execute("CREATE SCHEMA ours")
    with Connection.open(database.dsn_of("postgres", options="-c search_path=ours,public")) as connection:
        PostgresRecordStore(connection, "acme").append([record(1)])
    assert database.query("SELECT count(*) FROM ours.pqcota_provisioning_record") == [(1,)]


def test_there_is_no_history_where_there_is_no_table(connection: Connection) -> None:
    assert PostgresHistory(connection, "acme").exists() is False


def test_reading_and_looking_up_cannot_write_even_where_the_role_may(
    database: Database, connection: Connection
) -> None:
    database.execute("CREATE TABLE seen (at timestamptz)")
    database.execute(
        "CREATE FUNCTION spy() RETURNS text LANGUAGE sql VOLATILE AS"
        " $$ INSERT INTO seen VALUES (now()) RETURNING 'acme' $$"
    )
    database.execute(
        "CREATE VIEW pqcota_provisioning_record AS SELECT 1::bigint AS seq, 'r' AS id, 'n' AS node_id,"
        " '' AS app_keys, 'p' AS plan_id, '{}'::jsonb AS record, now() AS created_at, spy() AS org"
    )
    database.execute(
        "CREATE VIEW pqcota_snapshots AS SELECT 1::bigint AS seq, 's' AS id, 'n' AS node_id, '[]'::jsonb AS findings,"
        " spy() AS org"
    )
    with pytest.raises(RecordsUnavailable, match="takes no writes"):
        list(PostgresRecordStore(connection, "acme").select())
    with pytest.raises(RecordsUnavailable, match="takes no writes"):
        PostgresHistory(connection, "acme").latest(["n"])
    assert database.query("SELECT count(*) FROM seen") == [(0,)]


def test_a_database_that_takes_no_writes_is_called_so(database: Database) -> None:
    create_table(database)
    with (
        Connection.open(database.dsn) as connection,
        pytest.raises(RecordsUnavailable, match="takes no writes"),
    ):
        database.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION USING ERRCODE = '25006'; END $$"
        )
        database.execute("CREATE TRIGGER refuse BEFORE INSERT ON pqcota_provisioning_record EXECUTE FUNCTION refuse()")
        PostgresRecordStore(connection, "acme").append([record(1)])


def test_a_table_of_an_older_version_is_called_so(database: Database, connection: Connection) -> None:
    database.execute("CREATE TABLE pqcota_provisioning_record (seq bigserial, id text, record jsonb)")
    with pytest.raises(RecordsUnavailable, match="a table lacks a column that keeping the records needs"):
        PostgresRecordStore(connection, "acme").append([record(1)])


# What a failure in the middle leaves behind: nothing.


def many(count: int, then: Callable[[], None]) -> Iterator[ProvisioningRecord]:
    """Yield that many records, of which the first are already on the server when the last are made."""
    for number in range(count):
        yield record(number)
    then()
    yield record(count)


def backends(database: Database) -> list[int]:
    return [
        pid
        for (pid,) in database.query(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pqcota'"
        )
    ]


def test_a_backend_killed_in_mid_transaction_leaves_no_row(database: Database, store: PostgresRecordStore) -> None:
    create_table(database)

    def kill() -> None:
        (pid,) = backends(database)
        database.query("SELECT pg_terminate_backend(%s)", (pid,))

    with pytest.raises(RecordsUnavailable, match=r"the server ended the connection|connection .* was lost"):
        store.append(many(1500, kill))
    assert rows_in(database) == 0


def test_an_interrupt_in_mid_transaction_leaves_no_row(database: Database, store: PostgresRecordStore) -> None:
    create_table(database)
    with pytest.raises(KeyboardInterrupt):
        store.append(many(1500, lambda: signal.raise_signal(signal.SIGINT)))
    assert rows_in(database) == 0
    store.append([record(1)])
    assert rows_in(database) == 1


def failing_trigger(database: Database, body: LiteralString) -> None:
    """Have the server do this at the second batch of rows."""
    create_table(database)
    database.execute(
        psycopg.sql.SQL(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN IF NEW.id = 'plan-1:a1400' THEN {} END IF; RETURN NEW; END $$"
        ).format(psycopg.sql.SQL(body))
    )
    database.execute(
        "CREATE TRIGGER fail BEFORE INSERT ON pqcota_provisioning_record FOR EACH ROW EXECUTE FUNCTION fail()"
    )


def test_a_full_disk_in_mid_transaction_leaves_no_row(database: Database, store: PostgresRecordStore) -> None:
    failing_trigger(database, "RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full';")
    with pytest.raises(RecordsUnavailable, match="the database's disk is full"):
        store.append(many(1500, lambda: None))
    assert rows_in(database) == 0


def test_a_statement_timeout_in_mid_transaction_leaves_no_row(database: Database) -> None:
    failing_trigger(database, "PERFORM pg_sleep(30);")
    with (
        Connection.open(database.dsn_of("postgres", options="-c statement_timeout=300ms")) as connection,
        pytest.raises(RecordsUnavailable, match="cancelled keeping the records"),
    ):
        PostgresRecordStore(connection, "acme").append(many(1500, lambda: None))
    assert rows_in(database) == 0


def test_a_statement_is_given_a_limit_where_neither_server_nor_dsn_has_one(database: Database) -> None:
    failing_trigger(database, "PERFORM pg_sleep(30);")
    with (
        Connection.open(database.dsn, statement_timeout=1) as connection,
        pytest.raises(RecordsUnavailable, match="cancelled keeping the records"),
    ):
        PostgresRecordStore(connection, "acme").append(many(1500, lambda: None))
    assert rows_in(database) == 0


def test_a_lock_that_is_never_released_is_not_waited_for_without_end(database: Database) -> None:
    create_table(database)
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE pqcota_provisioning_record IN ACCESS EXCLUSIVE MODE")
        with (
            Connection.open(database.dsn_of("postgres", options="-c lock_timeout=200ms")) as connection,
            pytest.raises(RecordsUnavailable, match="held a lock for too long while keeping the records"),
        ):
            PostgresRecordStore(connection, "acme").append([record(1)])
    assert rows_in(database) == 0


def test_a_server_that_stops_in_mid_transaction_is_given_up_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(database)
    monkeypatch.setattr(connection_module, "GRACE", 1)
    monkeypatch.setattr(connection_module, "ROLLBACK_TIMEOUT", 1)
    with Connection.open(database.dsn, statement_timeout=1) as connection:
        (pid,) = backends(database)
        try:
            with pytest.raises(RecordsUnavailable, match="did not answer any more while keeping the records"):
                PostgresRecordStore(connection, "acme").append(many(1500, lambda: os.kill(pid, signal.SIGSTOP)))
        finally:
            os.kill(pid, signal.SIGCONT)
    assert rows_in(database) == 0


def test_a_connection_lost_during_the_commit_is_not_reported_as_nothing_kept(
    database: Database, store: PostgresRecordStore
) -> None:
    create_table(database)
    database.execute(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
    )
    database.execute(
        "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON pqcota_provisioning_record DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION die()"
    )
    with pytest.raises(CommitUncertain) as raised:
        store.append([record(1)])
    assert "pqcota-records" in raised.value.remedy


def test_a_commit_that_the_server_refuses_leaves_no_row(database: Database, store: PostgresRecordStore) -> None:
    create_table(database)
    database.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$"
    )
    database.execute(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON pqcota_provisioning_record DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    with pytest.raises(RecordsUnavailable, match="not this one") as raised:
        store.append([record(1)])
    assert not isinstance(raised.value, CommitUncertain)
    assert rows_in(database) == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\0b", id="NUL"),
        pytest.param("\\\0", id="NUL after a backslash"),
        pytest.param("\ud800", id="half a surrogate pair"),
    ],
)
def test_text_that_postgres_cannot_keep_leaves_no_row(
    database: Database, store: PostgresRecordStore, text: str
) -> None:
    create_table(database)
    with pytest.raises(RecordUnstorable, match="plan-1:a2"):
        store.append([*(record(1) for _ in range(1500)), record(2, note=text)])
    assert rows_in(database) == 0
