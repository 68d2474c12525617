"""DSNs: what they say about a server, and how a password in one stays out of every message (SPEC 10 and 11.11)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote as percent_encoded
from urllib.parse import quote_plus

from psycopg import ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict

from pqcota_provision.errors import DsnMalformed
from pqcota_provision.text import printable, quote

_URI_SCHEMES = ("postgresql://", "postgres://")
_HOST = re.compile(r"[A-Za-z0-9._:%,/-]{1,255}")
_PORT = re.compile(r"[0-9,]{1,64}")
_PORTS = re.compile(r"[0-9, ]*")
_SECRET_OPTIONS = frozenset(
    option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.dispchar == b"*"
) | {"password", "sslpassword", "scram_client_key", "scram_server_key"}


@dataclass(frozen=True)
class Dsn:
    """A DSN taken apart; ``parameters`` holds only what it says itself, not what libpq's variables add.

    Its repr shows nothing, since a password may stand in any part of it.
    """

    parameters: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Dsn:
        """Take apart a URI or key=value pairs; empty text leaves everything to libpq's variables.

        Raises DsnMalformed, never showing a part of the text.
        """
        if "\0" in text:
            raise DsnMalformed("the DSN holds a NUL character")
        try:
            parsed = conninfo_to_dict(text)
        except (ProgrammingError, UnicodeError):
            raise DsnMalformed("the DSN is none that libpq understands") from None
        parameters = {name: str(value) for name, value in parsed.items() if value is not None}
        if text.startswith(_URI_SCHEMES) and any(
            "@" in parameters.get(name, "") for name in ("host", "dbname", "port")
        ):
            # libpq ends the credentials at the first @ and looks for none after a /; what is left of a password
            # would go into the name of the host or the database, and from there into messages.
            raise DsnMalformed(
                "the DSN is ambiguous: its user or password holds an @ or a / that is not percent-encoded",
                remedy="Write @ as %40 and / as %2F, or keep the password in a file (docs/operations.md).",
            )
        if _PORTS.fullmatch(parameters.get("port", "")) is None:
            # Whoever leaves out the user has a password in its place, and the driver's message would show it.
            raise DsnMalformed("the DSN has no number where its port would be: the user or the host may be missing")
        return cls(parameters, secrets_of(parameters, pq_defaults()))

    def reveals(self, text: str, more_secrets: Iterable[str] = ()) -> bool:
        """Tell whether a text holds a password in one of the forms it may take."""
        return any(form in text for secret in (*self.secrets, *more_secrets) for form in _forms(secret))

    def target(self, more_secrets: Iterable[str] = ()) -> str:
        """Return in words which server is meant, leaving out whatever could be part of a password."""
        known = {**pq_defaults(), **self.parameters}
        if "service" in known and "host" not in self.parameters:
            named = [("the service", quote(known["service"]))]
        else:
            host = known.get("host") or known.get("hostaddr", "")
            port = known.get("port", "")
            named = [
                ("the database", quote(known["dbname"]) if known.get("dbname") else ""),
                ("on", host if _HOST.fullmatch(host) else ""),
                ("port", port if _PORT.fullmatch(port) else ""),
                ("as", quote(known["user"]) if known.get("user") else ""),
            ]
        shown = [f"{what} {name}" for what, name in named if name and not self.reveals(name, more_secrets)]
        if not shown or not shown[0].startswith(named[0][0]):
            shown.insert(0, named[0][0])
        return " ".join(shown)


def _is_ambiguous(parameters: Mapping[str, str]) -> bool:
    # libpq ends the credentials of a URI at the first @, and looks for none after a /. What is left of a password
    # then goes into the name of the host or the database, and from there into messages. A host may begin with @
    # where it is an abstract socket.
    host = parameters.get("host", "")
    return "@" in host[1:] or any("@" in parameters.get(name, "") for name in ("dbname", "port"))


def pq_defaults() -> dict[str, str]:
    """Return the connection parameters that libpq takes from its own variables and service file."""
    return {
        option.keyword.decode(): option.val.decode(errors="replace")
        for option in pq.Conninfo.get_defaults()
        if option.val
    }


def secrets_of(*parameters: Mapping[str, str]) -> frozenset[str]:
    """Return the values among connection parameters that must not be shown."""
    return frozenset(value for each in parameters for name, value in each.items() if name in _SECRET_OPTIONS and value)


def _forms(secret: str) -> set[str]:
    return {
        secret,
        printable(secret),
        percent_encoded(secret, safe=""),
        percent_encoded(secret),
        quote_plus(secret),
        secret.replace("\\", "\\\\").replace("'", "\\'"),
    }
