"""Times as protobuf has them: nanoseconds survive, and nothing but RFC 3339 is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_strategies import FIRST_SECOND, LAST_SECOND, timestamps

from pqcota_provision.plan.timestamp import Timestamp


@given(time=timestamps)
def test_nanoseconds_survive_writing_and_reading(time: Timestamp) -> None:
    assert Timestamp.parse(time.to_json_text()) == time
    assert Timestamp.parse(time.to_canonical_text()) == time


@given(
    time=st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)),
    minutes=st.integers(-23 * 60 - 59, 23 * 60 + 59),
)
def test_an_offset_is_turned_into_utc(time: datetime, minutes: int) -> None:
    local = time.astimezone(timezone(timedelta(minutes=minutes)))
    sign, ahead = ("-", -minutes) if minutes < 0 else ("+", minutes)
    text = f"{local.replace(tzinfo=None).isoformat()}{sign}{ahead // 60:02d}:{ahead % 60:02d}"
    expected = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    assert Timestamp.parse(text) == Timestamp.from_nanoseconds(expected)


@given(first=timestamps, second=timestamps)
def test_times_sort_by_when_they_are(first: Timestamp, second: Timestamp) -> None:
    nanoseconds = [time.seconds * 10**9 + time.nanos for time in (first, second)]
    assert (first < second) == (nanoseconds[0] < nanoseconds[1])
    assert [Timestamp.from_nanoseconds(value) for value in nanoseconds] == [first, second]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        pytest.param("1970-01-01T00:00:00Z", Timestamp(0), id="epoch"),
        pytest.param("1969-12-31T23:59:59.999999999Z", Timestamp(-1, 999_999_999), id="just-before-epoch"),
        pytest.param("0001-01-01T00:00:00Z", Timestamp(FIRST_SECOND), id="first"),
        pytest.param("9999-12-31T23:59:59.999999999Z", Timestamp(LAST_SECOND, 999_999_999), id="last"),
        pytest.param("0001-01-01T23:59:00+23:59", Timestamp(FIRST_SECOND), id="first-by-offset"),
        pytest.param("9999-12-31T00:00:59-23:59", Timestamp(LAST_SECOND), id="last-by-offset"),
        pytest.param("2024-02-29T00:00:00Z", Timestamp(1_709_164_800), id="leap-day"),
        pytest.param("2026-01-03T04:04:05+24:60", Timestamp(1_767_323_045), id="largest-offset-the-go-tools-read"),
        pytest.param("2026-01-02T03:04:05.5-00:00", Timestamp(1_767_323_045, 500_000_000), id="minus-zero-offset"),
    ],
)
def test_a_time_is_read_to_the_nanosecond(text: str, time: Timestamp) -> None:
    assert Timestamp.parse(text) == time


@pytest.mark.parametrize(
    ("nanos", "in_json", "canonical"),
    [
        pytest.param(0, "", "", id="none"),
        pytest.param(500_000_000, ".500", ".5", id="milliseconds"),
        pytest.param(678_900_000, ".678900", ".6789", id="microseconds"),
        pytest.param(678_901_230, ".678901230", ".67890123", id="nanoseconds"),
        pytest.param(1, ".000000001", ".000000001", id="one-nanosecond"),
        pytest.param(1_000, ".000001", ".000001", id="one-microsecond"),
        pytest.param(1_000_000, ".001", ".001", id="one-millisecond"),
    ],
)
def test_the_fraction_is_written_as_the_contract_has_it(nanos: int, in_json: str, canonical: str) -> None:
    time = Timestamp(0, nanos)
    assert time.to_json_text() == f"1970-01-01T00:00:00{in_json}Z"
    assert time.to_canonical_text() == f"1970-01-01T00:00:00{canonical}Z"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2026-01-02T03:04:05", id="no-zone"),
        pytest.param("2026-01-02 03:04:05Z", id="space-for-T"),
        pytest.param("2026-01-02t03:04:05Z", id="lower-case-t"),
        pytest.param("2026-01-02T03:04:05z", id="lower-case-z"),
        pytest.param("2026-01-02T03:04:05.Z", id="dot-without-digits"),
        pytest.param("2026-01-02T03:04:05,5Z", id="comma"),
        pytest.param("2026-01-02T03:04:05.0000000000Z", id="ten-digits"),
        pytest.param("2026-01-02T03:04:05+0100", id="offset-without-colon"),
        pytest.param("2026-01-02T03:04:05+25:00", id="offset-of-25-hours"),
        pytest.param("2026-01-02T03:04:05+01:61", id="offset-of-61-minutes"),
        pytest.param("2026-01-02T03:04:05\N{MINUS SIGN}01:00", id="typographic-minus"),
        pytest.param("2026-01-02T03:04:60Z", id="leap-second"),
        pytest.param("2026-01-02T24:00:00Z", id="hour-24"),
        pytest.param("2025-02-29T00:00:00Z", id="no-leap-day"),
        pytest.param("1900-02-29T00:00:00Z", id="no-leap-century"),
        pytest.param("0000-01-01T00:00:00Z", id="year-0"),
        pytest.param("10000-01-01T00:00:00Z", id="year-10000"),
        pytest.param("0001-01-01T00:00:00+00:01", id="before-the-first-by-offset"),
        pytest.param("9999-12-31T23:59:59-00:01", id="after-the-last-by-offset"),
        pytest.param("2026-01-02T03:04:05Z\n", id="trailing-newline"),
        pytest.param(" 2026-01-02T03:04:05Z", id="leading-space"),
        pytest.param("\u0662026-01-02T03:04:05Z", id="arabic-digit"),
        pytest.param("", id="empty"),
    ],
)
def test_what_is_no_rfc_3339_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|names|lies) "):
        Timestamp.parse(text)


@pytest.mark.parametrize(
    ("seconds", "nanos"),
    [
        pytest.param(FIRST_SECOND - 1, 0, id="before-year-1"),
        pytest.param(LAST_SECOND + 1, 0, id="after-year-9999"),
        pytest.param(0, -1, id="negative-nanoseconds"),
        pytest.param(0, 1_000_000_000, id="a-whole-second-of-nanoseconds"),
    ],
)
def test_a_time_that_no_plan_can_hold_is_never_made(seconds: int, nanos: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        Timestamp(seconds, nanos)
