"""Points in time as protobuf has them: whole seconds and nanoseconds, which a datetime cannot hold."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY = 86_400
NANOS_PER_SECOND = 1_000_000_000

_MIN_SECONDS = (1 - _EPOCH_DAY) * _DAY
_MAX_SECONDS = (date(9999, 12, 31).toordinal() - _EPOCH_DAY + 1) * _DAY - 1

_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


class _Parts(NamedTuple):
    seconds: int
    nanos: int = 0


class Timestamp(_Parts):
    """Seconds since 1970-01-01T00:00:00Z and the nanoseconds (0 to 999,999,999) after them.

    Raises ValueError outside the years 0001 to 9999.
    """

    __slots__ = ()

    def __new__(cls, seconds: int, nanos: int = 0) -> Timestamp:
        """Return the time; a tuple has no other place to refuse what no plan can hold."""
        if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
            raise ValueError("lies outside the years 0001 to 9999 in UTC")
        if not 0 <= nanos < NANOS_PER_SECOND:
            raise ValueError("has nanoseconds outside 0 to 999,999,999")
        return super().__new__(cls, seconds, nanos)

    @classmethod
    def from_nanoseconds(cls, nanoseconds: int) -> Timestamp:
        """Return the time that many nanoseconds after the epoch."""
        return cls(*divmod(nanoseconds, NANOS_PER_SECOND))

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """Read RFC 3339 text with up to nine fractional digits and ``Z`` or an offset (SPEC 2).

        Raises ValueError, with a sentence for the reader, on anything else.
        """
        match = _RFC3339.fullmatch(text)
        if match is None:
            raise ValueError("is no RFC 3339 time like 2026-01-02T03:04:05.678901234Z")
        year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError("has an hour, minute or second out of range")
        try:
            days = date(year, month, day).toordinal() - _EPOCH_DAY
        except ValueError:
            raise ValueError("names a day that does not exist") from None
        seconds = days * _DAY + hour * 3600 + minute * 60 + second
        sign, offset_hours, offset_minutes = match.group(8, 9, 10)
        if sign is not None:
            # Up to +24:60, as the Go tools read it.
            if int(offset_hours) > 24 or int(offset_minutes) > 60:
                raise ValueError("has a UTC offset out of range")
            offset = int(offset_hours) * 3600 + int(offset_minutes) * 60
            seconds += offset if sign == "-" else -offset
        return cls(seconds, int((match.group(7) or "").ljust(9, "0")))

    def _whole_seconds(self) -> str:
        days, rest = divmod(self.seconds, _DAY)
        day = date.fromordinal(days + _EPOCH_DAY)
        hour, rest = divmod(rest, 3600)
        minute, second = divmod(rest, 60)
        return f"{day.year:04d}-{day.month:02d}-{day.day:02d}T{hour:02d}:{minute:02d}:{second:02d}"

    def to_json_text(self) -> str:
        """Return RFC 3339 in UTC with 0, 3, 6 or 9 fractional digits, as protobuf JSON writes it."""
        digits = f"{self.nanos:09d}"
        if digits.endswith("000000000"):
            fraction = ""
        elif digits.endswith("000000"):
            fraction = "." + digits[:3]
        elif digits.endswith("000"):
            fraction = "." + digits[:6]
        else:
            fraction = "." + digits
        return f"{self._whole_seconds()}{fraction}Z"

    def to_canonical_text(self) -> str:
        """Return RFC 3339 in UTC with trailing zeros of the fraction dropped (SPEC 3)."""
        fraction = f"{self.nanos:09d}".rstrip("0")
        return f"{self._whole_seconds()}{'.' + fraction if fraction else ''}Z"
