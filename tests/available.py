"""What a test needs of the machine, and what becomes of the test where it is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

IN_CI = os.environ.get("CI") == "true"


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
