from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from documents import PROJECT, matches, read_steps, run_steps

from available import skip_or_fail

# Each of these is played through, with what it needs beside it, by a test of its own.
ELSEWHERE = {"docs/operations.md", "docs/proofs.md"}

DOCUMENTS = sorted(
    str(path.relative_to(PROJECT))
    for path in (PROJECT / "README.md", *(PROJECT / "docs").glob("*.md"), *(PROJECT / "examples").rglob("*.md"))
    if str(path.relative_to(PROJECT)) not in ELSEWHERE
)


@pytest.mark.real
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_of_a_document_does_what_it_says(document: str, tmp_path: Path) -> None:
    steps = read_steps(PROJECT / document)
    if not steps:
        return
    if os.geteuid() and subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        skip_or_fail("this user cannot make a private mount namespace")
    folder = tmp_path / "work"
    folder.mkdir()
    wrong = [
        f"{document}:{step.line}: $ {step.command}\n" + "\n".join(printed)
        for step, printed in zip(steps, run_steps(steps, folder), strict=True)
        if step.output is not None and not matches(step.output, printed)
    ]
    assert not wrong, "\n\n".join(wrong)


def test_a_script_of_a_document_that_fails_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with pytest.raises(AssertionError, match="ended early"):
        run_steps(read_steps(_failing(tmp_path)), folder)


def _failing(folder: Path) -> Path:
    document = folder / "failing.md"
    document.write_text("```sh\nfalse\n```\n", encoding="utf-8")
    return document


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        (("a", "b"), ["a", "b"], True),
        (("a",), ["a", "b"], False),
        (("a", "...", "c"), ["a", "b", "b", "c"], True),
        (("a", "..."), ["b"], False),
        (("x=…, done",), ["x=123, done"], True),
        (("x=…, done",), ["x=123, failed"], False),
        (("a", ""), ["a"], True),
    ],
)
def test_output_that_differs_from_the_document_is_noticed(
    expected: tuple[str, ...], printed: list[str], equal: bool
) -> None:
    assert matches(expected, printed) is equal
