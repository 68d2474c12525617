"""pqcota-records: what nodes looked like before they were changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing

import click

from pqcota_provision.cli import common, database
from pqcota_provision.cli.organization import organization
from pqcota_provision.errors import OutputClosed, UsageProblem
from pqcota_provision.plan.protojson import dump_message
from pqcota_provision.plan.timestamp import Timestamp
from pqcota_provision.records.listing import record_lines
from pqcota_provision.records.postgres.store import PostgresRecordStore
from pqcota_provision.records.store import RecordSelection, StoredRecord, UnreadableRecord
from pqcota_provision.text import printable, quote

COMMAND = "pqcota-records"
DSN_VARIABLE = "PQCOTA_DSN"

_MAX_LIMIT = 2**63 - 1
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_EPILOG = common.epilog(
    {DSN_VARIABLE: "the database: a URI, key=value pairs or service=NAME (required)", **database.ORGANIZATION_HELP},
    {
        common.DONE: "done, also where no record was found or the reader of the output went away",
        common.REFUSED: "failed",
        common.USAGE: "wrong usage, or a variable missing or wrong",
        common.BLANKS: "done, but for rows that could not be read (see standard error)",
    },
)


@click.command(COMMAND, epilog=_EPILOG)
@click.argument("node", metavar="[NODE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one record a line, in the JSON of the plan contract.")
@click.option("--plan", "plan_id", metavar="ID", help="Only the records of this plan.")
@click.option("--since", metavar="TIME", help="Only records kept at or after this RFC 3339 time or UTC date.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="Only the N newest of them, oldest first as ever."
)
@common.version_option(COMMAND)
def command(*, node: str | None, as_json: bool, plan_id: str | None, since: str | None, limit: int | None) -> int:
    """List the records of what nodes looked like before they were changed, oldest first.

    With NODE, only those of this node. Nothing is ever written to the database.
    """
    dsn = common.environment(DSN_VARIABLE)
    if not dsn:
        raise UsageProblem(f"{DSN_VARIABLE} is not set", remedy="Set it to the DSN that pqcota-provision is given.")
    selection = RecordSelection(
        node_id=_name("NODE", node),
        plan_id=_name("--plan", plan_id),
        since=None if since is None else _time(since),
        newest=None if limit is None else min(limit, _MAX_LIMIT),
    )
    owner = organization()
    with database.connection(dsn, COMMAND) as opened:
        store = PostgresRecordStore(opened, owner)
        with closing(store.select(selection)) as rows:
            return _list(rows, owner, as_json=as_json)


def _list(rows: Iterator[StoredRecord | UnreadableRecord], owner: str, *, as_json: bool) -> int:
    listed = unreadable = 0
    try:
        for row in rows:
            if isinstance(row, UnreadableRecord):
                unreadable += 1
                _report_unreadable(row)
                continue
            common.write_output([_json_line(row) if as_json else _paragraph(row, first=listed == 0)])
            listed += 1
    except OutputClosed:
        return common.DONE
    except KeyboardInterrupt:
        common.say(COMMAND, "interrupted")
        return common.INTERRUPTED
    if unreadable:
        rest = f"{unreadable} row{'' if unreadable == 1 else 's'} could not be read and {_are(unreadable)} not listed."
        common.say(COMMAND, rest)
        return common.BLANKS
    if not listed:
        common.say(COMMAND, f"no record found in the organization {quote(owner)}.")
    return common.DONE


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _json_line(row: StoredRecord) -> str:
    # What a newer version wrote goes out as it stands, so that nothing is lost.
    return (row.newer_json or dump_message(row.record, indent=None)) + "\n"


def _paragraph(row: StoredRecord, *, first: bool) -> str:
    return ("" if first else "\n") + "\n".join(record_lines(row)) + "\n"


def _report_unreadable(row: UnreadableRecord) -> None:
    common.say(
        COMMAND,
        f"row {row.seq}, record {quote(row.record_id)} of {printable(row.node_id)}, cannot be read: {row.reason}.",
    )


def _name(what: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not value:
        raise UsageProblem(f"{what} is empty", remedy="Name one, or leave it out.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageProblem(f"{what} is not valid UTF-8", remedy="Check how the shell encodes it.") from None
    return value


def _time(text: str) -> Timestamp:
    try:
        return Timestamp.parse(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)
    except ValueError as error:
        raise UsageProblem(f"--since {quote(text)} {error}", remedy="A date like 2026-01-02 will do, too.") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return common.run(command, argv)
