"""The tables in Postgres, as the other tools of pqcota know them too (SPEC 10)."""

from __future__ import annotations

from contextlib import suppress
from typing import LiteralString

from pqcota_provision.errors import RecordsUnavailable, RecordTableMissing
from pqcota_provision.records.postgres.connection import Connection, Transaction

RECORD_TABLE: LiteralString = "pqcota_provisioning_record"
SNAPSHOT_TABLE: LiteralString = "pqcota_snapshots"

RECORD_TABLE_STATEMENTS: tuple[LiteralString, ...] = (
    f"""CREATE TABLE IF NOT EXISTS {RECORD_TABLE} (
        seq BIGSERIAL PRIMARY KEY,
        id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        app_keys TEXT,
        plan_id TEXT,
        record JSONB NOT NULL,
        created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        org TEXT NOT NULL DEFAULT 'default')""",
    f"CREATE INDEX IF NOT EXISTS idx_pqcota_prov_node ON {RECORD_TABLE} (node_id, seq)",
    f"CREATE INDEX IF NOT EXISTS idx_pqcota_prov_org ON {RECORD_TABLE} (org, node_id, seq)",
)

# One number for all writers of this table; any would do that nobody else takes.
_CREATION_LOCK = 0x7071_636F_7461


def has_table(transaction: Transaction, table: str) -> bool:
    """Tell whether the search path leads to a table of that name."""
    return transaction.rows("SELECT to_regclass(%s) IS NOT NULL", (table,)) == [(True,)]


def ensure_record_table(connection: Connection, *, create: bool) -> None:
    """Have the table of records there, for a writer: create it if it is absent and ``create`` allows it.

    Writers that start at once do not get into each other's way. Raises RecordTableMissing where it is absent
    and must not be created, else RecordsUnavailable.
    """
    # Asked for first, since CREATE TABLE IF NOT EXISTS wants rights that a writer to an existing table lacks.
    if _record_table_is_there(connection):
        return
    if not create:
        raise RecordTableMissing(
            f"the table {RECORD_TABLE} is not in this database, and PQCOTA_AUTO_DDL=0 forbids creating it",
            remedy="Create it as docs/operations.md shows, or unset PQCOTA_AUTO_DDL.",
        )
    try:
        with connection.transaction(f"creating the table {RECORD_TABLE}", read_only=False) as transaction:
            transaction.run("SELECT pg_advisory_xact_lock(%s)", (_CREATION_LOCK,))
            for statement in RECORD_TABLE_STATEMENTS:
                transaction.run(statement)
    except RecordsUnavailable:
        # Another tool, which knows nothing of the lock, may have been faster.
        with suppress(RecordsUnavailable):
            if _record_table_is_there(connection):
                return
        raise


def _record_table_is_there(connection: Connection) -> bool:
    with connection.transaction("looking for the table of records", read_only=True) as transaction:
        return has_table(transaction, RECORD_TABLE)
