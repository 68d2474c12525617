"""pqcota-records as a user runs it, on a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from postgres_fixture import Database
from pqcota_provision.cli.records import main
from pqcota_provision.plan.model import (
    CryptoState,
    ProvisioningRecord,
    ProvisioningStatus,
    SnapshotReference,
    SnapshotResolution,
)
from pqcota_provision.plan.protojson import dump_message, load_message
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.store import PostgresRecordStore

RECORD = ProvisioningRecord(
    id="plan-1:a1",
    node_id="node-1",
    app_keys=("payments", "ledger"),
    action_id="a1",
    plan_id="plan-1",
    before=CryptoState(modules=("openssl@3.0.13",)),
    status=ProvisioningStatus.STAGED,
    at=Timestamp.parse("2026-01-02T03:04:05.678901234Z"),
    snapshot_resolutions=(
        SnapshotResolution(
            submitted=SnapshotReference(source_node_id="node-1", snapshot_id="snap-1"), resolved_snapshot_id="snap-1"
        ),
        SnapshotResolution(legacy_plan_snapshot_id="snap-0", reason="there is no such snapshot"),
    ),
)

Keep = Callable[..., None]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PQCOTA_DSN", "PQCOTA_ORG", "PQCOTA_REQUIRE_ORG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def keep(database: Database, monkeypatch: pytest.MonkeyPatch) -> Keep:
    """Keep records, to be listed by the command."""
    monkeypatch.setenv("PQCOTA_DSN", database.dsn)

    def keep_records(*records: ProvisioningRecord, organization: str = "default") -> None:
        with Connection.open(database.dsn) as connection:
            PostgresRecordStore(connection, organization).append(records)

    return keep_records


def named(name: str) -> ProvisioningRecord:
    return replace(RECORD, id=f"plan-1:{name}", action_id=name)


def ids_in(output: str) -> list[str]:
    return [line.split("  ")[0] for line in output.splitlines() if line and not line.startswith(" ")]


def test_a_record_is_listed_with_all_that_an_undo_needs(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(RECORD)
    assert main([]) == 0
    assert capsys.readouterr() == (
        "plan-1:a1  STAGED  2026-01-02T03:04:05.678901234Z\n"
        "  node       node-1\n"
        "  plan       plan-1\n"
        "  apps       payments, ledger\n"
        "  before     openssl@3.0.13\n"
        "  snapshot   snap-1 (from id snap-1 of node-1)\n"
        "  snapshot   UNRESOLVED the plan's snap-0: there is no such snapshot\n",
        "",
    )


def test_json_is_one_record_a_line_and_reads_back(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    records = [RECORD, replace(RECORD, note="two\nlines, two\u2028more")]
    keep(*records)
    assert main(["--json"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines.pop() == ""
    assert [load_message(ProvisioningRecord, line) for line in lines] == records


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        pytest.param([], ["plan-1:a", "plan-2:b", "plan-1:c"], id="everything"),
        pytest.param(["node-1"], ["plan-1:a", "plan-2:b"], id="one node"),
        pytest.param(["--plan", "plan-1"], ["plan-1:a", "plan-1:c"], id="one plan"),
        pytest.param(["--limit", "2"], ["plan-2:b", "plan-1:c"], id="the newest two"),
        pytest.param(["--limit", "1", "node-1"], ["plan-2:b"], id="the newest of a node"),
        pytest.param(["node-1", "--limit", str(10**30)], ["plan-1:a", "plan-2:b"], id="more than there can be"),
        pytest.param(["--since", "2000-01-01"], ["plan-1:a", "plan-2:b", "plan-1:c"], id="since a day long ago"),
        pytest.param(["--since", "2999-01-01T00:00:00+01:00"], [], id="since a time to come"),
    ],
)
def test_only_what_was_asked_for_is_listed(
    keep: Keep, capsys: pytest.CaptureFixture[str], arguments: list[str], ids: list[str]
) -> None:
    keep(
        replace(RECORD, id="plan-1:a"),
        replace(RECORD, id="plan-2:b", plan_id="plan-2"),
        replace(RECORD, id="plan-1:c", node_id="node-2"),
    )
    assert main(arguments) == 0
    assert ids_in(capsys.readouterr().out) == ids


def test_an_empty_listing_says_that_it_is_empty(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(RECORD)
    assert main(["node-9"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert 'no record found in the organization "default"' in err


@pytest.mark.parametrize(
    ("organization", "required", "ids"),
    [
        pytest.param("", "", ["plan-1:theirs"], id="none named"),
        pytest.param("default", "0", ["plan-1:theirs"], id="default named"),
        pytest.param("acme", "", ["plan-1:ours"], id="one named"),
        pytest.param("acme", "1", ["plan-1:ours"], id="one named where one must be"),
        pytest.param("acme-2", "1", [], id="one without records"),
    ],
)
def test_two_organizations_with_one_node_see_their_own_records_only(
    keep: Keep,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    organization: str,
    required: str,
    ids: list[str],
) -> None:
    keep(named("ours"), organization="acme")
    keep(named("theirs"))
    monkeypatch.setenv("PQCOTA_ORG", organization)
    monkeypatch.setenv("PQCOTA_REQUIRE_ORG", required)
    assert main(["node-1"]) == 0
    assert ids_in(capsys.readouterr().out) == ids


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param({"PQCOTA_ORG": "Acme"}, 'the organization "Acme" is malformed', id="malformed"),
        pytest.param({"PQCOTA_REQUIRE_ORG": "1"}, "no organization is named", id="none where one must be"),
        pytest.param(
            {"PQCOTA_REQUIRE_ORG": "1", "PQCOTA_ORG": "default"}, "of your own", id="the reserved one where one must be"
        ),
        pytest.param({"PQCOTA_REQUIRE_ORG": "yes"}, 'PQCOTA_REQUIRE_ORG is "yes"', id="a switch that is none"),
        pytest.param({"PQCOTA_DSN": ""}, "PQCOTA_DSN is not set", id="no DSN"),
        pytest.param({"PQCOTA_DSN": "password=Corr3ct horse"}, "none that libpq understands", id="no DSN that is one"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named_before_anything_is_read(
    keep: Keep,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    said: str,
) -> None:
    keep(RECORD)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert (out, said in err, err.count("\n"), "horse" in err) == ("", True, 1, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--since", "yesterday"], '--since "yesterday" is no RFC 3339 time', id="a time that is none"),
        pytest.param(["--since", "2026-02-30"], "a day that does not exist", id="a day that does not exist"),
        pytest.param(["--limit", "0"], "--limit", id="no record at all"),
        pytest.param(["--limit", "many"], "--limit", id="a limit that is no number"),
        pytest.param(["--plan", ""], "--plan is empty", id="an empty plan"),
        pytest.param([""], "NODE is empty", id="an empty node"),
        pytest.param(["\udcff"], "NODE is not valid UTF-8", id="a node in another encoding"),
        pytest.param(["node-1", "node-2"], "node-2", id="two nodes"),
    ],
)
def test_wrong_usage_is_told_apart_from_a_failure(
    keep: Keep, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    keep(RECORD)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, said in err) == ("", True)


def test_a_missing_table_is_a_failure_and_is_said(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PQCOTA_DSN", database.dsn)
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert (out, "pqcota_provisioning_record is not in this database" in err) == ("", True)


def test_a_password_does_not_reach_stderr_when_the_server_refuses_it(
    database: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    user = database.role(password="right")
    monkeypatch.setenv("PQCOTA_DSN", database.dsn_of(user, password="Corr3ct horse"))
    assert main([]) == 1
    out, err = capsys.readouterr()
    assert (out, "Corr3ct" in err, "horse" in err, err.count("\n")) == ("", False, False, 1)


def test_rows_that_cannot_be_read_are_named_and_the_rest_is_listed(
    database: Database, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(named("first"))
    database.execute(
        "INSERT INTO pqcota_provisioning_record (id, node_id, record) VALUES (%s, 'node-1', '{\"at\": 7}')",
        ("plan\x1b-1:x",),
    )
    keep(named("last"))
    assert main([]) == 3
    out, err = capsys.readouterr()
    assert ids_in(out) == ["plan-1:first", "plan-1:last"]
    assert 'row 2, record "plan\\u001b-1:x" of node-1, cannot be read: at must be' in err
    assert "1 row could not be read" in err


def test_json_of_a_newer_version_goes_out_as_it_is_stored(
    database: Database, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep()
    newer = {"id": "plan-1:a1", "verifiedBy": ["someone"]}
    database.execute(
        "INSERT INTO pqcota_provisioning_record (id, node_id, record) VALUES ('r', 'n', %s)", (json.dumps(newer),)
    )
    assert main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out) == newer


def start(dsn: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(Path(sys.executable).parent / "pqcota-records"), *arguments],
        env={**os.environ, "PQCOTA_DSN": dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def many_records(database: Database, keep: Keep) -> None:
    keep()
    database.execute(
        "INSERT INTO pqcota_provisioning_record (id, node_id, record)"
        " SELECT 'x', 'node-1', %s::jsonb FROM generate_series(1, 30000)",
        (dump_message(RECORD),),
    )


@pytest.mark.parametrize("arguments", [(), ("--json",)], ids=["text", "json"])
def test_a_reader_that_has_seen_enough_ends_the_listing_quietly(
    database: Database, many_records: None, arguments: tuple[str, ...]
) -> None:
    with start(database.dsn, *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.stdout.close()
        assert b"plan-1:a1" in first
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_an_interrupt_ends_the_listing_in_one_line(database: Database, many_records: None) -> None:
    with start(database.dsn) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # The pipe is full by then, so the command is in the middle of its listing.
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b"pqcota-records: interrupted\n"
    assert process.returncode == 130


def test_a_connection_that_breaks_in_mid_listing_ends_in_a_failure(database: Database, many_records: None) -> None:
    with start(database.dsn) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        database.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'pqcota-records'"
        )
        process.stdout.read()
        said = process.stderr.read()
    assert process.returncode == 1
    assert said.startswith(b"pqcota-records: ")
    assert b"Traceback" not in said
    assert said.count(b"\n") == 1


def test_the_first_record_does_not_wait_for_the_last(database: Database, many_records: None) -> None:
    # A policy that the server does not get past in the middle of the table.
    database.execute(
        "CREATE FUNCTION passes(seq bigint) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN IF seq > 5000 THEN PERFORM pg_sleep(600); END IF; RETURN true; END $$"
    )
    database.execute("CREATE POLICY gate ON pqcota_provisioning_record USING (passes(seq))")
    database.execute("ALTER TABLE pqcota_provisioning_record ENABLE ROW LEVEL SECURITY")
    reader = database.role(grants=("GRANT SELECT ON pqcota_provisioning_record TO {role}",))
    with start(database.dsn_of(reader), "node-1") as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith(b"plan-1:a1  ")
        finally:
            process.kill()
