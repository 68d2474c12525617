"""Spans of time as a policy writes them: 24h, 90m, 1h30m, 30s."""

from __future__ import annotations

import re

MAX_SECONDS = 10 * 365 * 86_400

_DURATION = re.compile(r"(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")


def parse_duration(text: str) -> int:
    """Return the seconds in hours, minutes and seconds, in that order, each at most once.

    Raises ValueError, with a clause for the reader, on anything else and on a span that is zero or over ten years.
    """
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError("is no duration like 24h, 90m, 1h30m or 30s")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if not 0 < total <= MAX_SECONDS:
        raise ValueError("must be more than zero and at most ten years")
    return total


def format_duration(seconds: int) -> str:
    """Return whole seconds the way a policy writes them."""
    hours, rest = divmod(max(seconds, 0), 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
