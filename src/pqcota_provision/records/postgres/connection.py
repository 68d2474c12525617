"""A connection to Postgres that gives up on a server in bounded time and explains what failed (SPEC 10 and 11.11)."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import make_conninfo

from pqcota_provision.errors import CommitUncertain, DsnMalformed, RecordsUnavailable, RecordUnstorable
from pqcota_provision.records.postgres.dsn import Dsn, pq_defaults
from pqcota_provision.text import printable

CONNECT_TIMEOUT = 10
STATEMENT_TIMEOUT = 60
LOCK_TIMEOUT = 30
# How much longer than the server's own limit a client waits before it takes the server for dead.
GRACE = 10
ROLLBACK_TIMEOUT = 5

_Row = tuple[Any, ...]

_DEAD_PEER = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


class Connection:
    """A connection that runs one transaction at a time; use it as a context manager, or close it."""

    def __init__(
        self, connection: psycopg.Connection[_Row], dsn: Dsn, secrets: frozenset[str], statement_timeout: float
    ) -> None:
        self._connection = connection
        self._dsn = dsn
        self._secrets = secrets
        self._statement_timeout = statement_timeout
        self._gave_up = False

    @classmethod
    def open(
        cls,
        dsn: str,
        *,
        application_name: str = "pqcota",
        connect_timeout: int = CONNECT_TIMEOUT,
        statement_timeout: int = STATEMENT_TIMEOUT,
    ) -> Connection:
        """Connect as a DSN says: a URI, key=value pairs, ``service=NAME``, or empty for libpq's variables alone.

        The timeouts, in seconds, hold where neither the DSN nor the server sets its own. Raises DsnMalformed,
        and RecordsUnavailable if no connection comes about.
        """
        parsed = Dsn.parse(dsn)
        known = {**pq_defaults(), **parsed.parameters}
        extra = {
            name: value
            for name, value in {"connect_timeout": str(connect_timeout), **_DEAD_PEER}.items()
            if name not in known
        }
        extra["client_encoding"] = "utf8"
        if not known.get("fallback_application_name"):
            extra["fallback_application_name"] = application_name
        try:
            connection = psycopg.Connection[_Row].connect(
                make_conninfo("", **{**parsed.parameters, **extra}),
                autocommit=True,
                # A connection pooler may give each transaction to another server process.
                prepare_threshold=None,
            )
        except (psycopg.Error, OSError, ValueError, UnicodeError) as error:
            raise _cannot_connect(parsed, error) from None
        secrets = parsed.secrets | ({connection.info.password} - {""})
        return cls(connection, parsed, secrets, statement_timeout)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a transaction that was not committed is undone."""
        with suppress(psycopg.Error):
            self._connection.close()

    @contextmanager
    def transaction(self, doing: str, *, read_only: bool) -> Iterator[Transaction]:
        """Run a block in one transaction, which is committed at its end and undone if it fails.

        ``doing`` completes "the database failed while …". Raises RecordsUnavailable for whatever the server or
        the network does, CommitUncertain if it does so during the commit.
        """
        transaction = Transaction(self, doing, read_only=read_only)
        transaction.run("BEGIN READ ONLY" if read_only else "BEGIN READ WRITE")
        try:
            transaction.limit(self._statement_timeout)
            yield transaction
        except BaseException:
            self._undo()
            raise
        transaction.commit()

    def _undo(self) -> None:
        try:
            with self.answer_within(ROLLBACK_TIMEOUT):
                self._connection.execute("ROLLBACK")
        except BaseException as error:
            # The server undoes it when the connection ends, too.
            self.close()
            if not isinstance(error, Exception):
                raise

    @contextmanager
    def answer_within(self, seconds: float) -> Iterator[None]:
        """Break the connection off if the block takes longer, since a stopped server leaves it waiting for ever."""
        timer = threading.Timer(seconds, self._break_off)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _break_off(self) -> None:
        self._gave_up = True
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self._connection.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)

    def cursor(self, name: str = "") -> psycopg.Cursor[_Row] | psycopg.ServerCursor[_Row]:
        """Return a cursor of the driver's; with a name, one that the server holds the result of."""
        return self._connection.cursor(name) if name else self._connection.cursor()

    @property
    def broken(self) -> bool:
        """Whether the connection is gone."""
        return self._gave_up or self._connection.closed

    def explain(self, error: Exception, doing: str) -> RecordsUnavailable:
        """Return what a driver's error means, in words that hold no password."""
        if self._gave_up:
            return RecordsUnavailable(
                f"the database did not answer any more while {doing}",
                remedy="Check the server and the network, then run the command again.",
            )
        return _explain(error, doing, self._dsn, self._secrets, lost=self.broken)


class Transaction:
    """The statements of one transaction; every answer is waited for a bounded time."""

    def __init__(self, connection: Connection, doing: str, *, read_only: bool) -> None:
        self._connection = connection
        self._doing = doing
        self._read_only = read_only
        self._limit: float = STATEMENT_TIMEOUT

    def limit(self, statement_timeout: float) -> None:
        """Let the server give up a statement, or the wait for a lock, unless it already has a limit of its own."""
        own = {"statement_timeout": int(statement_timeout * 1000), "lock_timeout": LOCK_TIMEOUT * 1000}
        rows = self.rows(
            "SELECT name, set_config(name, own::text, true), own FROM ("
            " SELECT name, CASE WHEN setting <> '0' THEN setting::bigint"
            "  WHEN name = 'lock_timeout' THEN %s ELSE %s END AS own"
            " FROM pg_catalog.pg_settings WHERE name IN ('statement_timeout', 'lock_timeout')) AS limits",
            (own["lock_timeout"], own["statement_timeout"]),
        )
        self._limit = {name: milliseconds for name, _, milliseconds in rows}["statement_timeout"] / 1000

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change settings of the server until the end of the transaction."""
        self.rows(
            "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS setting (name, value)",
            (list(settings), list(settings.values())),
        )

    def run(self, statement: LiteralString, parameters: Sequence[object] = ()) -> None:
        """Run a statement that returns nothing of interest."""
        with self._answered(), self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)

    def rows(self, statement: LiteralString, parameters: Sequence[object] = ()) -> list[_Row]:
        """Return all the rows of a query that yields few."""
        with self._answered(), self._connection.cursor() as cursor:
            return cursor.execute(statement, parameters or None).fetchall()

    def stream(
        self, statement: LiteralString, parameters: Sequence[object] = (), *, first: int, then: int
    ) -> Generator[_Row, None, None]:
        """Yield the rows of a query as the server finds them, fetching ``first`` rows, then ``then`` at a time."""
        cursor = self._connection.cursor("pqcota_stream")
        try:
            with self._answered():
                cursor.execute(statement, parameters or None)
            wanted = first
            while True:
                with self._answered():
                    rows = cursor.fetchmany(wanted)
                yield from rows
                if len(rows) < wanted:
                    return
                wanted = then
        finally:
            with suppress(RecordsUnavailable), self._answered():
                cursor.close()

    def commit(self) -> None:
        """Commit; raises CommitUncertain if the connection broke before the server said how it ended."""
        try:
            with self._connection.answer_within(self._limit + GRACE), self._connection.cursor() as cursor:
                cursor.execute("COMMIT")
                ended_as = cursor.statusmessage
        except (psycopg.Error, OSError) as error:
            if self._connection.broken and not self._read_only:
                raise CommitUncertain(f"the connection to the database broke at the end of {self._doing}") from None
            raise self._connection.explain(error, self._doing) from None
        if ended_as != "COMMIT":
            raise RecordsUnavailable(f"the database undid everything at the end of {self._doing}")

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            with self._connection.answer_within(self._limit + GRACE):
                yield
        except (psycopg.Error, OSError, UnicodeError) as error:
            raise self._connection.explain(error, self._doing) from None


_CANNOT_CONNECT = (
    (("timeout expired", "timed out"), "it did not answer in time"),
    (("connection refused",), "nothing accepts connections there"),
    (("no such file or directory",), "there is no such socket, so no server runs there"),
    (
        ("could not translate host name", "failed to resolve host", "name or service not known", "name resolution"),
        "its host name is not known",
    ),
    (("no password supplied",), "it asks for a password, and none was given"),
    (("password authentication failed", "authentication failed"), "it does not accept that user and password"),
    (("no pg_hba.conf entry",), "its pg_hba.conf does not let that user in from this host"),
    (("does not support ssl",), "it offers no TLS, and the DSN asks for it"),
    (("certificate verify failed", "root certificate", "server certificate"), "its certificate is not trusted"),
    (("too many clients", "too many connections", "remaining connection slots"), "it has no connection left"),
    (("is starting up", "is shutting down", "not yet accepting connections"), "it is starting up or shutting down"),
    (("no route to host", "network is unreachable"), "the network does not reach it"),
    (("server closed the connection",), "it closed the connection, and may be no Postgres"),
    (("definition of service", "service file"), "the service is in no pg_service.conf that libpq reads"),
)
_MISSING_NAME = re.compile(r'(database|role) "[^"]*" does not exist')


def _cannot_connect(dsn: Dsn, error: Exception) -> RecordsUnavailable | DsnMalformed:
    if isinstance(error, psycopg.ProgrammingError):
        return DsnMalformed("the DSN gives a parameter a value that it cannot have")
    known_to_driver = getattr(getattr(error, "pgconn", None), "password", None)
    more_secrets = [known_to_driver.decode(errors="replace")] if known_to_driver else []
    text = " ".join(str(error).split())
    lower = text.lower()
    missing = _MISSING_NAME.search(text)
    reason = next((words for patterns, words in _CANNOT_CONNECT if any(each in lower for each in patterns)), None)
    if missing is not None:
        reason = f"that {missing.group(1)} does not exist there"
    if reason is None:
        reason = _WITHHELD if dsn.reveals(text, more_secrets) else printable(text)
    return RecordsUnavailable(f"cannot connect to {dsn.target(more_secrets)}: {reason}")


_WITHHELD = "the driver's message is withheld, since it may show the password"
_RIGHTS = "Give the role its rights; docs/operations.md lists them for a writer and for a reader."
_EXPLAINED: dict[str, tuple[str, str | None]] = {
    "42501": ("the role lacks a right for {doing}", _RIGHTS),
    "25006": ("the database takes no writes (it is a standby, or the role may only read)", None),
    "57014": (
        "the database cancelled {doing}, since it took longer than its statement_timeout or somebody cancelled it",
        "Find out what kept it, or raise the limit: options='-c statement_timeout=5min' in the DSN.",
    ),
    "55P03": ("another session held a lock for too long while {doing}", "Run the command again when it is done."),
    "53100": ("the database's disk is full, so {doing} failed", "Make room on the server, then run the command again."),
    "53200": ("the database has too little memory for {doing}", None),
    "57P01": ("the server ended the connection while {doing}", None),
    "57P02": ("the server ended the connection while {doing}", None),
    "57P03": ("the server is starting up or shutting down", None),
    "42P01": ("a table is missing for {doing}", None),
    "42703": (
        "a table lacks a column that {doing} needs; an older version made it",
        "Bring the table up to date with the current version of the tool that owns it.",
    ),
}
_UNSTORABLE = frozenset(("22021", "22P05"))


def _explain(error: Exception, doing: str, dsn: Dsn, secrets: frozenset[str], *, lost: bool) -> RecordsUnavailable:
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None and lost:
        return RecordsUnavailable(f"the connection to the database was lost while {doing}")
    server_says = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    said = f" ({printable(server_says)})" if server_says and not dsn.reveals(server_says, secrets) else ""
    if state in _UNSTORABLE:
        return RecordUnstorable(f"the database cannot keep a text while {doing}{said}")
    sentence, remedy = _EXPLAINED.get(state or "", ("the database failed while {doing}", None))
    code = f" [SQLSTATE {state}]" if state and state not in _EXPLAINED else ""
    return RecordsUnavailable(sentence.format(doing=doing) + said + code, remedy=remedy)
