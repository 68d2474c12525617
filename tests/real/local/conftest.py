from __future__ import annotations

from pathlib import Path

import pytest
from sandbox import Sandbox, require_mount_namespaces


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    require_mount_namespaces()
    return Sandbox(tmp_path)
