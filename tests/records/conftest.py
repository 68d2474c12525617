from __future__ import annotations

from collections.abc import Iterator

import pytest

from postgres_fixture import Database
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.store import PostgresRecordStore


@pytest.fixture
def connection(database: Database) -> Iterator[Connection]:
    with Connection.open(database.dsn) as opened:
        yield opened


@pytest.fixture
def store(connection: Connection) -> PostgresRecordStore:
    return PostgresRecordStore(connection, "acme")
