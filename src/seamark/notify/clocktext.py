"""Times as the notify surface writes and reads them: always UTC, from nanoseconds since the epoch.

The contract knows years from -262143 to 262142, so this counts days itself; `datetime` ends with the year 9999. The calendar
repeats every 400 years, so any year is read and written through one near 2000.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from seamark import limits
from seamark.clock import NS_PER_MS, NS_PER_SECOND

DAY_SECONDS = 86_400
YEAR_MAX = 262_142
_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
_NEAR = 2_000  # the cycle that `date` does the work in
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_NEAR_DAY = date(_NEAR, 1, 1).toordinal()


def day_number(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01, None when there is no such day."""
    cycles, offset = divmod(year - _NEAR, _CYCLE_YEARS)
    try:
        near = date(_NEAR + offset, month, day)
    except ValueError:
        return None
    return near.toordinal() - _EPOCH_DAY + cycles * _CYCLE_DAYS


NS_MAX = ((day_number(YEAR_MAX + 1, 1, 1) or 0) * DAY_SECONDS) * NS_PER_SECOND - 1
"""The last moment that the contract can name."""


def seconds_text(ns: int) -> str:
    """`2026-02-25T18:58:23Z`, for everything but CloudEvents."""
    return f"{_second(ns // NS_PER_SECOND)}Z"


def instant_text(ns: int) -> str:
    """With a fraction of as many digits as are needed out of 0, 3, 6 and 9, for CloudEvents."""
    seconds, rest = divmod(ns, NS_PER_SECOND)
    return f"{_second(seconds)}{_fraction(rest)}Z" if rest else f"{_second(seconds)}Z"


def offset_text(ns: int) -> str:
    """With `+00:00` in the place of `Z`, as messages about end points write it."""
    seconds, rest = divmod(ns, NS_PER_SECOND)
    return f"{_second(seconds)}{_fraction(rest) if rest else ''}+00:00"


def _fraction(rest: int) -> str:
    if rest % NS_PER_MS == 0:
        return f".{rest // NS_PER_MS:03d}"
    return f".{rest:09d}" if rest % 1_000 else f".{rest // 1_000:06d}"


@lru_cache(limits.SECOND_TEXTS_MAX)
def _second(seconds: int) -> str:
    """Kept, because what is delivered together was mostly stored within the same few seconds."""
    days, second = divmod(seconds, DAY_SECONDS)
    cycles, offset = divmod(days + _EPOCH_DAY - _NEAR_DAY, _CYCLE_DAYS)
    day = date.fromordinal(_NEAR_DAY + offset)
    year = day.year + cycles * _CYCLE_YEARS
    shown = f"{year:04d}" if 0 <= year <= 9_999 else f"{year:+05d}"
    return f"{shown}-{day.month:02d}-{day.day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
