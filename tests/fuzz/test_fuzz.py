"""A moment of what ``make fuzz`` does for long, with the same inputs every time."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from fuzz_targets import TARGETS, Target
from fuzzing import MEMORY_HEADROOM, SECONDS_PER_EXAMPLE, Stuck, fuzz, try_examples
from hypothesis import strategies as st

from available import skip_or_fail
from conformance_cases import CHECKOUT

EXAMPLES = 200


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_input_brings_out_a_traceback_a_hang_or_an_unprintable_message(target: Target) -> None:
    tried = try_examples(target, EXAMPLES, start=1)
    assert tried.examples >= EXAMPLES // 2
    if tried.failure is not None:
        raise AssertionError(f"{target.name} fails for {tried.failing!r}") from tried.failure


def test_the_documentation_names_every_target() -> None:
    documented = (CHECKOUT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert [target.name for target in TARGETS if f"`{target.name}`" not in documented] == []


def _refuse_long(text: str) -> None:
    if len(text) > 3:
        raise ValueError("too long")


def _never_end(text: str) -> None:
    while len(text) > 3:
        time.sleep(0)


def _grow(text: str) -> None:
    assert bytearray(2 * MEMORY_HEADROOM + len(text))


def test_the_smallest_failing_input_is_saved_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = Target("broken", st.text(), _refuse_long)
    assert fuzz([target], seconds=60, start=1, folder=tmp_path) == 1
    (file,) = tmp_path.iterdir()
    assert ast.literal_eval(file.read_text(encoding="utf-8")) == "0000"
    said = capsys.readouterr().out
    assert "ValueError: too long" in said
    assert str(file) in said


def test_an_input_that_never_ends_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzzing.SECONDS_PER_EXAMPLE", SECONDS_PER_EXAMPLE / 50)
    tried = try_examples(Target("endless", st.text(), _never_end), EXAMPLES, start=1)
    assert isinstance(tried.failure, Stuck)
    assert len(tried.failing) > 3


def test_an_input_that_fills_the_memory_is_noticed() -> None:
    if not Path("/proc/self/statm").exists():
        skip_or_fail("this system does not tell how much memory a process has")
    assert isinstance(try_examples(Target("growing", st.text(), _grow), 1, start=1).failure, MemoryError)


def test_a_run_without_failures_ends_well_and_leaves_no_file(tmp_path: Path) -> None:
    assert fuzz([Target("sound", st.integers(), int)], seconds=0, start=1, folder=tmp_path) == 0
    assert not list(tmp_path.iterdir())
