"""What every part of the test suite shares: how a missing tool is treated, and how hard hypothesis tries."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("postgres_fixture",)

IN_CI = os.environ.get("CI") == "true"

# A loaded machine is no reason to fail, so no deadline and no complaint about slow data.
settings.register_profile("moderate", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("moderate"), max_examples=200, derandomize=True)
settings.load_profile("ci" if IN_CI else "moderate")


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the test with the reason; with CI=true, where everything is there, fail it."""
    if IN_CI:
        pytest.fail(f"nothing may be skipped with CI=true: {reason}", pytrace=False)
    pytest.skip(reason)


def needs(tool: str) -> str:
    """Return the path of a command, beside the interpreter or on PATH, or skip the test."""
    found = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if found is None:
        skip_or_fail(f"{tool} is not installed")
    return found


@pytest.fixture(scope="session", name="needs")
def _needs_as_fixture() -> Callable[[str], str]:
    return needs


@pytest.fixture(scope="session", name="skip_or_fail")
def _skip_or_fail_as_fixture() -> Callable[[str], NoReturn]:
    return skip_or_fail
