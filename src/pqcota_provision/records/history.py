"""The history of discovered cryptography, as this suite looks it up (SPEC 10).

Another tool owns it: it is only read, and where it is absent there simply is no history.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pqcota_provision.records.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ContentKey:
    """What a snapshot is found by when a reference names its content."""

    node_id: str
    ruleset_version: str
    digest: str


class History(Protocol):
    """The snapshots of one organization.

    Each look-up takes everything wanted at once and returns what was found. All raise RecordsUnavailable.
    """

    @property
    def organization(self) -> str:
        """The organization that every look-up is made for."""
        ...

    def exists(self) -> bool:
        """Tell whether there is a history at all."""
        ...

    def latest(self, node_ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Return the latest snapshot of each node, by node id."""
        ...

    def by_id(self, snapshot_ids: Collection[str]) -> Mapping[str, Snapshot]:
        """Return the latest snapshot with each id, by id."""
        ...

    def by_content(self, keys: Collection[ContentKey]) -> Mapping[ContentKey, Snapshot]:
        """Return the latest snapshot with each content, by content key."""
        ...
