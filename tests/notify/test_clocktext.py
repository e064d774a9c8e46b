from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.notify.clocktext import NS_MAX, day_number, instant_text, offset_text, seconds_text

S = 10**9


@pytest.mark.parametrize(
    ("ns", "seconds", "instant"),
    [
        (0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        (1_771_786_703 * S, "2026-02-22T18:58:23Z", "2026-02-22T18:58:23Z"),
        (1_771_786_703 * S + 999_999_999, "2026-02-22T18:58:23Z", "2026-02-22T18:58:23.999999999Z"),
        (1_771_786_703 * S + 120_000_000, "2026-02-22T18:58:23Z", "2026-02-22T18:58:23.120Z"),
        (1_771_786_703 * S + 1_000, "2026-02-22T18:58:23Z", "2026-02-22T18:58:23.000001Z"),
        (1_771_786_703 * S + 1, "2026-02-22T18:58:23Z", "2026-02-22T18:58:23.000000001Z"),
        (-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999999Z"),
        (253_402_300_799 * S, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        (253_402_300_800 * S, "+10000-01-01T00:00:00Z", "+10000-01-01T00:00:00Z"),
        (NS_MAX, "+262142-12-31T23:59:59Z", "+262142-12-31T23:59:59.999999999Z"),
        (-62_167_219_200 * S, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        (-62_167_219_201 * S, "-0001-12-31T23:59:59Z", "-0001-12-31T23:59:59Z"),
    ],
)
def test_texts(ns: int, seconds: str, instant: str) -> None:
    assert seconds_text(ns) == seconds
    assert instant_text(ns) == instant
    assert offset_text(ns) == instant.removesuffix("Z") + "+00:00"


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59)))  # noqa: DTZ001
def test_as_datetime_writes_it(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC)
    micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert seconds_text(micros * 1_000) == f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}Z"
    assert offset_text(micros * 1_000).ljust(32, "0")[:19] == moment.isoformat()[:19]


@given(st.dates())
def test_days_are_counted_as_dates_count_them(day: date) -> None:
    assert day_number(day.year, day.month, day.day) == (day - date(1970, 1, 1)).days
    assert day_number(day.year + 400_000, day.month, day.day) == (day - date(1970, 1, 1)).days + 146_097_000


@pytest.mark.parametrize(
    ("year", "month", "day"), [(2023, 2, 29), (2024, 2, 30), (1900, 2, 29), (2024, 13, 1), (2024, 0, 1), (2024, 1, 0)]
)
def test_days_that_are_not(year: int, month: int, day: int) -> None:
    assert day_number(year, month, day) is None


def test_leap_days() -> None:
    for year in (0, 4, 2000, 2024, 10_000, 262_140):
        assert day_number(year, 2, 29) is not None
