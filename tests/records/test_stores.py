"""What holds for every store and every history, in memory and in Postgres."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from record_samples import DIGEST, RECORD, openssl_finding, record

from postgres_fixture import Database
from pqcota_provision.plan.model import ProvisioningRecord
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.history import ContentKey, History
from pqcota_provision.records.memory import MemoryHistory, MemoryRecordStore
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.history import PostgresHistory
from pqcota_provision.records.postgres.store import PostgresRecordStore
from pqcota_provision.records.snapshot import read_snapshot
from pqcota_provision.records.store import RecordSelection, RecordStore, StoredRecord

StoreOf = Callable[[str], RecordStore]


@pytest.fixture(params=["memory", "postgres"])
def store_of(request: pytest.FixtureRequest) -> Iterator[StoreOf]:
    if request.param == "memory":
        yield MemoryRecordStore
        return
    database: Database = request.getfixturevalue("database")
    with Connection.open(database.dsn) as connection:
        yield lambda organization: PostgresRecordStore(connection, organization)


def kept(store: RecordStore, selection: RecordSelection | None = None) -> list[ProvisioningRecord]:
    rows = list(store.select(selection) if selection else store.select())
    assert all(isinstance(row, StoredRecord) for row in rows)
    return [row.record for row in rows if isinstance(row, StoredRecord)]


def test_records_come_back_as_they_were_kept_and_in_that_order(store_of: StoreOf) -> None:
    records = [record(3), record(1), record(2, app_keys=(), before=None, snapshot_resolutions=())]
    store = store_of("acme")
    assert store.append(records) == 3
    assert kept(store) == records


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\tb\nc\rd", id="blanks"),
        pytest.param("\x01\x1b\x7f\x85", id="control characters"),
        pytest.param("\\u0000 \\ \\\\u0000", id="what looks like an escaped NUL"),
        pytest.param("\"quoted\" 'twice' %s {}", id="quotes and placeholders"),
        pytest.param("日本語 😀 \u202e \ufeff \U0010ffff", id="far away characters"),
        pytest.param(",a,,b,", id="commas"),
        pytest.param("x" * 200_000, id="very long"),
    ],
)
def test_every_text_survives_in_every_column(store_of: StoreOf, text: str) -> None:
    whole = record(1, id=text, node_id=text, plan_id=text, app_keys=(text, text), note=text)
    # An index entry has a limit of its own, which no name reaches.
    if len(text) > 1000:
        whole = record(1, app_keys=(text,), note=text)
    store = store_of("acme")
    store.append([whole])
    assert kept(store) == [whole]


def test_nanoseconds_survive(store_of: StoreOf) -> None:
    store = store_of("acme")
    store.append([record(1, at=Timestamp(1, 123_456_789))])
    assert kept(store)[0].at == Timestamp(1, 123_456_789)


def test_no_record_is_kept_if_making_one_of_them_fails(store_of: StoreOf) -> None:
    def failing() -> Iterator[ProvisioningRecord]:
        for number in range(2500):
            yield record(number)
        raise LookupError

    store = store_of("acme")
    store.append([record(1)])
    with pytest.raises(LookupError):
        store.append(failing())
    assert kept(store) == [record(1)]


def test_keeping_nothing_is_no_failure(store_of: StoreOf) -> None:
    store = store_of("acme")
    assert (store.append([]), kept(store)) == (0, [])


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        pytest.param(RecordSelection(), [1, 2, 3, 4], id="everything"),
        pytest.param(RecordSelection(node_id="node-2"), [2, 4], id="one node"),
        pytest.param(RecordSelection(plan_id="plan-9"), [3, 4], id="one plan"),
        pytest.param(RecordSelection(node_id="node-2", plan_id="plan-9"), [4], id="one node in one plan"),
        pytest.param(RecordSelection(newest=3), [2, 3, 4], id="the newest three"),
        pytest.param(RecordSelection(newest=1, node_id="node-1"), [3], id="the newest of a node"),
        pytest.param(RecordSelection(newest=99), [1, 2, 3, 4], id="more than there are"),
        pytest.param(RecordSelection(newest=0), [], id="none"),
        pytest.param(RecordSelection(node_id="node"), [], id="part of a name"),
        pytest.param(RecordSelection(node_id=""), [], id="no name"),
    ],
)
def test_only_the_records_asked_for_are_listed(
    store_of: StoreOf, selection: RecordSelection, numbers: list[int]
) -> None:
    store = store_of("acme")
    store.append(
        [
            record(1),
            record(2, node_id="node-2"),
            record(3, plan_id="plan-9"),
            record(4, node_id="node-2", plan_id="plan-9"),
        ]
    )
    assert [each.action_id for each in kept(store, selection)] == [f"a{number}" for number in numbers]


def test_nothing_is_listed_that_was_kept_before_the_time_asked_for() -> None:
    store = MemoryRecordStore("acme")
    times = [Timestamp(5, 1), Timestamp(5, 2), Timestamp(5, 3)]
    store.append([*(record(number, at=at) for number, at in enumerate(times)), record(9, at=None)])
    selected = kept(store, RecordSelection(since=Timestamp(5, 2)))
    assert [each.at for each in selected] == times[1:]


def test_an_organization_does_not_see_the_records_of_another(store_of: StoreOf) -> None:
    ours, theirs = store_of("acme"), store_of("default")
    ours.append([record(1)])
    theirs.append([record(2)])
    assert (kept(ours), kept(theirs)) == ([record(1)], [record(2)])
    assert kept(ours, RecordSelection(node_id=RECORD.node_id)) == [record(1)]
    assert kept(theirs, RecordSelection(plan_id=RECORD.plan_id, newest=5)) == [record(2)]


@dataclass
class Filler:
    """Puts snapshots into whatever a history is made of."""

    add: Callable[..., None]
    history_of: Callable[[str], History]


@dataclass
class _Memory:
    histories: dict[str, MemoryHistory] = field(default_factory=dict)

    def history_of(self, organization: str) -> MemoryHistory:
        return self.histories.setdefault(organization, MemoryHistory(organization))

    def add(
        self,
        snapshot_id: str,
        node: str,
        findings: object,
        *,
        organization: str,
        ruleset: str = "rules/1",
        digest: str | None = None,
    ) -> None:
        content = None if digest is None else ContentKey(node, ruleset, digest)
        self.history_of(organization).add(read_snapshot(snapshot_id, node, json.dumps(findings)), content)


@pytest.fixture(params=["memory", "postgres"])
def filler(request: pytest.FixtureRequest) -> Iterator[Filler]:
    if request.param == "memory":
        memory = _Memory()
        yield Filler(memory.add, memory.history_of)
        return
    database: Database = request.getfixturevalue("database")
    database.create_history()
    with Connection.open(database.dsn) as connection:
        yield Filler(database.add_snapshot, lambda organization: PostgresHistory(connection, organization))


def test_the_latest_snapshot_of_each_node_is_found(filler: Filler) -> None:
    for snapshot_id, node in (("s1", "node-1"), ("s2", "node-2"), ("s3", "node-1"), ("s4", "node-3")):
        filler.add(snapshot_id, node, [openssl_finding("f-1", snapshot_id)], organization="acme")
    found = filler.history_of("acme").latest(["node-1", "node-2", "unseen"])
    assert {node: (snapshot.id, snapshot.node_id, snapshot.app_keys) for node, snapshot in found.items()} == {
        "node-1": ("s3", "node-1", {"f-1": ("s3",)}),
        "node-2": ("s2", "node-2", {"f-1": ("s2",)}),
    }


def test_of_two_snapshots_with_one_id_the_later_is_found(filler: Filler) -> None:
    filler.add("s1", "node-1", [], organization="acme")
    filler.add("s1", "node-2", [], organization="acme")
    found = filler.history_of("acme").by_id(["s1", "s9"])
    assert {snapshot_id: snapshot.node_id for snapshot_id, snapshot in found.items()} == {"s1": "node-2"}


def test_of_two_snapshots_with_one_content_the_later_is_found(filler: Filler) -> None:
    filler.add("s1", "node-1", [], organization="acme", digest=DIGEST)
    filler.add("s2", "node-1", [], organization="acme", digest=DIGEST)
    filler.add("s3", "node-2", [], organization="acme", digest=DIGEST)
    filler.add("s4", "node-1", [], organization="acme", ruleset="rules/2", digest=DIGEST)
    filler.add("s5", "node-1", [], organization="acme")
    keys = [
        ContentKey("node-1", "rules/1", DIGEST),
        ContentKey("node-2", "rules/2", DIGEST),
        ContentKey("node-1", "rules/1", "f" * 64),
    ]
    found = filler.history_of("acme").by_content(keys)
    assert {key: snapshot.id for key, snapshot in found.items()} == {keys[0]: "s2"}


def test_an_organization_does_not_see_the_history_of_another(filler: Filler) -> None:
    filler.add("s1", "node-1", [openssl_finding("f-1", "ours")], organization="acme", digest=DIGEST)
    filler.add("s1", "node-1", [openssl_finding("f-1", "theirs")], organization="default", digest=DIGEST)
    history = filler.history_of("acme")
    key = ContentKey("node-1", "rules/1", DIGEST)
    assert history.latest(["node-1"])["node-1"].app_keys == {"f-1": ("ours",)}
    assert history.by_id(["s1"])["s1"].app_keys == {"f-1": ("ours",)}
    assert history.by_content([key])[key].app_keys == {"f-1": ("ours",)}
    nobody = filler.history_of("nobody")
    assert (nobody.latest(["node-1"]), nobody.by_id(["s1"]), nobody.by_content([key])) == ({}, {}, {})


def test_asking_a_history_for_nothing_finds_nothing(filler: Filler) -> None:
    history = filler.history_of("acme")
    assert (history.exists(), history.latest([]), history.by_id([]), history.by_content([])) == (True, {}, {}, {})
