"""A host with one OpenSSL and one way of reading a fragment, and TLS servers to talk to."""

from __future__ import annotations

import hashlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from available import needs, skip_or_fail
from node_view import TIMEOUT, NodeView
from pqcota_provision.plan.model import CryptoRuntime, FinalizedPlan, RemediationAction, RemediationKind
from pqcota_provision.playbook.layout import NodeLayout, lay_out
from pqcota_provision.playbook.levels import Level
from pqcota_provision.playbook.paths import openssl_fragment_path
from tls_wire import Exchange, Tap

SYSTEM_CONFIG = "/etc/ssl/openssl.cnf"
FRAGMENT = openssl_fragment_path()
PROVIDER = "acme-pqc"
MODULE = f"/opt/pqcota/{PROVIDER}.so"

_PROVIDER_LINE = re.compile(r"^  (\S+)$")
_STATUS_LINE = re.compile(r"^    status: (\S+)$")
_ACCEPT = re.compile(rb"^ACCEPT 127\.0\.0\.1:(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class OpenSsl:
    """One OpenSSL: its version, and the environment in which the host's own commands use it."""

    version: tuple[int, int]
    environment: dict[str, str]


@dataclass(frozen=True)
class Certificate:
    """A self-signed server certificate for localhost and its key, as files."""

    certificate: Path
    key: Path


class Reading(Enum):
    """How a host comes to read a fragment."""

    POINTED_AT = "pointed at by OPENSSL_CONF"
    INCLUDED_FIRST = "included at the beginning of the system's openssl.cnf"
    INCLUDED_LAST = "included at the end of the system's openssl.cnf"


@dataclass(frozen=True)
class Server:
    """A running TLS server: where it listens, and the certificate to trust."""

    port: int
    certificate: Path


@dataclass(frozen=True)
class Connection:
    """What came of a client's attempt: the finished client, and what was said on the wire."""

    client: subprocess.CompletedProcess[str]
    exchange: Exchange

    @property
    def succeeded(self) -> bool:
        """Whether the client got through its handshake and trusted the server."""
        return self.client.returncode == 0


@dataclass(frozen=True)
class Host:
    """A node as its own commands see it, with one OpenSSL and one config file in force."""

    node: NodeView
    openssl: OpenSsl
    config: str = SYSTEM_CONFIG

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this host's commands."""
        return {**self.openssl.environment, "OPENSSL_CONF": self.config}

    def run(self, *argv: str, stdin: str = "", user: str = "") -> subprocess.CompletedProcess[str]:
        """Run one of the host's commands."""
        return self.node.run(argv, environment=self.environment, stdin=stdin, user=user)

    def providers(self, user: str = "") -> dict[str, str]:
        """Return the loaded providers with their status, as ``openssl list`` names them."""
        result = self.run(needs("openssl"), "list", "-providers", user=user)
        assert result.returncode == 0, result.stderr
        found: dict[str, str] = {}
        name = ""
        for line in result.stdout.splitlines():
            if match := _PROVIDER_LINE.match(line):
                name = match.group(1)
            elif match := _STATUS_LINE.match(line):
                found[name] = match.group(1)
        return found

    def digests(self, user: str = "") -> bool:
        """Tell whether ``openssl dgst`` gives the right SHA-256."""
        result = self.run(needs("openssl"), "dgst", "-sha256", "-r", stdin="abc", user=user)
        return result.returncode == 0 and result.stdout.split()[0] == hashlib.sha256(b"abc").hexdigest()

    def connect(self, server: Server, *arguments: str, user: str = "") -> Connection:
        """Let ``openssl s_client`` of this host talk to a server."""
        openssl = needs("openssl")
        return self.observe(
            server,
            lambda port: (
                *(openssl, "s_client", "-brief", "-connect", f"127.0.0.1:{port}", "-servername", "localhost"),
                *("-CAfile", str(server.certificate), "-verify_return_error", *arguments),
            ),
            user=user,
        )

    def observe(self, server: Server, client: Callable[[int], Sequence[str]], user: str = "") -> Connection:
        """Let any client of this host talk to a server, with a tap between them."""
        with Tap(server.port) as tap:
            result = self.run(*client(tap.port), user=user)
        exchanges = tap.exchanges()
        return Connection(result, exchanges[0] if exchanges else Exchange((), ()))


@contextmanager
def tls_server(host: Host, certificate: Certificate, *arguments: str) -> Iterator[Server]:
    """Run ``openssl s_server`` of a host on a free loopback port for as long as the context lasts."""
    argv = [
        *(needs("openssl"), "s_server", "-www", "-accept", "127.0.0.1:0"),
        *("-cert", str(certificate.certificate), "-key", str(certificate.key), *arguments),
    ]
    with TemporaryFile() as output:
        process = host.node.start(argv, environment=host.environment, output=output)
        try:
            yield Server(_accepting_port(process, output), certificate.certificate)
        finally:
            process.terminate()
            process.wait(TIMEOUT)


def _accepting_port(process: subprocess.Popen[bytes], output: IO[bytes]) -> int:
    for _ in range(TIMEOUT * 50):
        output.seek(0)
        printed = output.read()
        if match := _ACCEPT.search(printed):
            return int(match.group(1))
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"openssl s_server does not listen: {printed.decode(errors='replace')}")


def openssl_action(kind: RemediationKind, target: str, artifact: str = "") -> RemediationAction:
    """Return an action on the node ``node-a`` that injects or configures this test's provider."""
    return RemediationAction(
        id="a-1",
        target_node_id="node-a",
        crypto_runtime=CryptoRuntime.OPENSSL,
        kind=kind,
        target_algorithm=target,
        provider_choice=PROVIDER,
        config_artifact=artifact,
    )


def layout_of(*actions: RemediationAction) -> NodeLayout:
    """Return what a plan of these actions places on their one node."""
    (layout,) = lay_out(FinalizedPlan(actions=actions), Level.L2)
    return layout


def stock_config() -> str:
    """Return the machine's own openssl.cnf, which has to be the stock file with its diagnostics on."""
    try:
        text = Path(SYSTEM_CONFIG).read_text()
    except OSError as error:
        skip_or_fail(f"no system openssl.cnf: {error}")
    if not re.search(r"^config_diagnostics = 1$", text, re.MULTILINE):
        skip_or_fail(f"{SYSTEM_CONFIG} is no stock file: it does not set config_diagnostics")
    return text


def read_by(node: NodeView, openssl: OpenSsl, reading: Reading, system_config: str) -> Host:
    """Return a host of the node that reads the fragment at its standard path in this way."""
    include = f".include {FRAGMENT}\n"
    if reading is Reading.POINTED_AT:
        node.place(SYSTEM_CONFIG, system_config)
        return Host(node, openssl, FRAGMENT)
    text = include + system_config if reading is Reading.INCLUDED_FIRST else system_config + include
    node.place(SYSTEM_CONFIG, text)
    return Host(node, openssl)
