"""Each handler: what it accepts, what it makes of it, what it rejects and with which words."""

from __future__ import annotations

import datetime
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadField, BadFilter, SeamarkError
from seamark.match.constraint import Constraint, Kind, Op
from seamark.notify.fields import (
    DateField,
    EnumField,
    ExpverField,
    Field,
    FloatField,
    IntField,
    StringField,
    TimeField,
)
from seamark.notify.scalars import scalar_text

STRING = StringField("f", required=True)
SHORT = StringField("f", required=True, max_length=4)
INT = IntField("f", required=True)
STEP = IntField("f", required=True, range=(0, 100))
FLOAT = FloatField("f", required=True)
LEVEL = FloatField("f", required=True, range=(1.0, 7.5))
ENUM = EnumField("f", required=True, values=["North", "south", "ÉST"])
DATE = DateField("f", required=True)
DASHED = DateField("f", required=True, canonical_format="%Y-%m-%d")
TIME = TimeField("f", required=True)
EXPVER = ExpverField("f", required=True)
DEFAULTED = ExpverField("f", required=True, default="1")

ACCEPTED: list[tuple[Field, object, str]] = [
    (STRING, "od", "od"),
    (STRING, " Od ", " Od "),
    (STRING, "*", "*"),
    (STRING, 4, "4"),
    (STRING, 4.0, "4.0"),
    (STRING, True, "true"),
    (SHORT, "abcd", "abcd"),
    (SHORT, "éé", "éé"),
    (SHORT, "😀", "😀"),
    (INT, "12", "12"),
    (INT, "+12", "12"),
    (INT, "-12", "-12"),
    (INT, "0042", "42"),
    (INT, "-0", "0"),
    (INT, "+0", "0"),
    (INT, "0", "0"),
    (INT, 12, "12"),
    (INT, -5, "-5"),
    (INT, "9223372036854775807", "9223372036854775807"),
    (INT, "-9223372036854775808", "-9223372036854775808"),
    (INT, "0" * 5_000 + "7", "7"),
    (STEP, "0", "0"),
    (STEP, "100", "100"),
    (FLOAT, "12", "12"),
    (FLOAT, "12.5", "12.5"),
    (FLOAT, "+12.50", "12.5"),
    (FLOAT, ".5", "0.5"),
    (FLOAT, "5.", "5"),
    (FLOAT, "42.0", "42"),
    (FLOAT, "1e3", "1000"),
    (FLOAT, "1E+21", "1000000000000000000000"),
    (FLOAT, "1e-7", "0.0000001"),
    (FLOAT, "-0.0", "-0"),
    (FLOAT, 42.0, "42"),
    (FLOAT, 42.5, "42.5"),
    (FLOAT, 42, "42"),
    (FLOAT, 1e20, "100000000000000000000"),
    (FLOAT, "1e-400", "0"),
    (LEVEL, "1", "1"),
    (LEVEL, "7.5", "7.5"),
    (ENUM, "north", "north"),
    (ENUM, "NORTH", "north"),
    (ENUM, "South", "south"),
    (ENUM, "ést", "ést"),
    (DATE, "2025-07-06", "20250706"),
    (DATE, "20250706", "20250706"),
    (DATE, "2025-187", "20250706"),
    (DATE, 20250706, "20250706"),
    (DATE, "2024-02-29", "20240229"),
    (DATE, "2024-366", "20241231"),
    (DATE, "2025-001", "20250101"),
    (DATE, "2025-365", "20251231"),
    (DATE, "2024-060", "20240229"),
    (DASHED, "20251225", "2025-12-25"),
    (DASHED, "2025-359", "2025-12-25"),
    (DASHED, "2025-12-25", "2025-12-25"),
    (TIME, "0", "0000"),
    (TIME, "9", "0900"),
    (TIME, "09", "0900"),
    (TIME, "23", "2300"),
    (TIME, "9:05", "0905"),
    (TIME, "14:30", "1430"),
    (TIME, "0000", "0000"),
    (TIME, "2359", "2359"),
    (TIME, 1200, "1200"),
    (TIME, 9, "0900"),
    (EXPVER, "1", "0001"),
    (EXPVER, "+1", "0001"),
    (EXPVER, "0", "0000"),
    (EXPVER, "00001", "0001"),
    (EXPVER, "42", "0042"),
    (EXPVER, "9999", "9999"),
    (EXPVER, "12345", "12345"),
    (EXPVER, "4294967295", "4294967295"),
    (EXPVER, "4294967296", "4294967296"),
    (EXPVER, "004294967296", "004294967296"),  # beyond 32 bits it is text
    (EXPVER, "PROD", "prod"),
    (EXPVER, "dev-V2.1", "dev-v2.1"),
    (EXPVER, "-1", "-1"),
    (EXPVER, " ", " "),
    (EXPVER, 7, "0007"),
    (DEFAULTED, "", "0001"),
    (DEFAULTED, "2", "0002"),
]


@pytest.mark.parametrize(("field", "value", "canonical"), ACCEPTED)
def test_accepted(field: Field, value: object, canonical: str) -> None:
    assert (field.read(value) if isinstance(value, str) else field.read_other(value)) == canonical
    assert field.read(canonical) == canonical, "canonical forms stay as they are"


NO_INT = "Field 'f' must be a valid integer, got: '{}'"
NO_NUMBER = "Field 'f' must be a valid number, got: '{}'"
NO_DATE = "Failed to parse date value for field 'f'"
DIGIT = "invalid digit found in string"

REJECTED: list[tuple[Field, object, str, str | None]] = [
    (STRING, "", "Field 'f' cannot be empty", None),
    (SHORT, "abcde", "Field 'f' exceeds maximum length of 4 characters, got: 5", None),
    (SHORT, "ééé", "Field 'f' exceeds maximum length of 4 characters, got: 6", None),
    (STRING, None, "Field 'f' cannot be null", None),
    (STRING, ["x"], "Field 'f' must be a scalar value or constraint object, got array", None),
    (INT, "", NO_INT.format(""), "cannot parse integer from empty string"),
    (INT, "9223372036854775808", NO_INT.format("9223372036854775808"), "number too large to fit in target type"),
    (INT, "-9223372036854775809", NO_INT.format("-9223372036854775809"), "number too small to fit in target type"),
    (INT, "9" * 5_000, NO_INT.format("9" * 5_000), "number too large to fit in target type"),
    *[
        (INT, text, NO_INT.format(text), DIGIT)
        for text in ("abc", " 1", "1 ", "1_0", "4.0", "1e3", "٤", "²", "+", "-", "+-1", "0x10", "1,000", "−1", "")
        if text
    ],
    (INT, 4.0, NO_INT.format("4.0"), DIGIT),
    (INT, True, NO_INT.format("true"), DIGIT),
    (STEP, "101", "Field 'f' value 101 is outside allowed range [0, 100]", None),
    (STEP, "-5", "Field 'f' value -5 is outside allowed range [0, 100]", None),
    (FLOAT, "", NO_NUMBER.format(""), "cannot parse float from empty string"),
    *[
        (FLOAT, text, NO_NUMBER.format(text), "invalid float literal")
        for text in ("abc", "nan", "NaN", "inf", "-inf", "Infinity", " 1", "1 ", "1_0", "0x1", ".", "e5", "1e", "٤", "1,5", "+")
    ],
    (FLOAT, "1e400", NO_NUMBER.format("1e400"), "number is not finite"),
    (FLOAT, "-1e400", NO_NUMBER.format("-1e400"), "number is not finite"),
    (LEVEL, "7.6", "Field 'f' value 7.6 is outside allowed range [1, 7.5]", None),
    (LEVEL, "1e-1", "Field 'f' value 0.1 is outside allowed range [1, 7.5]", None),
    (ENUM, "west", "Field 'f' has invalid value 'west'. Allowed: [North, south, ÉST]", None),
    (ENUM, "", "Field 'f' has invalid value ''. Allowed: [North, south, ÉST]", None),
    (ENUM, " north", "Field 'f' has invalid value ' north'. Allowed: [North, south, ÉST]", None),
    *[
        (DATE, text, NO_DATE, f"Field 'f' contains invalid date '{text}'. Expected: YYYY-MM-DD, YYYYMMDD, or YYYY-DDD")
        for text in (
            "", "2025", "2025-", "2025/07/06", "2025.07.06", "2025-02-30", "2025-13-01", "2025-00-10", "20250230", "20251301",
            "2025-366", "2025-000", "2024-367", "25-12-2025", "2025-12-25T00:00:00", "not-a-date", "abc-def-gh", " 2025-07-06",
            "2025-07-06 ", "٢٠٢٥٠٧٠٦", "2025-٠٧-٠٦", "2025-1٨٧", "2025--1", "+2025070", "-2025070", "2025 7 6", "2025-07_06",
        )
    ],
    *[
        (TIME, text, f"Field 'f' has invalid hours: {hours}. Hours must be 0-23 in 24-hour format", None)
        for text, hours in (("24", 24), ("99", 99), ("24:00", 24), ("2400", 24), ("9900", 99))
    ],
    *[
        (TIME, text, "Field 'f' has invalid minutes: 60. Minutes must be 0-59", None)
        for text in ("12:60", "1260", "1:60")
    ],
    *[
        (TIME, text, f"Field 'f' has invalid HH:MM format '{text}'. Expected format: HH:MM (e.g., 14:30, 9:05)", None)
        for text in ("12:3", "12:300", "123:00", ":30", "12:", "12:30:00", " 12:30", "12:30 ", "1٢:30")
    ],
    *[
        (TIME, text, f"Field 'f' has invalid HHMM format '{text}'. Expected format: HHMM with exactly 4 digits (e.g., 1430, 0905)", None)
        for text in ("abcd", " 930", "-100")
    ],
    *[
        (TIME, text, f"Field 'f' has invalid time format '{text}'. Expected: H, HH, HH:MM, or HHMM", None)
        for text in ("", "930", "12000", " 9 ", "noon!", "²", "x")
    ],
    (TIME, 930, "Field 'f' has invalid time format '930'. Expected: H, HH, HH:MM, or HHMM", None),
    (EXPVER, "", "Field 'f' cannot be empty", None),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "message", "details"), REJECTED)
def test_rejected(field: Field, value: object, message: str, details: str | None) -> None:
    with pytest.raises(BadField) as caught:
        _ = field.read(value) if isinstance(value, str) else field.read_other(value)
    assert caught.value.message == message
    assert caught.value.fields.get("details", message) == (details or message)
    assert caught.value.fields["field"] == "f"


@given(st.integers(-(2**64), 2**64), st.sampled_from(["", "+", "0", "-0", " "]))
def test_integers(number: int, front: str) -> None:
    text = front + str(number)
    if re.fullmatch(r"[+-]?[0-9]+", text) and -(2**63) <= int(text) < 2**63:
        assert INT.read(text) == str(int(text))
    else:
        with pytest.raises(BadField):
            INT.read(text)


@given(st.floats(), st.sampled_from([repr, "{:.17e}".format, "{:.3f}".format, "{:+g}".format]))
def test_floats(number: float, write: object) -> None:
    assert callable(write)
    text = write(number)
    if not math.isfinite(number):
        with pytest.raises(BadField):
            FLOAT.read(text)
        return
    canonical = FLOAT.read(text)
    assert float(canonical) == float(text)
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]*[1-9])?", canonical)


@given(st.one_of(st.integers(-20, 20), st.integers(), st.floats(-20, 20), st.floats(), st.booleans()), st.booleans())
def test_numbers_are_read_as_their_texts_are(value: float, bounded: bool) -> None:
    """JSON has no more than a few of these; whatever comes, there is one way to read it."""
    whole = IntField("f", required=True, range=(-9, 9) if bounded else None)
    real = FloatField("f", required=True, range=(-9.5, 9.5) if bounded else None)
    for field in (whole, real):
        try:
            expected: object = field.read(scalar_text("f", value))
        except BadField as error:
            expected = str(error)
        try:
            found: object = field.read_other(value)
        except BadField as error:
            found = str(error)
        assert found == expected


@given(st.dates(min_value=datetime.date(1, 1, 1)))
def test_dates(day: datetime.date) -> None:
    year = f"{day.year:04d}"
    for text in (f"{year}-{day:%m-%d}", f"{year}{day:%m%d}", f"{year}-{day:%j}"):
        assert DATE.read(text) == f"{year}{day:%m%d}"
        assert DASHED.read(text) == f"{year}-{day:%m-%d}"


@given(st.text(alphabet="0123456789:-", max_size=10))
def test_times_are_those_of_a_slow_reader(text: str) -> None:
    hours, minutes = text, "0"
    if re.fullmatch("[0-9]{4}", text):
        hours, minutes = text[:2], text[2:]
    elif re.fullmatch("[0-9]{1,2}:[0-9]{2}", text):
        hours, minutes = text.split(":")
    good = re.fullmatch("[0-9]{1,2}", hours) is not None and int(hours) < 24 and int(minutes) < 60
    if good:
        assert TIME.read(text) == f"{int(hours):02d}{int(minutes):02d}"
    else:
        with pytest.raises(BadField):
            TIME.read(text)


# -- constraints

RANGES: list[tuple[Field, dict[str, object], Constraint]] = [
    (INT, {"eq": 5}, Constraint(Kind.INT, Op.EQ, (5,))),
    (INT, {"in": [5, 3]}, Constraint(Kind.INT, Op.IN, (3, 5))),
    (INT, {"gt": -5}, Constraint(Kind.INT, Op.GT, (-5,))),
    (INT, {"gte": 5}, Constraint(Kind.INT, Op.GTE, (5,))),
    (INT, {"lt": 2**63 - 1}, Constraint(Kind.INT, Op.LT, (2**63 - 1,))),
    (INT, {"lte": -(2**63)}, Constraint(Kind.INT, Op.LTE, (-(2**63),))),
    (STEP, {"between": [0, 100]}, Constraint(Kind.INT, Op.BETWEEN, (0, 100))),
    (STEP, {"between": [7, 7]}, Constraint(Kind.INT, Op.BETWEEN, (7, 7))),
    (FLOAT, {"eq": 5}, Constraint(Kind.FLOAT, Op.EQ, (5.0,))),
    (FLOAT, {"in": [0.5, 2]}, Constraint(Kind.FLOAT, Op.IN, (0.5, 2.0))),
    (FLOAT, {"lt": 50.0}, Constraint(Kind.FLOAT, Op.LT, (50.0,))),
    (LEVEL, {"between": [1, 7.5]}, Constraint(Kind.FLOAT, Op.BETWEEN, (1.0, 7.5))),
    (ENUM, {"eq": "NORTH"}, Constraint(Kind.TEXT, Op.EQ, ("north",))),
    (ENUM, {"in": ["South", "north"]}, Constraint(Kind.TEXT, Op.IN, ("north", "south"))),
]


@pytest.mark.parametrize(("field", "raw", "constraint"), RANGES)
def test_constraints(field: Field, raw: dict[str, object], constraint: Constraint) -> None:
    assert field.constraint(raw) == constraint


@pytest.mark.parametrize(
    ("field", "raw", "why"),
    [
        (INT, {}, "must contain exactly one operator"),
        (INT, {"gt": 1, "lt": 2}, "must contain exactly one operator"),
        (INT, {"ge": 1}, "unknown operator 'ge'"),
        (INT, {"GT": 1}, "unknown operator 'GT'"),
        (INT, {"eq": 4.0}, "integer"),
        (INT, {"eq": "4"}, "integer"),
        (INT, {"eq": True}, "integer"),
        (INT, {"eq": None}, "integer"),
        (INT, {"eq": 2**63}, "integer"),
        (INT, {"in": 4}, "array"),
        (INT, {"in": []}, "array"),
        (INT, {"in": [1, "2"]}, "integer"),
        (INT, {"between": [1]}, "exactly two"),
        (INT, {"between": [1, 2, 3]}, "exactly two"),
        (INT, {"between": 1}, "exactly two"),
        (INT, {"between": [2, 1]}, "min <= max"),
        (STEP, {"gte": 101}, "outside 0..100"),
        (STEP, {"in": [1, -1]}, "outside 0..100"),
        (STEP, {"between": [0, 101]}, "outside 0..100"),
        (FLOAT, {"eq": "4"}, "number"),
        (FLOAT, {"eq": True}, "number"),
        (FLOAT, {"eq": [1.0]}, "number"),
        (LEVEL, {"lt": 0.5}, "outside"),
        (ENUM, {"gt": "north"}, "unknown operator 'gt'"),
        (ENUM, {"eq": 1}, "string"),
        (ENUM, {"eq": "west"}, "does not take 'west'"),
        (ENUM, {"in": ["north", "west"]}, "does not take 'west'"),
        (STRING, {"eq": "x"}, "does not support constraint filters; expected scalar value"),
        (DATE, {"eq": "20250101"}, "does not support constraint filters; expected scalar value"),
        (TIME, {"gte": "1200"}, "does not support constraint filters; expected scalar value"),
        (EXPVER, {}, "does not support constraint filters; expected scalar value"),
    ],
)
def test_bad_constraints(field: Field, raw: dict[str, object], why: str) -> None:
    with pytest.raises(SeamarkError, match=re.escape(why)) as caught:
        field.constraint(raw)
    assert isinstance(caught.value, BadField | BadFilter)
    assert "'f'" in caught.value.message
    assert caught.value.status == 400
