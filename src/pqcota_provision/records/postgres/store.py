"""The store of records in Postgres (SPEC 10)."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import closing
from itertools import islice
from typing import LiteralString

from pqcota_provision.errors import PlanMalformed, RecordTableMissing, RecordUnstorable
from pqcota_provision.plan.model import ProvisioningRecord
from pqcota_provision.plan.protojson import dump_message, load_message
from pqcota_provision.plan.timestamp import NANOS_PER_SECOND, Timestamp
from pqcota_provision.records.organization import check_organization
from pqcota_provision.records.postgres.connection import Connection, Transaction
from pqcota_provision.records.postgres.schema import RECORD_TABLE, ensure_record_table, has_table
from pqcota_provision.records.store import EVERYTHING, RecordSelection, StoredRecord, UnreadableRecord
from pqcota_provision.text import quote

ROWS_PER_INSERT = 1000
ROWS_AT_FIRST = 50
ROWS_PER_FETCH = 1000
# Up to so many rows of an organization are sorted; more are read in the order of the whole table.
SORTED_ROWS = 20_000

_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_UTC_TEXT: LiteralString = """'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'"""


class PostgresRecordStore:
    """A RecordStore in the table that all tools of pqcota share."""

    def __init__(self, connection: Connection, organization: str, *, create_table: bool = True) -> None:
        """Bind a store to an organization; ``create_table`` lets the first ``append`` create an absent table."""
        self._connection = connection
        self._organization = check_organization(organization)
        self._create_table = create_table

    @property
    def organization(self) -> str:
        """The organization that every record is kept and read for."""
        return self._organization

    def append(self, records: Iterable[ProvisioningRecord]) -> int:
        """Keep all the records in one transaction, and return how many they are once it is committed.

        Raises RecordUnstorable for text that Postgres cannot hold, CommitUncertain if the connection broke
        during the commit, else RecordsUnavailable; but for CommitUncertain, nothing was kept then.
        """
        ensure_record_table(self._connection, create=self._create_table)
        kept = 0
        with self._connection.transaction("keeping the records", read_only=False) as transaction:
            remaining = iter(records)
            while batch := list(islice(remaining, ROWS_PER_INSERT)):
                transaction.run(_INSERT, (self._organization, *_columns(batch)))
                kept += len(batch)
        return kept

    def select(self, selection: RecordSelection = EVERYTHING) -> Generator[StoredRecord | UnreadableRecord, None, None]:
        """Yield the selected records as the server finds them, in a read-only transaction that ends with the iterator.

        Raises RecordTableMissing if there is no table, else RecordsUnavailable.
        """
        with self._connection.transaction("reading the records", read_only=True) as transaction:
            if not has_table(transaction, RECORD_TABLE):
                raise RecordTableMissing(
                    f"the table {RECORD_TABLE} is not in this database, so no records were ever kept in it "
                    "(or the role may not see its schema)",
                    remedy="Check the DSN; pqcota-provision --dsn creates the table when it first keeps records.",
                )
            self._steer_planner(transaction, selection)
            query, parameters = _selection_query(self._organization, selection)
            with closing(transaction.stream(query, parameters, first=ROWS_AT_FIRST, then=ROWS_PER_FETCH)) as rows:
                for row in rows:
                    yield _read_row(*row)

    def _steer_planner(self, transaction: Transaction, selection: RecordSelection) -> None:
        # The first rows are wanted at once, whatever the planner knows of a table that may have just been filled:
        # read in the order of an index, unless the organization is so small that finding and sorting it is faster.
        transaction.configure({"jit": "off", "enable_seqscan": "off", "enable_bitmapscan": "off"})
        if selection.node_id is not None or self._has_many_rows(transaction):
            transaction.configure({"enable_sort": "off"})
        else:
            transaction.configure({"enable_bitmapscan": "on", "cursor_tuple_fraction": "1"})

    def _has_many_rows(self, transaction: Transaction) -> bool:
        rows = transaction.rows(
            f"SELECT count(*) FROM (SELECT 1 FROM {RECORD_TABLE} WHERE org = %s LIMIT %s) AS first_rows",
            (self._organization, SORTED_ROWS + 1),
        )
        return bool(rows[0][0] > SORTED_ROWS)


_INSERT: LiteralString = f"""
    INSERT INTO {RECORD_TABLE} (org, id, node_id, app_keys, plan_id, record)
    SELECT %s, new.id, new.node_id, new.app_keys, new.plan_id, new.record::jsonb
    FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[])
        WITH ORDINALITY AS new (id, node_id, app_keys, plan_id, record, position)
    ORDER BY new.position"""


def _columns(batch: list[ProvisioningRecord]) -> tuple[list[str], ...]:
    rows = [_row(record) for record in batch]
    return tuple(list(column) for column in zip(*rows, strict=True))


def _row(record: ProvisioningRecord) -> tuple[str, str, str, str, str]:
    json_text = dump_message(record, indent=None)
    row = (record.id, record.node_id, ",".join(record.app_keys), record.plan_id, json_text)
    if "\\u0000" in json_text and _NUL_IN_JSON.search(json_text):
        raise RecordUnstorable(f"the record {quote(record.id)} holds a NUL character, which Postgres cannot keep")
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        raise RecordUnstorable(f"the record {quote(record.id)} holds half of a surrogate pair") from None
    return row


def _selection_query(organization: str, selection: RecordSelection) -> tuple[LiteralString, list[object]]:
    where: LiteralString = "org = %s"
    parameters: list[object] = [organization]
    if selection.node_id is not None:
        where += " AND node_id = %s"
        parameters.append(selection.node_id)
    if selection.plan_id is not None:
        where += " AND plan_id = %s"
        parameters.append(selection.plan_id)
    if selection.since is not None:
        where += " AND created_at >= %s::timestamptz"
        parameters.append(_in_microseconds(selection.since).to_json_text())
    newest: LiteralString = ""
    if selection.newest is not None:
        newest = (
            f" AND seq >= (SELECT min(seq) FROM"
            f" (SELECT seq FROM {RECORD_TABLE} WHERE {where} ORDER BY seq DESC LIMIT %s) AS newest)"
        )
        parameters = [*parameters, *parameters, selection.newest]
    query: LiteralString = (
        f"SELECT seq, id, node_id, to_char(created_at AT TIME ZONE 'UTC', {_UTC_TEXT}), record::text"
        f" FROM {RECORD_TABLE} WHERE {where}{newest} ORDER BY seq"
    )
    return query, parameters


def _in_microseconds(time: Timestamp) -> Timestamp:
    # Rounded up, since a row stored in the same microsecond was stored before the nanosecond that was asked for.
    nanoseconds = time.seconds * NANOS_PER_SECOND + time.nanos
    try:
        return Timestamp.from_nanoseconds(-(-nanoseconds // 1000) * 1000)
    except ValueError:
        return time


def _read_row(
    seq: int, record_id: str, node_id: str, stored_at: str | None, json_text: str
) -> StoredRecord | UnreadableRecord:
    try:
        time = Timestamp.parse(stored_at) if stored_at else None
    except ValueError:
        time = None
    try:
        return StoredRecord(seq, load_message(ProvisioningRecord, json_text), time)
    except PlanMalformed:
        pass
    try:
        return StoredRecord(seq, load_message(ProvisioningRecord, json_text, ignore_unknown=True), time, json_text)
    except PlanMalformed as error:
        return UnreadableRecord(seq, record_id, node_id, str(error))
