"""No test of a command sees a variable of the suite that it did not set itself."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_variables_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if "PQCOTA" in name:
            monkeypatch.delenv(name)
