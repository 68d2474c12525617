"""The list of argued mutants: what it says is about the code as it is, and it excuses nothing else."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from check_mutants import ARGUED, PROJECT, Change, read_argued, read_change

SHOWN = """\
# pqcota_provision.plan.keys.xǁPublicKeyǁparse__mutmut_4: survived
--- src/pqcota_provision/plan/keys.py
+++ src/pqcota_provision/plan/keys.py
@@ -1,5 +1,5 @@
 def parse(cls, text: str) -> PublicKey:
-    data = decode_base64(text.strip())
+    data = decode_base64(text)
     return cls(data)
"""
CHANGE = Change(
    "pqcota_provision.plan.keys.PublicKey.parse",
    ("- data = decode_base64(text.strip())", "+ data = decode_base64(text)"),
)


def mutated_files() -> list[str]:
    settings: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    files: list[str] = settings["tool"]["mutmut"]["only_mutate"]
    return files


def test_a_mutant_is_known_by_what_it_changes() -> None:
    assert read_change("pqcota_provision.plan.keys.xǁPublicKeyǁparse__mutmut_4", SHOWN) == CHANGE
    assert read_change("pqcota_provision.plan.names.x__refuse_ipv6__mutmut_12", "").function == (
        "pqcota_provision.plan.names._refuse_ipv6"
    )


def test_an_argument_covers_the_change_it_was_written_for_only() -> None:
    argued = set(
        read_argued(f"# why\n\n# because\n{CHANGE.function}\n-   data = decode_base64(text.strip())\n+ data = x\n")
    )
    assert argued == {Change(CHANGE.function, (CHANGE.lines[0], "+ data = x"))}
    assert CHANGE not in argued


@pytest.mark.parametrize(
    "change", [pytest.param(change, id=change.function) for change in read_argued(ARGUED.read_text(encoding="utf-8"))]
)
def test_an_argued_mutant_changes_code_that_is_there(change: Change) -> None:
    [file] = [
        file
        for file in mutated_files()
        if change.function.startswith(file.removeprefix("src/").removesuffix(".py").replace("/", ".") + ".")
    ]
    code = {" ".join(line.split()) for line in (PROJECT / file).read_text(encoding="utf-8").splitlines()}
    assert {line[2:] for line in change.lines if line.startswith("-")} <= code
    assert any(line.startswith("+") for line in change.lines)


def test_every_file_that_is_to_be_mutated_exists() -> None:
    assert all((PROJECT / file).is_file() for file in mutated_files())
