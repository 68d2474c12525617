"""A real JVM that loaded a provider from its JAR, as the argument file makes it."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from proving_lab import HOUR, Lab, open_lab

from pqcota_provision.proof.look import look_at

_PROVIDER = "public class AcmeProvider { public static int answer() { return 42; } }\n"
_SERVICE = """
public class Service {
    public static void main(String[] arguments) throws Exception {
        Class.forName("AcmeProvider", true, null);
        System.out.println("loaded");
        System.in.read();
    }
}
"""


@pytest.fixture
def lab(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    needs: Callable[[str], str],
    skip_or_fail: Callable[[str], NoReturn],
) -> Iterator[Lab]:
    with open_lab(tmp_path, tmp_path_factory, needs, skip_or_fail) as lab:
        yield lab


def test_a_jar_that_a_jvm_loaded_is_evidence_though_it_was_replaced_since(
    lab: Lab, tmp_path: Path, needs: Callable[[str], str]
) -> None:
    java, javac, jar = needs("java"), needs("javac"), needs("jar")
    for name, source in (("AcmeProvider", _PROVIDER), ("Service", _SERVICE)):
        (tmp_path / f"{name}.java").write_text(source)
    subprocess.run([javac, "AcmeProvider.java", "Service.java"], cwd=tmp_path, check=True, capture_output=True)
    module = lab.staging / "acme.jar"
    subprocess.run([jar, "cf", str(module), "AcmeProvider.class"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "AcmeProvider.class").unlink()
    loaded = hashlib.sha256(module.read_bytes()).hexdigest()
    service = lab.service.model_copy(update={"module": str(module), "provider": "acme"})

    jvm = subprocess.Popen(
        [java, f"-Xbootclasspath/a:{module}", "-cp", str(tmp_path), "Service"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert jvm.stdout is not None
        assert jvm.stdout.readline() == b"loaded\n"
        lab.systemd.started("payments.service", jvm.pid)
        lab.stage("second", "acme.jar")
        lab.let_pass(2 * HOUR)
        evidence = look_at(service, HOUR, lab.node, lambda _: None).evidence
    finally:
        jvm.communicate(b"\n")
    assert evidence is not None
    assert evidence.sha256 == loaded
