"""What every part of the test suite shares: how a missing tool is treated, and how hard hypothesis tries."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, Phase, settings

from available import IN_CI, needs, skip_or_fail

pytest_plugins = ("postgres_fixture",)

# A loaded machine is no reason to fail, so no deadline and no complaint about slow data.
settings.register_profile("moderate", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("moderate"), max_examples=200, derandomize=True)
# Every mutant has to meet the same few examples, or the verdict on it would be chance.
settings.register_profile(
    "mutants",
    settings.get_profile("moderate"),
    max_examples=10,
    derandomize=True,
    database=None,
    # One that fails is enough; the smallest one is not asked for.
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("ci" if IN_CI else "moderate")


@pytest.fixture(scope="session", name="needs")
def _needs_as_fixture() -> Callable[[str], str]:
    return needs


@pytest.fixture(scope="session", name="skip_or_fail")
def _skip_or_fail_as_fixture() -> Callable[[str], NoReturn]:
    return skip_or_fail
