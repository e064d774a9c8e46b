"""A constraint: one condition on the value that a subject token stands for.

Values have a kind. Integers are signed 64-bit and compare exactly; floats are finite and compare exactly; text is an
enumeration and compares in lower case. A token that is missing, empty, `*`, or not of the kind satisfies nothing.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from seamark import limits
from seamark.errors import BadFilter

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
INT_DIGITS_MAX = 19

Value: TypeAlias = int | float | str
Number: TypeAlias = int | float

# int() and float() take spaces, underscores and foreign digits; the wire does not.
_INT = re.compile(r"([+-]?)0*+([0-9]*+)")
_FLOAT = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")


class Kind(enum.StrEnum):
    INT = "int"
    FLOAT = "float"
    TEXT = "text"


class Op(enum.StrEnum):
    EQ = "eq"
    IN = "in"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    BETWEEN = "between"


_TEXT_OPS = (Op.EQ, Op.IN)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Operands are canonical: those of `in` are sorted and distinct, text is lower-case, floats are floats.

    `low` and `high` enclose every number that can satisfy it (both inclusive; low > high when none can), and for all
    operators but `in` they say exactly which do. `members` is the set of `eq` and `in`, None for the others.
    """

    kind: Kind
    op: Op
    operands: tuple[Value, ...]
    members: frozenset[Value] | None = field(init=False, compare=False, repr=False)
    low: Number = field(init=False, compare=False, repr=False)
    high: Number = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        operands = tuple(_canonical(self.kind, operand) for operand in self.operands)
        members: frozenset[Value] | None = None
        if self.op in _TEXT_OPS:
            members = frozenset(operands)
            operands = tuple(sorted(members))
        assert operands
        assert len(operands) == 1 or self.op in (Op.IN, Op.BETWEEN)
        assert self.kind is not Kind.TEXT or members is not None
        object.__setattr__(self, "operands", operands)
        object.__setattr__(self, "members", members)
        low, high = (0, 0) if self.kind is Kind.TEXT else _interval(self.kind, self.op, operands)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def holds(self, value: Value) -> bool:
        """Whether a value of this kind satisfies the constraint."""
        if self.members is not None:
            return value in self.members
        return self.low <= value <= self.high  # type: ignore[operator]  # text has members


def read_token(kind: Kind, token: str) -> Value | None:
    """The value a subject token stands for, None when it stands for none of this kind."""
    if kind is Kind.TEXT:
        return None if token in ("", "*") else token.lower()
    if kind is Kind.INT:
        return _read_int(token)
    if _FLOAT.fullmatch(token) is None:
        return None
    number = float(token)
    return number if math.isfinite(number) else None


def parse_constraint(
    raw: object,
    *,
    kind: Kind,
    name: str,
    allowed: Collection[str] | None = None,
    bounds: tuple[Number, Number] | None = None,
) -> Constraint:
    """A constraint from its wire form `{"op": operand}`. `allowed` lists an enumeration, `bounds` a field's range."""
    if not isinstance(raw, dict) or len(raw) != 1:
        raise BadFilter(f"constraint for field '{name}' must contain exactly one operator", field=name)
    ((word, operand),) = raw.items()
    accepted = _TEXT_OPS if kind is Kind.TEXT else tuple(Op)
    if word not in [op.value for op in accepted]:
        names = ", ".join(accepted)
        raise BadFilter(f"field '{name}' has an unknown operator {word!r}; it takes {names}", field=name)
    op = Op(word)
    operands = _operand_list(op, operand, name)
    values = [_operand(kind, item, name) for item in operands]
    _check_allowed(values, name, allowed, bounds)
    if op is Op.BETWEEN and values[0] > values[1]:  # type: ignore[operator]  # both are numbers
        raise BadFilter(f"field '{name}': 'between' needs min <= max", field=name)
    return Constraint(kind, op, tuple(values))


def _read_int(token: str) -> int | None:
    if len(token) < INT_DIGITS_MAX and token.isascii() and token.isdigit():
        return int(token)  # nearly always
    # Zeros are stripped before int(), which refuses very long digit strings.
    found = _INT.fullmatch(token)
    if found is None or not token[-1:].isdigit():
        return None
    sign, digits = found.groups()
    if len(digits) > INT_DIGITS_MAX:
        return None
    number = int(sign + (digits or "0"))
    return number if INT_MIN <= number <= INT_MAX else None


def _canonical(kind: Kind, operand: Value) -> Value:
    if kind is Kind.TEXT:
        assert isinstance(operand, str)
        return operand.lower()
    assert isinstance(operand, int | float)
    assert not isinstance(operand, bool)
    if kind is Kind.INT:
        assert isinstance(operand, int)
        assert INT_MIN <= operand <= INT_MAX
        return operand
    number = float(operand) + 0.0  # turns -0.0 into 0.0, which it equals
    assert math.isfinite(number)
    return number


def _interval(kind: Kind, op: Op, operands: Sequence[Any]) -> tuple[Number, Number]:
    least, most = (INT_MIN, INT_MAX) if kind is Kind.INT else (-math.inf, math.inf)
    first, last = operands[0], operands[-1]
    match op:
        case Op.GT:
            # Nothing is above INT_MAX, and INT_MAX + 1 would not fit a column.
            if kind is Kind.INT:
                return (first + 1, most) if first < INT_MAX else (1, 0)
            return math.nextafter(first, math.inf), most
        case Op.LT:
            if kind is Kind.INT:
                return (least, first - 1) if first > INT_MIN else (1, 0)
            return least, math.nextafter(first, -math.inf)
        case Op.GTE:
            return first, most
        case Op.LTE:
            return least, first
        case _:  # eq, in (sorted) and between
            return first, last


def _operand_list(op: Op, operand: object, name: str) -> list[object]:
    if op is Op.IN:
        if not isinstance(operand, list) or not operand:
            raise BadFilter(f"field '{name}': 'in' needs a non-empty array", field=name)
        if len(operand) > limits.CONSTRAINT_VALUES_MAX:
            most = limits.CONSTRAINT_VALUES_MAX
            raise BadFilter(f"field '{name}': 'in' takes at most {most} values", field=name, max=most)
        return operand
    if op is Op.BETWEEN:
        if not isinstance(operand, list) or len(operand) != 2:
            raise BadFilter(f"field '{name}': 'between' needs an array of exactly two values", field=name)
        return operand
    return [operand]


def _operand(kind: Kind, item: object, name: str) -> Value:
    # bool is an int in Python and not on the wire.
    if kind is Kind.TEXT:
        if isinstance(item, str):
            return item.lower()
        raise BadFilter(f"field '{name}' needs a string operand", field=name)
    if kind is Kind.INT:
        if isinstance(item, int) and not isinstance(item, bool) and INT_MIN <= item <= INT_MAX:
            return item
        raise BadFilter(f"field '{name}' needs a 64-bit integer operand", field=name)
    if isinstance(item, int | float) and not isinstance(item, bool):
        try:
            number = float(item)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise BadFilter(f"field '{name}' needs a finite number as operand", field=name)


def _check_allowed(
    values: Sequence[Value], name: str, allowed: Collection[str] | None, bounds: tuple[Number, Number] | None
) -> None:
    if allowed is not None:
        known = {word.lower() for word in allowed}
        for value in values:
            if value not in known:
                accepts = ", ".join(sorted(known))
                raise BadFilter(f"field '{name}' does not take {value!r}; it takes {accepts}", field=name)
    if bounds is not None:
        least, most = bounds
        for value in values:
            if not least <= value <= most:  # type: ignore[operator]  # only numbers have bounds
                raise BadFilter(f"field '{name}': {value} is outside {least}..{most}", field=name)
