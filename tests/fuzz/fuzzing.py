"""Tries odd inputs on everything that reads what others wrote: ``make fuzz`` for a while, the tests for a moment.

An example may take a bounded time of the processor and a bounded memory. The smallest input that fails is saved.
"""

from __future__ import annotations

import ast
import contextlib
import faulthandler
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz_targets import TARGETS, Target
from hypothesis import HealthCheck, Phase, given, seed, settings

SECONDS_PER_EXAMPLE = 5.0
MEMORY_HEADROOM = 512 << 20
# The same for every target and machine, or a seed would not give the same inputs again.
EXAMPLES_PER_ROUND = 100
# A round that takes this long is stuck where no signal reaches it.
SECONDS_PER_ROUND = 600


class Stuck(BaseException):
    """An example used up its time; no Exception, so that nothing between here and there catches it."""


@dataclass
class Tried:
    """What became of a number of examples, and the last input that failed: the smallest one, if one did."""

    examples: int = 0
    failing: Any = None
    failure: BaseException | None = None


def _expire(number: int, frame: FrameType | None) -> None:
    raise Stuck(f"it took more than {SECONDS_PER_EXAMPLE:g} seconds of the processor")


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Run a block with a bounded time of the processor, since a loaded machine is no reason to fail."""
    previous = signal.signal(signal.SIGPROF, _expire)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_EXAMPLE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """Let the process take at most so much memory more than it has, where the system tells how much that is."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY_HEADROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def try_examples(target: Target, count: int, start: int, *, file: Path | None = None) -> Tried:
    """Try a number of examples, the same for the same start; what fails is saved in the file, the smallest last.

    A file beside it holds the input under trial, which is there still where the process was killed over it.
    """
    tried = Tried()
    in_flight = file.with_suffix(".in-flight") if file else None

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def each(value: Any) -> None:
        tried.examples += 1
        if in_flight is not None:
            in_flight.write_text(repr(value), encoding="utf-8")
        try:
            with bounded():
                target.check(value)
        except BaseException as error:
            if file is not None:
                if tried.failure is None:
                    print(f"\n{target.name} fails; looking for the smallest input that makes it fail", flush=True)
                file.write_text(repr(value) + "\n", encoding="utf-8")
            tried.failing, tried.failure = value, error
            raise

    try:
        with bounded_memory():
            each()
    except (Exception, Stuck) as error:
        tried.failure = error
    if in_flight is not None:
        in_flight.unlink(missing_ok=True)
    return tried


def explain(failure: BaseException) -> str:
    """Return what failed and where, without the machinery around it."""
    shown = traceback.extract_tb(failure.__traceback__)
    own = [frame for frame in shown if "hypothesis" not in frame.filename and frame.name != "wrapped_test"]
    return "".join(traceback.format_list(own)) + "".join(traceback.format_exception_only(failure))


@dataclass
class _Total:
    """What has been tried on one target so far."""

    target: Target
    examples: int = 0
    seconds: float = 0.0
    failed: bool = False

    def __str__(self) -> str:
        line = f"{self.target.name:<13} {self.examples:>7} examples {self.seconds:>7.1f} s"
        return f"{line}  FAILED" if self.failed else line


def fuzz(targets: Sequence[Target], *, seconds: float, start: int, folder: Path) -> int:
    """Try the targets in turn for so long; save what fails in the folder, print what was tried, return the status."""
    print(
        f"fuzzing {len(targets)} targets for {seconds:g} s; FUZZ_SEED={start} tries the same inputs again", flush=True
    )
    totals = [_Total(target) for target in targets]
    begin = time.monotonic()
    number = start
    while time.monotonic() - begin < seconds and not all(total.failed for total in totals):
        for total in totals:
            # Each target gets a round, however short the time.
            if not total.failed and (time.monotonic() - begin < seconds or not total.examples):
                _try_round(total, number, folder / f"{total.target.name}-{number}.txt")
        number += 1
    print("\n".join(map(str, totals)))
    examples, failed = sum(total.examples for total in totals), sum(total.failed for total in totals)
    print(f"{'all':<13} {examples:>7} examples {time.monotonic() - begin:>7.1f} s, {failed} targets failed")
    return 1 if failed else 0


def _try_round(total: _Total, number: int, file: Path) -> None:
    begin = time.monotonic()
    faulthandler.dump_traceback_later(SECONDS_PER_ROUND, file=2, exit=True)
    tried = try_examples(total.target, EXAMPLES_PER_ROUND, number, file=file)
    faulthandler.cancel_dump_traceback_later()
    total.examples += tried.examples
    total.seconds += time.monotonic() - begin
    if tried.failure is None:
        return
    total.failed = True
    print(f"{total.target.name} failed:\n{explain(tried.failure)}")
    print(f"the input is in {file}; make fuzz FUZZ_REPLAY={file} tries it again\n", flush=True)


def _replay(file: Path) -> int:
    target = next((target for target in TARGETS if re.fullmatch(rf"{target.name}-\d+\.txt", file.name)), None)
    if target is None or not file.is_file():
        print(f"{file} is no input that a run has saved: those are named TARGET-NUMBER.txt")
        return 2
    value = ast.literal_eval(file.read_text(encoding="utf-8"))
    try:
        with bounded_memory(), bounded():
            target.check(value)
    except (Exception, Stuck) as error:
        print(f"{target.name} failed:\n{explain(error)}")
        return 1
    print(f"{target.name} holds for the input in {file}")
    return 0


def main() -> int:
    """Run as the variables say; return the exit status."""
    if replayed := os.environ.get("FUZZ_REPLAY"):
        return _replay(Path(replayed))
    wanted = (os.environ.get("FUZZ_TARGETS") or "").split()
    targets = [target for target in TARGETS if not wanted or target.name in wanted]
    if unknown := set(wanted) - {target.name for target in targets}:
        print(f"no such targets: {', '.join(sorted(unknown))}; there are: {', '.join(each.name for each in TARGETS)}")
        return 2
    folder = Path(os.environ.get("FUZZ_FOLDER") or "fuzz-failures")
    folder.mkdir(exist_ok=True)
    start = os.environ.get("FUZZ_SEED")
    status = fuzz(
        targets,
        seconds=float(os.environ.get("FUZZ_SECONDS") or 60),
        start=int(start) if start else random.randrange(1 << 32),
        folder=folder,
    )
    with contextlib.suppress(OSError):
        folder.rmdir()
    return status


if __name__ == "__main__":
    sys.exit(main())
