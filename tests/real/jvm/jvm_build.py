"""Compiles the Java parts of the tests and packs them."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from available import needs
from node_view import TIMEOUT

SOURCES = Path(__file__).parent / "java"
PROVIDER_SOURCE = SOURCES / "com" / "acme" / "jce" / "AcmeProvider.java"
PROBE_SOURCE = SOURCES / "Probe.java"


def compile_java(source: Path, classes: Path) -> Path:
    """Compile a source file for JDK 17 and later, and return the directory of its classes."""
    command = [needs("javac"), "--release", "17", "-Xlint:all", "-Werror", "-d", str(classes), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert result.returncode == 0, result.stderr
    return classes


def make_jar(path: Path, classes: Path, manifest: str = "", newer: Mapping[int, Path] | None = None) -> Path:
    """Write a JAR of compiled classes; ``newer`` are other classes by the JDK version from which they count."""
    roots = {"": classes, **{f"META-INF/versions/{version}/": found for version, found in (newer or {}).items()}}
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\n{manifest}\n")
        for prefix, root in roots.items():
            for file in sorted(root.rglob("*.class")):
                jar.write(file, prefix + str(file.relative_to(root)))
    return path
