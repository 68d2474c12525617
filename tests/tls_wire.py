"""What two TLS peers say to each other before encryption begins, read off the wire."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

_GROUPS = {
    0x0017: "secp256r1",
    0x0018: "secp384r1",
    0x0019: "secp521r1",
    0x001D: "x25519",
    0x001E: "x448",
    0x0100: "ffdhe2048",
    0x0101: "ffdhe3072",
    0x0102: "ffdhe4096",
    0x0103: "ffdhe6144",
    0x0104: "ffdhe8192",
    0x11EB: "SecP256r1MLKEM768",
    0x11EC: "X25519MLKEM768",
    0x11ED: "SecP384r1MLKEM1024",
    0x6399: "X25519Kyber768Draft00",
}
_HANDSHAKE_RECORD = 22
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_SUPPORTED_GROUPS, _KEY_SHARE = 10, 51
# RFC 8446 section 4.1.3: the random of a ServerHello that is really a HelloRetryRequest.
_RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
_SECONDS = 20


@dataclass(frozen=True)
class ClientHello:
    """What a client offers: its groups in order, and those of them it sends a key share for."""

    groups: tuple[str, ...]
    key_shares: tuple[str, ...]
    cipher_suites: tuple[int, ...]


@dataclass(frozen=True)
class ServerHello:
    """What a server answers: the group it picked, or asks for when it is a HelloRetryRequest."""

    group: str
    is_retry: bool


@dataclass(frozen=True)
class Exchange:
    """The unencrypted part of one connection."""

    client_hellos: tuple[ClientHello, ...]
    server_hellos: tuple[ServerHello, ...]

    @property
    def was_retried(self) -> bool:
        """Whether the server cost the client another round trip."""
        return any(hello.is_retry for hello in self.server_hellos)

    @property
    def group(self) -> str:
        """The group that was agreed on, or an empty string."""
        return next((hello.group for hello in self.server_hellos if not hello.is_retry), "")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def __bool__(self) -> bool:
        return bool(self._data)

    def take(self, length: int) -> bytes:
        taken, self._data = self._data[:length], self._data[length:]
        if len(taken) < length:
            raise ValueError("a TLS message ends too early")
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> _Reader:
        return _Reader(self.take(self.number(size)))

    def numbers(self) -> tuple[int, ...]:
        values = []
        while self:
            values.append(self.number(2))
        return tuple(values)


def client_hellos(stream: bytes) -> tuple[ClientHello, ...]:
    """Return every ClientHello in the bytes a client sent."""
    return tuple(_client_hello(body) for kind, body in _messages(stream) if kind == _CLIENT_HELLO)


def server_hellos(stream: bytes) -> tuple[ServerHello, ...]:
    """Return every ServerHello and HelloRetryRequest in the bytes a server sent."""
    return tuple(_server_hello(body) for kind, body in _messages(stream) if kind == _SERVER_HELLO)


def _messages(stream: bytes) -> Iterator[tuple[int, _Reader]]:
    handshake = b""
    while len(stream) >= 5:
        length = int.from_bytes(stream[3:5], "big")
        if stream[0] == _HANDSHAKE_RECORD:
            handshake += stream[5 : 5 + length]
        stream = stream[5 + length :]
    while len(handshake) >= 4:
        length = int.from_bytes(handshake[1:4], "big")
        yield handshake[0], _Reader(handshake[4 : 4 + length])
        handshake = handshake[4 + length :]


def _client_hello(body: _Reader) -> ClientHello:
    body.take(2 + 32)
    body.vector(1)
    cipher_suites = body.vector(2).numbers()
    body.vector(1)
    extensions = _extensions(body)
    groups: tuple[str, ...] = ()
    shares: list[str] = []
    if _SUPPORTED_GROUPS in extensions:
        groups = tuple(_name(number) for number in extensions[_SUPPORTED_GROUPS].vector(2).numbers())
    if _KEY_SHARE in extensions:
        entries = extensions[_KEY_SHARE].vector(2)
        while entries:
            shares.append(_name(entries.number(2)))
            entries.vector(2)
    return ClientHello(groups, tuple(shares), cipher_suites)


def _server_hello(body: _Reader) -> ServerHello:
    body.take(2)
    is_retry = body.take(32) == _RETRY_RANDOM
    body.vector(1)
    body.take(3)
    extensions = _extensions(body)
    return ServerHello(_name(extensions[_KEY_SHARE].number(2)) if _KEY_SHARE in extensions else "", is_retry)


def _extensions(body: _Reader) -> dict[int, _Reader]:
    found = {}
    if body:
        entries = body.vector(2)
        while entries:
            kind = entries.number(2)
            found[kind] = entries.vector(2)
    return found


def _name(number: int) -> str:
    return _GROUPS.get(number, f"0x{number:04x}")


class Tap:
    """A relay on loopback in front of one server, which keeps what passes until ``exchanges`` is asked."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._recorded: list[tuple[bytearray, bytearray]] = []
        self._connections: list[socket.socket] = []
        self._relays: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)

    @property
    def port(self) -> int:
        """Where clients connect to."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Tap:
        self._acceptor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Closing alone would leave the thread in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(_SECONDS)
        for relay in self._relays:
            relay.join(_SECONDS)
        for connection in self._connections:
            connection.close()

    def exchanges(self) -> tuple[Exchange, ...]:
        """Return what was said on each connection; call it after the tap is closed."""
        return tuple(
            Exchange(client_hellos(bytes(sent)), server_hellos(bytes(answered))) for sent, answered in self._recorded
        )

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.settimeout(_SECONDS)
            server = socket.create_connection(("127.0.0.1", self._server_port), _SECONDS)
            self._connections += (client, server)
            sent, answered = bytearray(), bytearray()
            self._recorded.append((sent, answered))
            for source, target, record in ((client, server, sent), (server, client, answered)):
                relay = threading.Thread(target=_relay, args=(source, target, record), daemon=True)
                self._relays.append(relay)
                relay.start()


def _relay(source: socket.socket, target: socket.socket, record: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            record += data
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
