"""Where history starts and ends: every form, and the rule that tells seconds from milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadField
from seamark.notify.request import Request
from seamark.notify.start import Edge, end_of, parse_date, parse_id, refuse_end, start_of

S = 10**9
MS = 10**6


def request(**given: str) -> Request:
    return Request("e", {}, **given)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("1", 1), ("+5", 5), ("007", 7), ("18446744073709551615", 2**64 - 1), ("+0", 0), ("0" * 5_000 + "1", 1),
    ],
)  # fmt: skip
def test_ids(text: str, number: int) -> None:
    assert parse_id(text, "from_id") == number


@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_blank_ids(text: str) -> None:
    with pytest.raises(BadField, match="from_id cannot be empty"):
        parse_id(text, "from_id")


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "-0",
        "1.0",
        "1e3",
        " 1",
        "1 ",
        "18446744073709551616",
        "9" * 5_000,
        "mars@5",
        "abc",
        "+",
        "++1",
        "٤",
        "1_0",
        "0x1",
    ],
)
def test_bad_ids(text: str) -> None:
    with pytest.raises(BadField, match="to_id must be a valid positive integer") as caught:
        parse_id(text, "to_id")
    assert f"Got: '{text}'" in caught.value.message


JAN = 1_736_935_200 * S  # 2025-01-15T10:00:00Z

DATES = [
    ("2025-01-15T10:00:00Z", JAN),
    ("2025-01-15t10:00:00z", JAN),
    ("2025-01-15T10:00:00z", JAN),
    ("2025-01-15 10:00:00Z", JAN),
    ("2025-01-15T10:00:00+02:00", JAN - 7_200 * S),
    ("2025-01-15T10:00:00-05:30", JAN + 19_800 * S),
    ("2025-01-15T10:00:00-00:00", JAN),
    ("2025-01-15t10:00:00+00:00", JAN),
    ("2025-01-15 10:00:00+00:00", JAN),
    ("2025-01-15 10:00:00+0000", JAN),
    ("2025-01-15 10:00:00 +00:00", JAN),
    ("2025-01-15 10:00:00 +0130", JAN - 5_400 * S),
    ("2025-01-15 10:00:00.25+00:00", JAN + 250 * MS),
    ("2025-01-15T10:00:00", JAN),
    ("2025-01-15 10:00:00", JAN),
    ("2025-01-15 10:00:00.5", JAN + 500 * MS),
    ("2025-01-15T10:00:00.123456789", JAN + 123_456_789),
    ("2025-01-15T10:00:00.1234567899Z", JAN + 123_456_789),
    ("2025-01-15T10:00:00.000000001Z", JAN + 1),
    (" \t2025-01-15T10:00:00Z\n", JAN),
    ("2016-12-31T23:59:60Z", 1_483_228_800 * S),
    ("0000-01-01T00:00:00Z", -62_167_219_200 * S),
    ("9999-12-31T23:59:59Z", 253_402_300_799 * S),
    ("1740509903", 1_740_509_903 * S),
    ("+1740509903", 1_740_509_903 * S),
    (" 1740509903 ", 1_740_509_903 * S),
    ("1740509903710", 1_740_509_903_710 * MS),
    ("946684800000", 946_684_800_000 * MS),  # 12 digits
    ("10000000000", 10_000_000_000 * S),  # 11 digits
    ("99999999999", 99_999_999_999 * S),
    ("100000000000", 100_000_000_000 * MS),
    ("00000000001740509903", 1_740_509_903 * S),
    ("000001740509903710", 1_740_509_903_710 * MS),
    ("0", 0),
    ("+0", 0),
    ("0000000000000", 0),
    ("20250115", 20_250_115 * S),  # a number, not a date
    ("8210266876799999", 8_210_266_876_799_999 * MS),  # the last that the calendar has
]


@pytest.mark.parametrize(("text", "ns"), DATES)
def test_dates(text: str, ns: int) -> None:
    assert parse_date(text, "from_date") == ns


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "from_date cannot be empty"),
        ("  ", "from_date cannot be empty"),
        ("-1", "negative unix timestamps are not supported: '-1'"),
        (" -1740509903 ", "negative unix timestamps are not supported"),
        ("9223372036854775808", "number too large"),
        ("9" * 5_000, "number too large"),
        ("9223372036854775807", "invalid unix milliseconds timestamp '9223372036854775807'"),
        ("8210266876800000", "invalid unix milliseconds timestamp '8210266876800000'"),
        *[
            (text, "expected ISO-8601 datetime")
            for text in (
                "2025-01-15", "2025-01-15T10:00", "2025-01-15T10", "2025-01-15T10:00:00 Z", "2025-01-15T10:00:00 +00:00",
                "2025-01-15T10:00:00+0000", "2025-01-15T10:00:00+24:00", "2025-01-15T10:00:00+00:60", "2025-01-15t10:00:00",
                "2025-01-15T10:00:00+2", "2025-02-30T10:00:00Z", "2025-13-01T10:00:00Z", "2025-01-15T24:00:00Z",
                "2025-01-15T10:60:00Z", "2025-01-15T10:00:61Z", "2025-01-15T10:00:00.Z", "not-a-date", "now", "-", "+", "--1",
                "2025/01/15 10:00:00", "25-01-15T10:00:00Z", "2025-01-15  10:00:00", "٢٠٢٥-01-15T10:00:00Z", "1.5", "1e9", "٤",
                "2025-01-15T10:00:00ZZ", "Wed, 15 Jan 2025 10:00:00 GMT", "12 34",
            )
        ],
    ],
)  # fmt: skip
def test_bad_dates(text: str, why: str) -> None:
    with pytest.raises(BadField, match=re.escape(why)) as caught:
        parse_date(text, "from_date")
    if text.strip():
        assert caught.value.message.startswith("from_date must be a valid datetime/timestamp. Got: ")


ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=st.just(UTC) | ZONES), st.sampled_from("T "), st.booleans())
def test_dates_as_datetime_writes_them(moment: datetime, separator: str, naive: bool) -> None:
    text = (moment.replace(tzinfo=None) if naive else moment).isoformat(separator)
    wanted = moment.replace(tzinfo=UTC) if naive else moment
    micros = (wanted - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_date(text, "from_date") == micros * 1_000


@given(st.integers(0, 2**64), st.integers(0, 30))
def test_unix_times(number: int, zeros: int) -> None:
    text = "0" * zeros + str(number)
    if len(str(number)) <= 11:
        assert parse_date(text, "d") == number * S
    elif number < 8_210_266_876_800_000:
        assert parse_date(text, "d") == number * MS
    else:
        with pytest.raises(BadField):
            parse_date(text, "d")


def test_no_start_is_live() -> None:
    assert start_of(request(), needed=False) is None


@pytest.mark.parametrize("needed", [False, True])
def test_one_start(needed: bool) -> None:
    assert start_of(request(from_id="7"), needed=needed) == Edge(seq=7)
    assert start_of(request(from_date="1"), needed=needed) == Edge(ns=S)


@pytest.mark.parametrize(
    ("given", "needed", "why"),
    [
        ({}, True, "Replay endpoint requires either from_id or from_date parameter"),
        ({"to_id": "5"}, True, "Replay endpoint requires either from_id or from_date parameter"),
        ({"from_id": "1", "from_date": "1"}, False, "Cannot specify both from_id and from_date"),
        ({"from_id": "1", "from_date": "1"}, True, "Cannot specify both from_id and from_date"),
        ({"from_id": "x", "from_date": "1"}, False, "from_id must be"),  # a wrong value is told before there being two
        ({"from_id": "1", "from_date": "x"}, False, "from_date must be"),
        ({"from_id": "x", "from_date": "x"}, False, "from_id must be"),
        ({"from_id": ""}, False, "from_id cannot be empty"),
    ],
)
def test_bad_starts(given: dict[str, str], needed: bool, why: str) -> None:
    with pytest.raises(BadField, match=re.escape(why)):
        start_of(request(**given), needed=needed)


@pytest.mark.parametrize(
    ("given", "start", "end"),
    [
        ({}, Edge(seq=1), None),
        ({"to_id": "5"}, Edge(seq=5), Edge(seq=5)),
        ({"to_id": "5"}, Edge(ns=5), Edge(seq=5)),
        ({"to_date": "5"}, Edge(seq=9), Edge(ns=5 * S)),
        ({"to_date": "5"}, Edge(ns=5 * S), Edge(ns=5 * S)),
    ],
)
def test_ends(given: dict[str, str], start: Edge, end: Edge | None) -> None:
    assert end_of(request(**given), start) == end


@pytest.mark.parametrize(
    ("given", "start", "why"),
    [
        ({"to_id": "1", "to_date": "1"}, Edge(seq=1), "Cannot specify both to_id and to_date"),
        ({"to_id": "soon"}, Edge(seq=1), "to_id must be a valid positive integer"),
        ({"to_date": "soon"}, Edge(seq=1), "to_date must be a valid datetime/timestamp"),
        ({"to_id": "4"}, Edge(seq=5), "to_id (4) must not be lower than from_id (5)"),
        (
            {"to_date": "2026-01-01T00:00:00Z"},
            Edge(ns=1_767_312_000 * S),
            "to_date (2026-01-01T00:00:00+00:00) must not be earlier than from_date (2026-01-02T00:00:00+00:00)",
        ),
    ],
)
def test_bad_ends(given: dict[str, str], start: Edge, why: str) -> None:
    with pytest.raises(BadField, match=re.escape(why)):
        end_of(request(**given), start)


def test_only_a_replay_ends() -> None:
    refuse_end(request(from_id="1"), "/watch")
    for end in ({"to_id": "1"}, {"to_date": "x"}):
        with pytest.raises(BadField, match="only supported for the replay endpoint, not /watch"):
            refuse_end(request(**end), "/watch")
