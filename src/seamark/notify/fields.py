"""Identifier fields: for each handler of the contract, which texts it accepts and what it makes of them.

`read` turns a value, already as text, into its canonical form or raises BadField. What it gives goes into the subject of the
stored notification, into patterns of watches, and back out in `data.identifier`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from typing import ClassVar

from seamark.errors import BadField
from seamark.match.constraint import INT_MAX, INT_MIN, Constraint, Kind, Number, parse_constraint
from seamark.notify.clocktext import day_number
from seamark.notify.scalars import decimal_text, scalar_text

_INT = re.compile(r"([+-]?)0*+([0-9]*+)")
_FLOAT = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_INT_DIGITS_MAX = 19
_U32_MAX = 2**32 - 1
_DATES = "Expected: YYYY-MM-DD, YYYYMMDD, or YYYY-DDD"


class Field:
    """One declared identifier field."""

    handler: ClassVar[str]
    spatial: ClassVar[bool] = False  # stored as the record's geometry instead of in its subject
    __slots__ = ("description", "name", "required")

    def __init__(self, name: str, *, required: bool, description: str | None = None) -> None:
        self.name = name
        self.required = required
        self.description = description

    def read(self, text: str) -> str:
        """The canonical form. Raises BadField."""
        raise NotImplementedError

    def read_other(self, value: object) -> str:
        """The same for a JSON value that is not a string."""
        return self.read(scalar_text(self.name, value))

    def constraint(self, raw: Mapping[str, object]) -> Constraint:
        """A condition on the values of this field. Raises BadFilter or BadField."""
        raise self._bad("does not support constraint filters; expected scalar value")

    def options(self) -> dict[str, object]:
        """What was configured beside `required` and `description`, as schema discovery shows it."""
        return {}

    def _bad(self, why: str, details: str | None = None) -> BadField:
        message = f"Field '{self.name}' {why}"
        return BadField(message, field=self.name, details=message if details is None else details)


class StringField(Field):
    """Any text; its length is counted in bytes."""

    handler = "StringHandler"
    __slots__ = ("max_length",)

    def __init__(
        self, name: str, *, required: bool, description: str | None = None, max_length: int | None = None
    ) -> None:
        super().__init__(name, required=required, description=description)
        self.max_length = max_length

    def read(self, text: str) -> str:
        if not text:
            raise self._bad("cannot be empty")
        most = self.max_length
        # A character has at most four bytes, so short texts need no counting.
        if most is not None and len(text) * 4 > most and (length := len(text.encode())) > most:
            raise self._bad(f"exceeds maximum length of {most} characters, got: {length}")
        return text

    def options(self) -> dict[str, object]:
        return {"max_length": self.max_length}


class IntField(Field):
    """Signed 64-bit integers, in decimal."""

    handler = "IntHandler"
    __slots__ = ("high", "low", "range")

    def __init__(
        self, name: str, *, required: bool, description: str | None = None, range: tuple[int, int] | None = None
    ) -> None:
        super().__init__(name, required=required, description=description)
        self.range = range
        self.low, self.high = range or (INT_MIN, INT_MAX)

    def read(self, text: str) -> str:
        plain = len(text) < _INT_DIGITS_MAX and text.isascii() and text.isdigit()  # nearly always
        number = int(text) if plain else self._parse(text)
        if not self.low <= number <= self.high:
            raise self._bad(f"value {number} is outside allowed range [{self.low}, {self.high}]")
        return str(number)

    def read_other(self, value: object) -> str:
        if type(value) is int and self.low <= value <= self.high:
            return str(value)  # as `read` would have it, without the way through text
        return super().read_other(value)

    def constraint(self, raw: Mapping[str, object]) -> Constraint:
        return parse_constraint(raw, kind=Kind.INT, name=self.name, bounds=self.range)

    def options(self) -> dict[str, object]:
        return {"range": self.range}

    def _parse(self, text: str) -> int:
        found = _INT.fullmatch(text)
        why = "cannot parse integer from empty string" if not text else "invalid digit found in string"
        if found is not None and text[-1:].isdigit():
            sign, digits = found.groups()
            why = f"number too {'small' if sign == '-' else 'large'} to fit in target type"
            if len(digits) <= _INT_DIGITS_MAX and INT_MIN <= (number := int(sign + (digits or "0"))) <= INT_MAX:
                return number
        raise self._bad(f"must be a valid integer, got: '{text}'", why)


class FloatField(Field):
    """Finite numbers; the canonical form is the shortest decimal, so that equal numbers are equal texts."""

    handler = "FloatHandler"
    __slots__ = ("range",)

    def __init__(
        self, name: str, *, required: bool, description: str | None = None, range: tuple[float, float] | None = None
    ) -> None:
        super().__init__(name, required=required, description=description)
        self.range = range

    def read(self, text: str) -> str:
        if _FLOAT.fullmatch(text) is None:
            why = "invalid float literal" if text else "cannot parse float from empty string"
            raise self._bad(f"must be a valid number, got: '{text}'", why)
        number = float(text)
        if number - number != 0:  # infinite; the texts of NaN did not get so far
            raise self._bad(f"must be a valid number, got: '{text}'", "number is not finite")
        shown = decimal_text(number)
        if self.range is not None and not self.range[0] <= number <= self.range[1]:
            low, high = map(decimal_text, self.range)
            raise self._bad(f"value {shown} is outside allowed range [{low}, {high}]")
        return shown

    def read_other(self, value: object) -> str:
        low, high = self.range or (-sys.float_info.max, sys.float_info.max)
        if type(value) is float and low <= value <= high:
            return decimal_text(value)  # as `read` would have it, without the way through text
        return super().read_other(value)

    def constraint(self, raw: Mapping[str, object]) -> Constraint:
        bounds: tuple[Number, Number] | None = self.range
        return parse_constraint(raw, kind=Kind.FLOAT, name=self.name, bounds=bounds)

    def options(self) -> dict[str, object]:
        return {"range": self.range}


class EnumField(Field):
    """One of some words, in any case."""

    handler = "EnumHandler"
    __slots__ = ("_known", "values")

    def __init__(self, name: str, *, required: bool, description: str | None = None, values: Collection[str]) -> None:
        super().__init__(name, required=required, description=description)
        self.values = tuple(values)
        self._known = frozenset(value.lower() for value in values)

    def read(self, text: str) -> str:
        word = text.lower()
        if word not in self._known:
            raise self._bad(f"has invalid value '{text}'. Allowed: [{', '.join(self.values)}]")
        return word

    def constraint(self, raw: Mapping[str, object]) -> Constraint:
        return parse_constraint(raw, kind=Kind.TEXT, name=self.name, allowed=self._known)

    def options(self) -> dict[str, object]:
        return {"values": self.values}


class DateField(Field):
    """A day, as `YYYY-MM-DD`, `YYYYMMDD`, or `YYYY-DDD` with the number of the day in its year."""

    handler = "DateHandler"
    FORMATS: ClassVar[dict[str, str]] = {"%Y%m%d": "", "%Y-%m-%d": "-"}
    __slots__ = ("_dash", "canonical_format")

    def __init__(
        self, name: str, *, required: bool, description: str | None = None, canonical_format: str = "%Y%m%d"
    ) -> None:
        super().__init__(name, required=required, description=description)
        self.canonical_format = canonical_format
        self._dash = self.FORMATS[canonical_format]

    def read(self, text: str) -> str:
        dash = self._dash
        if len(text) == 10 and text[4] == text[7] == "-":
            year, month, day = text[:4], text[5:7], text[8:]
        elif len(text) == 8 and text[4] != "-":
            year, month, day = text[:4], text[4:6], text[6:]
        else:
            year, month, day = self._day_of_year(text)
        digits = year + month + day
        if digits.isascii() and digits.isdigit() and day_number(int(year), int(month), int(day)) is not None:
            return digits if not dash else f"{year}-{month}-{day}"
        raise self._no_date(text)

    def options(self) -> dict[str, object]:
        return {"canonical_format": self.canonical_format}

    def _day_of_year(self, text: str) -> tuple[str, str, str]:
        if not (len(text) == 8 and text[4] == "-" and text.isascii() and (text[:4] + text[5:]).isdigit()):
            raise self._no_date(text)
        year, left = int(text[:4]), int(text[5:])
        for month in range(1, 13):
            days = next(day for day in (31, 30, 29, 28) if day_number(year, month, day) is not None)
            if 0 < left <= days:
                return text[:4], f"{month:02d}", f"{left:02d}"
            left -= days
        raise self._no_date(text)

    def _no_date(self, text: str) -> BadField:
        why = f"Field '{self.name}' contains invalid date '{text}'. {_DATES}"
        return BadField(f"Failed to parse date value for field '{self.name}'", field=self.name, details=why)


class TimeField(Field):
    """A time of day, to the minute; a number of one or two digits is an hour."""

    handler = "TimeHandler"
    __slots__ = ()

    def read(self, text: str) -> str:
        length = len(text)
        if length == 4 and text.isascii() and text.isdigit():
            hours, minutes = text[:2], text[2:]
        elif 0 < length <= 2 and text.isascii() and text.isdigit():
            hours, minutes = text, "00"
        else:
            hours, minutes = self._clock(text)
        if hours > "23" and int(hours) > 23:
            raise self._bad(f"has invalid hours: {int(hours)}. Hours must be 0-23 in 24-hour format")
        if minutes > "59":
            raise self._bad(f"has invalid minutes: {int(minutes)}. Minutes must be 0-59")
        return hours.zfill(2) + minutes

    def _clock(self, text: str) -> tuple[str, str]:
        found = _CLOCK.fullmatch(text)
        if found is not None:
            return found[1], found[2]
        if ":" in text:
            raise self._bad(f"has invalid HH:MM format '{text}'. Expected format: HH:MM (e.g., 14:30, 9:05)")
        if len(text.encode()) == 4:
            expected = "Expected format: HHMM with exactly 4 digits (e.g., 1430, 0905)"
            raise self._bad(f"has invalid HHMM format '{text}'. {expected}")
        raise self._bad(f"has invalid time format '{text}'. Expected: H, HH, HH:MM, or HHMM")


class ExpverField(Field):
    """An experiment version: a number, padded to four digits, or else any text, in lower case."""

    handler = "ExpverHandler"
    __slots__ = ("default",)

    def __init__(
        self, name: str, *, required: bool, description: str | None = None, default: str | None = None
    ) -> None:
        super().__init__(name, required=required, description=description)
        self.default = default

    def read(self, text: str) -> str:
        if not text:
            if self.default is None:
                raise self._bad("cannot be empty")
            text = self.default
        digits = text.removeprefix("+")
        if digits.isascii() and digits.isdigit():
            digits = digits.lstrip("0")
            if len(digits) <= 10 and int(digits or "0") <= _U32_MAX:
                return digits.zfill(4)
        return text.lower()

    def options(self) -> dict[str, object]:
        return {"default": self.default}
