"""How a DSN may be written, what is said when no connection comes about, and that no password is in it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from postgres_fixture import Database
from pqcota_provision.errors import DsnMalformed, PqcotaError, RecordsUnavailable
from pqcota_provision.records.postgres.connection import Connection
from pqcota_provision.records.postgres.dsn import Dsn

PASSWORD = "Corr3ct/horse@b%t'tery \\staple"
FRAGMENTS = ("Corr3ct", "horse", "tery", "staple")


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE", "PGCONNECT_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "none"))


@dataclass(frozen=True)
class Login:
    """What a user has to log in with."""

    database: Database
    user: str

    @property
    def host(self) -> str:
        return str(self.database.server.socket_directory)


@pytest.fixture
def login(database: Database) -> Login:
    return Login(database, database.role(password=PASSWORD))


def in_key_values(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def as_uri(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    return f"postgresql://{login.user}:{quote(PASSWORD, safe='')}@{quote(login.host, safe='')}/{login.database.name}"


def as_short_uri(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    return f"postgres:///{login.database.name}?host={login.host}&user={login.user}&password={quote(PASSWORD)}"


def as_key_values(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    where = f"host={login.host} dbname={login.database.name}"
    return f"{where} user={login.user} password={in_key_values(PASSWORD)}"


def as_service(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    (tmp_path / "service").write_text(
        f"[pqcota]\nhost={login.host}\ndbname={login.database.name}\nuser={login.user}\npassword={PASSWORD}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "service"))
    return "service=pqcota"


def as_service_named_in_a_variable(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    as_service(login, monkeypatch, tmp_path)
    monkeypatch.setenv("PGSERVICE", "pqcota")
    return "postgresql://"


def as_variables(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("PGHOST", login.host)
    monkeypatch.setenv("PGDATABASE", login.database.name)
    monkeypatch.setenv("PGUSER", login.user)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return ""


def as_passfile(login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    passfile = tmp_path / "pgpass"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    passfile.write_text(f"*:*:{login.database.name}:{login.user}:{escaped}\n")
    passfile.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    return f"host={login.host} dbname={login.database.name} user={login.user}"


Form = Callable[[Login, pytest.MonkeyPatch, Path], str]

forms = pytest.mark.parametrize(
    "form",
    [
        as_uri,
        as_short_uri,
        as_key_values,
        as_service,
        as_service_named_in_a_variable,
        as_variables,
        as_passfile,
    ],
)


@forms
def test_a_dsn_may_have_every_form_that_libpq_knows(
    form: Form, login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (
        Connection.open(form(login, monkeypatch, tmp_path)) as connection,
        connection.transaction("asking", read_only=True) as transaction,
    ):
        assert transaction.rows("SELECT current_user::text, current_database()::text") == [
            (login.user, login.database.name)
        ]


def everything_said(error: PqcotaError) -> str:
    return " ".join((str(error), error.remedy, repr(error)))


def assert_silent(error: PqcotaError) -> None:
    said = everything_said(error)
    assert not [fragment for fragment in FRAGMENTS if fragment in said], said


@forms
def test_a_refused_password_is_not_repeated(
    form: Form, login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dsn = form(login, monkeypatch, tmp_path)
    login.database.execute("ALTER ROLE " + login.user + " PASSWORD 'another'")
    with pytest.raises(RecordsUnavailable, match="does not accept that user and password") as raised:
        Connection.open(dsn)
    assert_silent(raised.value)


ENCODED = quote(PASSWORD, safe="")


@pytest.mark.parametrize(
    "dsn",
    [
        pytest.param(f"postgresql://u:{PASSWORD}@db.example/app", id="a URI with nothing encoded"),
        pytest.param("postgresql://u:Corr3ct@horse@db.example/app", id="a URI with an @ in the password"),
        pytest.param("postgresql://u:Corr3ct/horse@db.example/app", id="a URI with a / in the password"),
        pytest.param("postgresql://u:Corr3ct%horse@db.example/app", id="a URI with a % in the password"),
        pytest.param("postgresql://Corr3ct/horse@db.example", id="a URI with an @ in the database"),
        pytest.param("postgresql://u:Corr3ct#horse@db.invalid:port/app", id="a URI with a port that is none"),
        pytest.param(
            "postgresql://127.0.0.1:Corr3ct/app", id="a URI without a user, the password where the port would be"
        ),
        pytest.param("postgresql://127.0.0.1:5432,127.0.0.1:Corr3ct/app", id="a second host without a user"),
        pytest.param("host=127.0.0.1 port=Corr3ct", id="key=value with the password for the port"),
        pytest.param(f"postgresql://u:{ENCODED}@db.example/app?nonsense={ENCODED}", id="a URI with an unknown option"),
        pytest.param(f"postgresql:/u:{ENCODED}@db.example/app", id="almost a URI"),
        pytest.param(f"mysql://u:{ENCODED}@db.example/app", id="a URI for another database"),
        pytest.param(f"host=db.example password={PASSWORD}", id="key=value with nothing quoted"),
        pytest.param("host=db.example password=Corr3ct horse=1", id="key=value with a blank in the password"),
        pytest.param("host=db.example password='Corr3ct horse", id="key=value with an open quote"),
        pytest.param(f"host=db.example passwort={in_key_values(PASSWORD)}", id="key=value with a misspelt key"),
        pytest.param("host=db.example password=Corr3ct connect_timeout=soon", id="a timeout that is no number"),
        pytest.param("Corr3ct horse", id="no DSN at all"),
        pytest.param("host=db.example password=Corr3ct\0horse", id="a NUL"),
        pytest.param("host=db.example password=Corr3ct\udcffhorse", id="bytes that are no UTF-8"),
    ],
)
def test_a_dsn_that_cannot_be_understood_is_not_repeated(dsn: str) -> None:
    with pytest.raises(DsnMalformed) as raised:
        Connection.open(dsn)
    assert_silent(raised.value)
    assert raised.value.exit_status == 2


@pytest.mark.parametrize(
    "dsn",
    [
        pytest.param("host=/nowhere dbname=Corr3ct password=Corr3ct", id="the database is the password"),
        pytest.param("host=/nowhere/Corr3ct password=Corr3ct", id="the password is in the host"),
        pytest.param("host=horse.invalid user=horse password=horse", id="the host holds the password"),
        pytest.param("host=horse%C3%A9.invalid password=horseé", id="the host holds the encoded password"),
        pytest.param("host=/nowhere sslpassword=staple dbname=staple", id="the password of a key"),
        pytest.param("service=staple password=staple", id="the service is the password"),
        pytest.param("postgresql://u:Corr3ct?horse@db.invalid/app", id="a URI with a ? in the password"),
    ],
)
def test_a_password_that_is_also_something_else_is_not_repeated(dsn: str) -> None:
    with pytest.raises(RecordsUnavailable) as raised:
        Connection.open(dsn)
    assert_silent(raised.value)


def test_a_password_of_one_letter_leaves_a_sentence(closed_port: int) -> None:
    with pytest.raises(RecordsUnavailable) as raised:
        Connection.open(f"host=127.0.0.1 port={closed_port} dbname=app user=writer password=a")
    where = f'the database on 127.0.0.1 port {closed_port} as "writer"'
    assert str(raised.value) == f"cannot connect to {where}: nothing accepts connections there"


def test_a_message_of_the_server_that_holds_the_password_is_withheld(login: Login) -> None:
    login.database.execute("ALTER ROLE " + login.user + " PASSWORD 'horse'")
    dsn = login.database.dsn_of(login.user, password="horse")
    with (
        Connection.open(dsn) as connection,
        pytest.raises(RecordsUnavailable, match=r"failed while asking \[SQLSTATE") as raised,
        connection.transaction("asking", read_only=True) as transaction,
    ):
        transaction.run("SELECT 'horse'::integer")
    assert_silent(raised.value)


def test_a_password_from_a_passfile_is_withheld_from_later_messages_too(
    login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (
        Connection.open(as_passfile(login, monkeypatch, tmp_path)) as connection,
        pytest.raises(RecordsUnavailable) as raised,
        connection.transaction("asking", read_only=True) as transaction,
    ):
        transaction.rows("SELECT %s::text::integer", (PASSWORD,))
    assert_silent(raised.value)


def test_a_host_or_port_without_end_does_not_drown_the_message() -> None:
    assert Dsn.parse(f"host={'a' * 1000} port={'1,' * 500}1 dbname=app").target().startswith('the database "app"')
    assert len(Dsn.parse(f"host={'a' * 1000} port={'1,' * 500}1 dbname=app").target()) < 120


def test_a_dsn_taken_apart_does_not_show_itself() -> None:
    assert "Corr3ct" not in repr(Dsn.parse("host=h password=Corr3ct"))


# What is said instead.


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def test_a_port_where_nothing_listens_is_named(closed_port: int) -> None:
    with pytest.raises(RecordsUnavailable) as raised:
        Connection.open(f"postgresql://u:pw@127.0.0.1:{closed_port}/app")
    where = f'the database "app" on 127.0.0.1 port {closed_port} as "u"'
    said = f"cannot connect to {where}: nothing accepts connections there"
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        pytest.param({"dbname": "nowhere"}, "that database does not exist there", id="no such database"),
        pytest.param({"user": "nobody-here"}, "that role does not exist there", id="no such role"),
        pytest.param({"host": "/nowhere"}, "there is no such socket", id="no such socket"),
        pytest.param({"host": "db.invalid"}, "its host name is not known", id="no such host"),
        pytest.param({"user": "login-without"}, "it asks for a password, and none was given", id="no password"),
        pytest.param({"sslmode": "wrong"}, ': "wrong"', id="a value that is none"),
        pytest.param({"service": "unheard-of"}, "the service is in no pg_service.conf", id="no such service"),
    ],
)
def test_what_is_wrong_is_said_in_words(database: Database, parameters: dict[str, str], said: str) -> None:
    known = {"host": str(database.server.socket_directory), "user": "postgres", "dbname": database.name, **parameters}
    with pytest.raises(RecordsUnavailable) as raised:
        Connection.open(" ".join(f"{name}={value}" for name, value in known.items()))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and never says a word."""
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    accepted.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for each in accepted:
        each.close()


@pytest.mark.parametrize("in_dsn", [True, False], ids=["the DSN says how long", "the caller says how long"])
def test_a_server_that_accepts_and_never_answers_is_given_up_on(silent_server: int, in_dsn: bool) -> None:
    dsn = f"host=127.0.0.1 port={silent_server} dbname=app user=u password=Corr3ct"
    with pytest.raises(RecordsUnavailable, match="it did not answer in time") as raised:
        if in_dsn:
            Connection.open(f"{dsn} connect_timeout=2", connect_timeout=3600)
        else:
            Connection.open(dsn, connect_timeout=2)
    assert_silent(raised.value)


def test_a_server_that_is_no_postgres_is_called_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            for _ in range(2):
                accepted, _ = listener.accept()
                accepted.recv(8)
                accepted.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(RecordsUnavailable, match="it closed the connection, and may be no Postgres"):
            Connection.open(f"host=127.0.0.1 port={port} dbname=app user=u sslmode=disable gssencmode=disable")
