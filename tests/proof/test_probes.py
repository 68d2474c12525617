"""Ready probes against real sockets: only an answer counts, and none is waited for without end."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pqcota_provision.proof.probes import probe


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket], None], host: str = "127.0.0.1") -> Iterator[int]:
    """A server on loopback that treats each connection as the test says."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        stopped = threading.Event()

        def serve() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stopped.set()
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def http(status: str) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())

    return answer


def test_a_port_that_accepts_answers() -> None:
    with serving(lambda _: None) as port:
        assert probe(f"tcp://127.0.0.1:{port}") is None


def test_an_ipv6_address_can_be_probed() -> None:
    with serving(lambda _: None, "::1") as port:
        assert probe(f"tcp://[::1]:{port}") is None


def test_a_closed_port_does_not_answer() -> None:
    with serving(lambda _: None) as port:
        pass
    assert probe(f"tcp://127.0.0.1:{port}") == "cannot be reached: Connection refused"


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "302 Found"])
def test_a_good_http_status_answers(status: str) -> None:
    with serving(http(status)) as port:
        assert probe(f"http://127.0.0.1:{port}/ready?full=1") is None


@pytest.mark.parametrize("status", ["404 Not Found", "503 Service Unavailable"])
def test_a_bad_http_status_is_no_answer(status: str) -> None:
    with serving(http(status)) as port:
        assert probe(f"http://127.0.0.1:{port}/") == f"answers with the status {status[:3]}"


def test_the_path_and_query_reach_the_service() -> None:
    asked: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        asked.append(connection.recv(4096))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with serving(answer) as port:
        assert probe(f"http://127.0.0.1:{port}/ready?full=1") is None
    assert asked[0].startswith(b"GET /ready?full=1 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "said", [pytest.param(b"SSH-2.0-x\r\n", id="other protocol"), pytest.param(b"", id="closes at once")]
)
def test_what_is_no_http_is_no_answer(said: bytes) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(said)

    with serving(answer) as port:
        assert probe(f"http://127.0.0.1:{port}/") == "answers with something that is no HTTP"


def test_a_service_that_says_nothing_is_given_up_on() -> None:
    held = threading.Event()

    def hold(_: socket.socket) -> None:
        held.wait(10)

    with serving(hold) as port:
        assert probe(f"http://127.0.0.1:{port}/", seconds=0.2) == "gave no answer within 0.2 s"
        held.set()


def test_a_service_that_drips_its_answer_is_given_up_on() -> None:
    held = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.recv(4096)
        while not held.wait(0.05):
            connection.sendall(b"H")

    with serving(drip) as port:
        assert probe(f"http://127.0.0.1:{port}/", seconds=0.3) == "gave no answer within 0.3 s"
        held.set()


def test_a_host_that_does_not_exist_cannot_be_reached() -> None:
    answer = probe("tcp://nowhere.invalid:1", seconds=5)
    assert answer is not None
    assert answer.startswith(("cannot be reached: ", "gave no answer"))


def test_https_with_a_certificate_of_the_services_own_answers(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path))

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            http("200 OK")(secured)

    with serving(answer) as port:
        assert probe(f"https://127.0.0.1:{port}/") is None


def test_https_where_no_tls_is_spoken_is_no_answer() -> None:
    with serving(lambda connection: connection.sendall(b"plain text\r\n")) as port:
        answer = probe(f"https://127.0.0.1:{port}/")
    assert answer is not None
    assert answer.startswith("cannot be reached: ")


def _certificate(directory: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "payments")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("192.0.2.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "service.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
