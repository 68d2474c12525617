"""Records and history in memory, for users of the library and for single runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pqcota_provision.plan.model import ProvisioningRecord
from pqcota_provision.records.history import ContentKey
from pqcota_provision.records.organization import check_organization
from pqcota_provision.records.store import EVERYTHING, RecordSelection, StoredRecord

if TYPE_CHECKING:
    from pqcota_provision.records.snapshot import Snapshot


class MemoryRecordStore:
    """A RecordStore that lasts as long as the process; a record is stored at its own ``at``."""

    def __init__(self, organization: str) -> None:
        self._organization = check_organization(organization)
        self._records: list[ProvisioningRecord] = []

    @property
    def organization(self) -> str:
        """The organization the records belong to."""
        return self._organization

    def append(self, records: Iterable[ProvisioningRecord]) -> int:
        """Keep all the records, or none if producing one of them fails; return how many they are."""
        added = list(records)
        self._records += added
        return len(added)

    def select(self, selection: RecordSelection = EVERYTHING) -> Iterator[StoredRecord]:
        """Yield the selected records in the order they were kept."""
        selected = [
            StoredRecord(seq, record, record.at)
            for seq, record in enumerate(self._records, start=1)
            if _is_selected(record, selection)
        ]
        skipped = 0 if selection.newest is None else max(0, len(selected) - selection.newest)
        yield from selected[skipped:]


def _is_selected(record: ProvisioningRecord, selection: RecordSelection) -> bool:
    return (
        selection.node_id in (None, record.node_id)
        and selection.plan_id in (None, record.plan_id)
        and (selection.since is None or (record.at is not None and record.at >= selection.since))
    )


class MemoryHistory:
    """A History of snapshots added by hand, in the order they were taken."""

    def __init__(self, organization: str) -> None:
        self._organization = check_organization(organization)
        self._latest: dict[str, Snapshot] = {}
        self._by_id: dict[str, Snapshot] = {}
        self._by_content: dict[ContentKey, Snapshot] = {}

    @property
    def organization(self) -> str:
        """The organization the snapshots belong to."""
        return self._organization

    def add(self, snapshot: Snapshot, content: ContentKey | None = None) -> None:
        """Add a snapshot, newer than all before it; ``content`` is what a reference by content names."""
        self._latest[snapshot.node_id] = snapshot
        self._by_id[snapshot.id] = snapshot
        if content is not None:
            self._by_content[content] = snapshot

    def exists(self) -> bool:
        """Tell that there is a history, even if nothing is in it yet."""
        return True

    def latest(self, node_ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Return the latest snapshot of each node, by node id."""
        return {node_id: self._latest[node_id] for node_id in node_ids if node_id in self._latest}

    def by_id(self, snapshot_ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Return the latest snapshot with each id, by id."""
        return {key: self._by_id[key] for key in snapshot_ids if key in self._by_id}

    def by_content(self, keys: Collection[ContentKey]) -> Mapping[ContentKey, Snapshot]:
        """Return the latest snapshot with each content, by content key."""
        return {key: self._by_content[key] for key in keys if key in self._by_content}
