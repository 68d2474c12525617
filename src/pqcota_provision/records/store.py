"""Where records are kept and read again (SPEC 10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pqcota_provision.plan.model import ProvisioningRecord
from pqcota_provision.plan.timestamp import Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSelection:
    """Which records to read; an empty selection is all of them.

    ``since`` compares with the time a record was stored at, and ``newest`` keeps only that many at the end.
    """

    node_id: str | None = None
    plan_id: str | None = None
    since: Timestamp | None = None
    newest: int | None = None


EVERYTHING = RecordSelection()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it was read.

    ``newer_json`` is the stored JSON, on one line, where it holds something that this version does not know
    and ``record`` therefore lacks.
    """

    seq: int
    record: ProvisioningRecord
    stored_at: Timestamp | None = None
    newer_json: str | None = None


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A row whose JSON is no record; the reason is a clause."""

    seq: int
    record_id: str
    node_id: str
    reason: str


class RecordStore(Protocol):
    """The records of one organization. They are only ever added.

    All methods raise RecordsUnavailable.
    """

    @property
    def organization(self) -> str:
        """The organization that every record is kept and read for."""
        ...

    def append(self, records: Iterable[ProvisioningRecord]) -> int:
        """Keep all the records, in this order, or none of them; return how many they are."""
        ...

    def select(self, selection: RecordSelection = EVERYTHING) -> Iterator[StoredRecord | UnreadableRecord]:
        """Yield the selected records in the order they were kept."""
        ...
