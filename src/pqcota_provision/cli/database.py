"""What the commands share that use a database: settings from the environment, and records of a plan."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pqcota_provision.cli import common
from pqcota_provision.cli.organization import organization, organization_help, switch
from pqcota_provision.errors import UsageProblem
from pqcota_provision.plan.model import FinalizedPlan
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.recording import Recording, record_plan
from pqcota_provision.records.store import RecordStore
from pqcota_provision.text import quote

AUTO_DDL_VARIABLE = "PQCOTA_AUTO_DDL"

ORGANIZATION_HELP = organization_help("records")


@contextmanager
def connection(dsn: str, command: str) -> Iterator[Connection]:
    """Yield a connection to the database of a DSN, which must say something; raises PqcotaError."""
    if not dsn.strip():
        raise UsageProblem(
            "the DSN is empty", remedy="To leave everything to libpq's PG… variables, write it as postgresql://."
        )
    # What the driver would log on stderr may show what it should not; errors tell all there is to tell.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    with Connection.open(dsn, application_name=command) as opened:
        yield opened


class PlanRecorder:
    """The records of one plan, made and not yet kept."""

    def __init__(self, recording: Recording, store: RecordStore) -> None:
        self.recording = recording
        self._store = store

    def document(self) -> dict[str, int | str]:
        """Return what a report says of the records, which are only handed over once they are kept."""
        return {
            "organization": self._store.organization,
            "kept": len(self.recording.records),
            "referencesResolved": self.recording.resolved,
            "referencesUnresolved": self.recording.unresolved,
        }

    def keep(self) -> str:
        """Keep the records, all or none, and return the sentence that says so."""
        count = self._store.append(self.recording.records)
        return (
            f"{count} record{'' if count == 1 else 's'} kept for the organization {quote(self._store.organization)}; "
            f"snapshot references: {self.recording.resolved} resolved, {self.recording.unresolved} unresolved."
        )


@contextmanager
def plan_recorder(plan: FinalizedPlan, dsn: str, command: str) -> Iterator[PlanRecorder]:
    """Yield the recorder of a plan that is about to be carried out now; raises PqcotaError."""
    from pqcota_provision.records.postgres.history import PostgresHistory
    from pqcota_provision.records.postgres.store import PostgresRecordStore

    owner = organization()
    create_table = switch(AUTO_DDL_VARIABLE, "1")
    with connection(dsn, command) as opened:
        recording = record_plan(
            plan, history=PostgresHistory(opened, owner), now=Timestamp.from_nanoseconds(time.time_ns())
        )
        for remark in recording.remarks:
            common.say(command, remark)
        yield PlanRecorder(recording, PostgresRecordStore(opened, owner, create_table=create_table))
