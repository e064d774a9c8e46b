"""Where a watch or a replay starts, and where a replay ends: `from_id`, `from_date`, `to_id`, `to_date`.

Ids are sequence numbers and dates are moments, both inclusive. Moments are nanoseconds since the epoch, as plain integers: a
date may lie centuries before the first record or beyond the last year of `datetime`, and is still a date.
"""

from __future__ import annotations

import re

import msgspec

from seamark.clock import NS_PER_MS, NS_PER_SECOND
from seamark.errors import BadField
from seamark.notify.clocktext import DAY_SECONDS, NS_MAX, day_number, offset_text
from seamark.notify.request import Request

U64_MAX = 2**64 - 1
I64_MAX = 2**63 - 1
U64_DIGITS_MAX = 20
SECONDS_DIGITS_MAX = 11  # one more, and it is milliseconds

_NUMBER = re.compile(r"\+?0*+([0-9]*+)")
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})([Tt ])([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:( *)([Zz]|[+-][0-9]{2}:?[0-9]{2}))?"
)
_IDS = "Valid examples: '1', '123', '9999'"
_DATES = (
    "Valid examples: '2025-06-09T13:15:00Z', '2025-06-09 13:15:00+00:00', '2025-06-09 13:15:00', "
    "'1740509903', '1740509903710'"
)

_TWO_STARTS = (
    "Cannot specify both from_id and from_date. Please provide only one replay parameter."
    " Use from_id for sequence-based replay or from_date for time-based replay."
)
_TWO_ENDS = (
    "Cannot specify both to_id and to_date. Please provide only one replay end parameter."
    " Use to_id for a sequence-based end or to_date for a time-based end."
)


class Edge(msgspec.Struct, frozen=True):
    """A start or an end: exactly one of the two."""

    seq: int | None = None
    ns: int | None = None


def start_of(request: Request, *, needed: bool) -> Edge | None:
    """Where history starts, None for only what is new. `needed`: there must be a start. Raises BadField."""
    edge = _edge(request.from_id, request.from_date, "from", _TWO_STARTS)
    if edge is None and needed:
        raise BadField(
            "Replay endpoint requires either from_id or from_date parameter."
            " Use from_id for sequence-based replay or from_date for time-based replay."
        )
    return edge


def end_of(request: Request, start: Edge) -> Edge | None:
    """Where a replay ends, None for everything there is. Raises BadField."""
    edge = _edge(request.to_id, request.to_date, "to", _TWO_ENDS)
    if edge is None:
        return None
    if edge.seq is not None and start.seq is not None and edge.seq < start.seq:
        raise BadField(f"to_id ({edge.seq}) must not be lower than from_id ({start.seq})", field="to_id")
    if edge.ns is not None and start.ns is not None and edge.ns < start.ns:
        first, last = offset_text(start.ns), offset_text(edge.ns)
        raise BadField(f"to_date ({last}) must not be earlier than from_date ({first})", field="to_date")
    return edge


def refuse_end(request: Request, path: str) -> None:
    """Only a replay has an end."""
    if request.to_id is not None or request.to_date is not None:
        raise BadField(f"to_id and to_date are only supported for the replay endpoint, not {path}")


def parse_id(text: str, name: str) -> int:
    """A sequence number, unsigned 64-bit. Zero is the beginning."""
    if not text.strip():
        raise BadField(f"{name} cannot be empty. Provide a valid sequence number or omit the field", field=name)
    found = _NUMBER.fullmatch(text)
    if found is not None and text[-1].isdigit() and len(found[1]) <= U64_DIGITS_MAX:
        number = int(found[1] or "0")
        if number <= U64_MAX:
            return number
    raise BadField(f"{name} must be a valid positive integer. Got: '{text}'. {_IDS}", field=name)


def parse_date(text: str, name: str) -> int:
    """A moment, in any of the forms of the contract."""
    trimmed = text.strip()
    if not trimmed:
        raise BadField(f"{name} cannot be empty. Provide a valid datetime/timestamp or omit the field", field=name)
    try:
        return _moment(trimmed)
    except ValueError as error:
        why = f"{name} must be a valid datetime/timestamp. Got: '{text}'. Error: {error}. {_DATES}"
        raise BadField(why, field=name) from None


def _edge(id_text: str | None, date_text: str | None, word: str, two: str) -> Edge | None:
    """Each is read before they are found to be two, so that a wrong value is told first."""
    seq = None if id_text is None else parse_id(id_text, f"{word}_id")
    ns = None if date_text is None else parse_date(date_text, f"{word}_date")
    if seq is not None and ns is not None:
        raise BadField(two)
    return None if seq is None and ns is None else Edge(seq, ns)


def _moment(text: str) -> int:
    """Raises ValueError with the reason."""
    number = _NUMBER.fullmatch(text)
    if number is not None and text[-1].isdigit():
        return _unix(text.removeprefix("+"), number[1] or "0")
    if text[0] == "-" and text[1:].isascii() and text[1:].isdigit():
        raise ValueError(f"negative unix timestamps are not supported: '{text}'")
    found = _MOMENT.fullmatch(text)
    ns = None if found is None else _calendar(found)
    if ns is None:
        raise ValueError(
            "expected ISO-8601 datetime (RFC3339/space-separated with optional timezone) or unix epoch seconds/milliseconds"
        )
    return ns


def _unix(text: str, digits: str) -> int:
    """Up to 11 digits are seconds, more are milliseconds; zeros in front do not count."""
    if len(digits) <= SECONDS_DIGITS_MAX:
        return int(digits) * NS_PER_SECOND
    if len(digits) > U64_DIGITS_MAX or int(digits) > I64_MAX:
        raise ValueError(f"failed to parse unix timestamp '{text}': number too large to fit in target type")
    ns = int(digits) * NS_PER_MS
    if ns > NS_MAX:
        raise ValueError(f"invalid unix milliseconds timestamp '{text}'")
    return ns


def _calendar(found: re.Match[str]) -> int | None:
    """A date with a time; without a zone it is UTC. None when there is no such moment."""
    year, month, day, hour, minute, second = (int(found[group]) for group in (1, 2, 3, 5, 6, 7))
    days = day_number(year, month, day)
    offset = _offset_seconds(separator=found[4], gap=found[9], zone=found[10])
    if days is None or offset is None or hour > 23 or minute > 59 or second > 60:  # 60: a leap second
        return None
    seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second - offset
    return seconds * NS_PER_SECOND + int((found[8] or "")[:9].ljust(9, "0"))


def _offset_seconds(*, separator: str, gap: str | None, zone: str | None) -> int | None:
    """Seconds east of UTC, None for a zone that does not go with the rest."""
    if zone is None:
        return 0 if separator != "t" else None
    if zone in "Zz":
        return None if gap else 0
    if separator != " " and (gap or ":" not in zone):
        return None  # a space, or an offset without colon, only after a space
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    seconds = hours * 3600 + minutes * 60
    return -seconds if zone[0] == "-" else seconds
