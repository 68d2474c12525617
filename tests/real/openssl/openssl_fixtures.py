"""Fixtures of the tests against real OpenSSL; each test module names this file in ``pytest_plugins``."""

from __future__ import annotations

import datetime
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from openssl_host import Certificate, Host, OpenSsl, Server, tls_server

from available import needs, skip_or_fail
from node_view import TIMEOUT, NodeView, require_node_view

_LIBRARY_VERSION = re.compile(r"Library: OpenSSL (\d+)\.(\d+)\.")
_PROVIDER_SOURCE = Path(__file__).parent / "group_provider.c"
_MODULE_VARIANTS = {"plain": (), "groups": ("-DWITH_GROUPS",), "failing": ("-DINIT_FAILS",)}


@pytest.fixture(scope="session")
def openssl_directory() -> Iterator[Path]:
    """A directory that every user of the machine can read."""
    with TemporaryDirectory(prefix="pqcota-openssl-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory


@pytest.fixture(scope="session")
def openssl_3_0() -> OpenSsl:
    """The system's own OpenSSL, of the versions that PROVIDER_INJECT is for."""
    version = _version({})
    if not (3, 0) <= version <= (3, 4):
        skip_or_fail(f"the system's OpenSSL is {version[0]}.{version[1]}, not one of 3.0 to 3.4")
    return OpenSsl(version, {})


@pytest.fixture(scope="session")
def openssl_3_5(openssl_directory: Path) -> OpenSsl:
    """The OpenSSL inside psycopg's binary wheel, put under the system's commands."""
    found = importlib.util.find_spec("psycopg_binary")
    bundled = Path(found.origin).parent.with_name("psycopg_binary.libs") if found and found.origin else Path()
    libraries = openssl_directory / "openssl-3.5"
    libraries.mkdir(mode=0o755)
    for name in ("libcrypto", "libssl"):
        files = sorted(bundled.glob(f"{name}-*.so.3")) if found else []
        if not files:
            skip_or_fail(f"psycopg's binary wheel brings no {name}.so.3")
        # Under the bundled name too, since the bundled libssl asks for its libcrypto by it.
        shutil.copyfile(files[0], libraries / files[0].name)
        (libraries / f"{name}.so.3").symlink_to(files[0].name)
    environment = {"LD_LIBRARY_PATH": str(libraries)}
    return OpenSsl(_version(environment), environment)


@pytest.fixture(params=["3.0", "3.5"])
def openssl(request: pytest.FixtureRequest) -> OpenSsl:
    """Each OpenSSL in turn."""
    chosen: OpenSsl = request.getfixturevalue(f"openssl_{request.param.replace('.', '_')}")
    return chosen


@pytest.fixture(scope="session")
def openssl_mounts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip what needs private mounts where the machine allows none."""
    require_node_view(tmp_path_factory.mktemp("mounts"))


@pytest.fixture
def node(tmp_path: Path, openssl_mounts: None) -> NodeView:
    """A node on which nothing has been placed yet."""
    return NodeView(tmp_path)


@pytest.fixture(scope="session")
def certificate(openssl_directory: Path) -> Certificate:
    """A certificate with an EC key, as most servers have by now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(openssl_directory / "certificate.pem", openssl_directory / "key.pem")
    made.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made


@pytest.fixture(scope="session")
def modules(openssl_directory: Path) -> dict[str, bytes]:
    """The test provider, compiled: plain, with TLS groups, and one that fails to start; and a file that is none."""
    built = {"corrupt": b"no shared library\n"}
    for variant, options in _MODULE_VARIANTS.items():
        target = openssl_directory / f"{variant}.so"
        command = [needs("gcc"), "-shared", "-fPIC", *options, "-o", str(target), str(_PROVIDER_SOURCE)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if "openssl/" in result.stderr and "No such file" in result.stderr:
            skip_or_fail("OpenSSL's headers are not installed")
        assert result.returncode == 0, result.stderr
        built[variant] = target.read_bytes()
    return built


@pytest.fixture(scope="session")
def restricted_server(
    openssl_3_5: OpenSsl, certificate: Certificate, tmp_path_factory: pytest.TempPathFactory, openssl_mounts: None
) -> Iterator[Callable[[str], Server]]:
    """Return a function that gives a TLS 1.3 server which knows only the named groups."""
    host = Host(NodeView(tmp_path_factory.mktemp("servers")), openssl_3_5, "/dev/null")
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def serve(groups: str) -> Server:
            if groups not in running:
                running[groups] = stack.enter_context(tls_server(host, certificate, "-tls1_3", "-groups", groups))
            return running[groups]

        yield serve


def _version(environment: dict[str, str]) -> tuple[int, int]:
    result = subprocess.run(
        [needs("openssl"), "version"], env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    match = _LIBRARY_VERSION.search(result.stdout)
    assert match, result.stdout
    return int(match.group(1)), int(match.group(2))
