"""Times as this surface writes and reads them: RFC 3339, in UTC with milliseconds when written, with any offset when read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from seamark.clock import NS_PER_MS
from seamark.errors import BadRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORM = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def text(ns: int) -> str:
    """`2026-02-25T18:58:23.120Z`; what is below a millisecond is cut off."""
    moment = _EPOCH + timedelta(milliseconds=ns // NS_PER_MS)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def parse(written: str, *, name: str) -> int:
    """Nanoseconds since the epoch. Raises BadRequest, which calls the text `name`."""
    try:
        if not _FORM.fullmatch(written):
            raise ValueError
        moment = datetime.fromisoformat(written.upper())
        return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000
    except (ValueError, OverflowError):
        raise BadRequest(f"{name} must be a time as in 2026-02-25T18:58:23Z, not {written[:80]!r}", name=name) from None
