"""Ready probes, which ask a service on the node itself whether it answers."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from pqcota_provision.proof.files import reason_of

PROBE_SECONDS = 5.0

_SCHEMES = frozenset(("tcp", "http", "https"))
_FIRST_ERROR_STATUS = 400


def refuse_probe(text: str) -> str | None:
    """Tell why a text is no probe of the form ``tcp://host:port`` or ``http(s)://host[:port]/…``."""
    if not text.isascii() or not text.isprintable() or " " in text:
        return "holds a character that no URL has"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return "is no URL"
    if url.scheme not in _SCHEMES or not url.hostname:
        return "is no probe like tcp://127.0.0.1:8443 or https://127.0.0.1:8443/ready"
    if url.username is not None or url.password is not None:
        return "carries a user or a password, which a probe has no use for"
    if port == 0 or (url.scheme == "tcp" and port is None):
        return "names no port"
    if url.scheme == "tcp" and (url.path or url.query or url.fragment):
        return "names more than a host and a port"
    return None


def probe(text: str, *, seconds: float = PROBE_SECONDS) -> str | None:
    """Ask a probe that ``refuse_probe`` accepts; return None if it answers in time, else why not, as a clause.

    A TCP probe answers when it accepts a connection, an HTTP one with a status below 400. Certificates are
    not verified: on the node itself they seldom name the loopback address, and only an answer is asked for.
    """
    url = urlsplit(text)
    ask = _ask_tcp if url.scheme == "tcp" else _ask_http
    answers: list[str | None] = []
    # A resolver or a server that drips its answer would outlast any timeout of a single socket call.
    asking = threading.Thread(target=_collect, args=(answers, ask, url, seconds), daemon=True)
    asking.start()
    asking.join(seconds)
    return answers[0] if answers else f"gave no answer within {seconds:g} s"


def _collect(
    answers: list[str | None], ask: Callable[[SplitResult, float], str | None], url: SplitResult, seconds: float
) -> None:
    try:
        answers.append(ask(url, seconds))
    except TimeoutError:
        answers.append(f"gave no answer within {seconds:g} s")
    except http.client.HTTPException:
        answers.append("answers with something that is no HTTP")
    except OSError as error:
        answers.append(f"cannot be reached: {reason_of(error)}")


def _ask_tcp(url: SplitResult, seconds: float) -> str | None:
    with socket.create_connection((url.hostname or "", url.port or 0), timeout=seconds):
        return None


def _ask_http(url: SplitResult, seconds: float) -> str | None:
    host = url.hostname or ""
    if url.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, url.port, timeout=seconds, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, url.port, timeout=seconds)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("GET", path, headers={"User-Agent": "pqcota-prove"})
        status = connection.getresponse().status
    finally:
        connection.close()
    return None if status < _FIRST_ERROR_STATUS else f"answers with the status {status}"
