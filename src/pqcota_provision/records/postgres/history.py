"""The history in Postgres, in the table that pqcota-inventory owns; it is only read (SPEC 10)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import LiteralString

from pqcota_provision.records.history import ContentKey
from pqcota_provision.records.organization import check_organization
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.schema import SNAPSHOT_TABLE, has_table
from pqcota_provision.records.snapshot import Snapshot, read_snapshot

ROWS_PER_FETCH = 500


class PostgresHistory:
    """The History of one organization."""

    def __init__(self, connection: Connection, organization: str) -> None:
        self._connection = connection
        self._organization = check_organization(organization)
        self._read: dict[int, Snapshot] = {}

    @property
    def organization(self) -> str:
        """The organization that every look-up is made for."""
        return self._organization

    def exists(self) -> bool:
        """Tell whether the database holds a history at all."""
        with self._connection.transaction("looking for the history", read_only=True) as transaction:
            return has_table(transaction, SNAPSHOT_TABLE)

    def latest(self, node_ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Return the latest snapshot of each node, by node id."""
        return {snapshot.node_id: snapshot for _, snapshot in self._find(_LATEST, list(node_ids))}

    def by_id(self, snapshot_ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Return the latest snapshot with each id, by id."""
        return {snapshot.id: snapshot for _, snapshot in self._find(_BY_ID, list(snapshot_ids))}

    def by_content(self, keys: Collection[ContentKey]) -> Mapping[ContentKey, Snapshot]:
        """Return the latest snapshot with each content, by content key."""
        wanted = [(key.node_id, key.ruleset_version, key.digest) for key in keys]
        columns = [list(column) for column in zip(*wanted, strict=True)] or [[], [], []]
        return {
            ContentKey(snapshot.node_id, *content): snapshot for content, snapshot in self._find(_BY_CONTENT, *columns)
        }

    def _find(self, query: LiteralString, *wanted: list[str]) -> Iterator[tuple[tuple[str, str], Snapshot]]:
        with self._connection.transaction("reading the history", read_only=True) as transaction:
            parameters = (*wanted, self._organization, self._organization)
            with closing(transaction.stream(query, parameters, first=ROWS_PER_FETCH, then=ROWS_PER_FETCH)) as rows:
                for seq, snapshot_id, node_id, ruleset, digest, findings in rows:
                    # The latest snapshot of a node is as a rule the one its plan refers to, too.
                    snapshot = self._read.get(seq)
                    if snapshot is None:
                        snapshot = self._read[seq] = read_snapshot(snapshot_id, node_id, findings)
                    yield (ruleset, digest), snapshot


# The newest of each is found on the narrow columns alone, and the findings are read only of those.
_LATEST: LiteralString = f"""
    SELECT seq, coalesce(found.id, ''), found.node_id, '', '', found.findings::text
    FROM {SNAPSHOT_TABLE} AS found JOIN (
        SELECT max(seq) AS seq FROM {SNAPSHOT_TABLE} JOIN unnest(%b::text[]) AS wanted (node_id) USING (node_id)
        WHERE org = %s GROUP BY node_id) AS newest USING (seq)
    WHERE found.org = %s"""
_BY_ID: LiteralString = f"""
    SELECT seq, found.id, coalesce(found.node_id, ''), '', '', found.findings::text
    FROM {SNAPSHOT_TABLE} AS found JOIN (
        SELECT max(seq) AS seq FROM {SNAPSHOT_TABLE} JOIN unnest(%b::text[]) AS wanted (id) USING (id)
        WHERE org = %s GROUP BY id) AS newest USING (seq)
    WHERE found.org = %s"""
_BY_CONTENT: LiteralString = f"""
    SELECT seq, coalesce(found.id, ''), found.node_id, found.ruleset_ver, found.content_hash_v1, found.findings::text
    FROM {SNAPSHOT_TABLE} AS found JOIN (
        SELECT max(seq) AS seq FROM {SNAPSHOT_TABLE}
            JOIN unnest(%b::text[], %b::text[], %b::text[]) AS wanted (node_id, ruleset_ver, content_hash_v1)
            USING (node_id, ruleset_ver, content_hash_v1)
        WHERE org = %s GROUP BY node_id, ruleset_ver, content_hash_v1) AS newest USING (seq)
    WHERE found.org = %s"""
