"""The conformance cases: from the folder beside the checkout where it is there, else from the copy in tests/data."""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from pqcota_provision.plan.keys import PrivateKey
from pqcota_provision.plan.timestamp import Timestamp

CHECKOUT = Path(__file__).resolve().parents[1]
BESIDE = CHECKOUT.parent / "shared" / "conformance"
COPY = CHECKOUT / "tests" / "data" / "conformance"

APPROVER = "reviewer-1"
CLOCK = Timestamp.parse("2026-01-02T03:04:05.678901234Z")


def fixed_key() -> PrivateKey:
    """The key pair that signed the cases; it guards nothing."""
    return PrivateKey(bytes(range(0x01, 0x21)))


@lru_cache
def conformance_cases(name: str) -> tuple[dict[str, Any], ...]:
    """Every case of ``parsing`` or ``playbooks``."""
    folder = BESIDE if BESIDE.is_dir() else COPY
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return tuple(json.loads(line) for line in lines if line)


def plan_bytes(case: dict[str, Any]) -> bytes:
    """The input of a case, byte for byte."""
    return base64.b64decode(case["plan_base64"]) if "plan_base64" in case else case["plan"].encode("utf-8")
