from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadFilter
from seamark.match.constraint import INT_MAX, INT_MIN, Constraint, Kind, Op, parse_constraint, read_token

INTS = st.integers(INT_MIN, INT_MAX) | st.sampled_from([INT_MIN, INT_MAX, 2**53, 2**53 + 1, 0, -1])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def parse(raw: object, kind: Kind = Kind.INT, **more: Any) -> Constraint:
    return parse_constraint(raw, kind=kind, name="step", **more)


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("4", 4),
        ("+4", 4),
        ("-4", -4),
        ("-0", 0),
        ("004", 4),
        ("0" * 5_000 + "7", 7),
        ("9223372036854775807", INT_MAX),
        ("-9223372036854775808", INT_MIN),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("9" * 5_000, None),
        ("4.0", None),
        ("4e1", None),
        ("1_000", None),
        (" 4", None),
        ("4\n", None),
        ("٤", None),
        ("²", None),
        ("+", None),
        ("", None),
        ("*", None),
        ("true", None),
    ],
)
def test_integer_tokens(token: str, value: int | None) -> None:
    assert read_token(Kind.INT, token) == value


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("42", 42.0),
        ("42.5", 42.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1e-7", -1e-7),
        ("1E3", 1000.0),
        ("-0", 0.0),
        ("1e400", None),
        ("nan", None),
        ("NaN", None),
        ("inf", None),
        ("-Infinity", None),
        ("0x10", None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("٤.٥", None),
        (".", None),
        ("e5", None),
        ("", None),
        ("*", None),
    ],
)
def test_float_tokens(token: str, value: float | None) -> None:
    assert read_token(Kind.FLOAT, token) == value


@pytest.mark.parametrize(("token", "value"), [("OD", "od"), ("é", "é"), ("", None), ("*", None), ("4", "4")])
def test_text_tokens(token: str, value: str | None) -> None:
    assert read_token(Kind.TEXT, token) == value


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"eq": 1, "in": [1]},
        [],
        "eq",
        None,
        {"EQ": 1},
        {"ne": 1},
        {"eq": True},
        {"eq": 4.0},
        {"eq": "4"},
        {"eq": None},
        {"eq": 2**63},
        {"eq": -(2**63) - 1},
        {"in": []},
        {"in": 4},
        {"in": [4, False]},
        {"in": {"a": 1}},
        {"between": [1]},
        {"between": [1, 2, 3]},
        {"between": [2, 1]},
        {"between": 1},
        {"gt": [1]},
        {"in": list(range(limits.CONSTRAINT_VALUES_MAX + 1))},
    ],
)
def test_bad_integer_constraints_name_the_field(raw: object) -> None:
    with pytest.raises(BadFilter) as caught:
        parse(raw)
    assert caught.value.fields["field"] == "step"
    assert "step" in caught.value.message


@pytest.mark.parametrize("raw", [{}, {"eq": 1, "gt": 2}])
def test_one_operator_is_said_in_the_contract_s_words(raw: object) -> None:
    with pytest.raises(BadFilter, match="must contain exactly one operator"):
        parse(raw)


@pytest.mark.parametrize(
    "raw", [{"eq": math.nan}, {"eq": math.inf}, {"gt": -math.inf}, {"eq": 10**400}, {"eq": True}, {"lt": "1"}]
)
def test_bad_float_constraints(raw: object) -> None:
    with pytest.raises(BadFilter):
        parse(raw, Kind.FLOAT)


@pytest.mark.parametrize("raw", [{"eq": 4}, {"eq": ["od"]}, {"gt": "od"}, {"between": ["a", "b"]}, {"in": ["od", 1]}])
def test_bad_text_constraints(raw: object) -> None:
    with pytest.raises(BadFilter):
        parse(raw, Kind.TEXT)


def test_operands_outside_what_the_field_allows() -> None:
    assert parse({"in": ["OD", "Dt"]}, Kind.TEXT, allowed=["od", "DT"]).operands == ("dt", "od")
    with pytest.raises(BadFilter, match="'xx'"):
        parse({"in": ["od", "XX"]}, Kind.TEXT, allowed=["od"])
    assert parse({"between": [0, 100]}, bounds=(0, 100)).operands == (0, 100)
    for raw in ({"in": [1, 101]}, {"gt": -1}, {"between": [0, 101]}):
        with pytest.raises(BadFilter, match="outside"):
            parse(raw, bounds=(0, 100))


@pytest.mark.parametrize(
    ("op", "operand", "yes", "no"),
    [
        ("eq", 4, [4], [3, 5]),
        ("in", [1, 4, 4], [1, 4], [2, 3]),
        ("gt", 4, [5, INT_MAX], [4, 3]),
        ("gte", 4, [4, 5], [3]),
        ("lt", 4, [3, INT_MIN], [4, 5]),
        ("lte", 4, [4, 3], [5]),
        ("between", [4, 6], [4, 5, 6], [3, 7]),
        ("between", [4, 4], [4], [3, 5]),
        ("gt", INT_MAX, [], [INT_MAX, INT_MIN]),
        ("lt", INT_MIN, [], [INT_MAX, INT_MIN]),
        ("gte", INT_MAX, [INT_MAX], [INT_MAX - 1]),
        ("eq", 2**53 + 1, [2**53 + 1], [2**53, 2**53 + 2]),
        ("gt", 2**53, [2**53 + 1], [2**53]),
        ("lt", 2**53 + 1, [2**53], [2**53 + 1]),
    ],
)
def test_what_integers_satisfy(op: str, operand: object, yes: list[int], no: list[int]) -> None:
    constraint = parse({op: operand})
    assert [constraint.holds(value) for value in [*yes, *no]] == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize(
    ("op", "operand", "yes", "no"),
    [
        ("eq", 4, [4.0], [math.nextafter(4.0, 5.0)]),
        ("gt", 0, [5e-324], [0.0, -0.0]),
        ("lt", 0, [-5e-324], [0.0, -0.0]),
        ("eq", -0.0, [0.0, -0.0], [5e-324]),
        ("gt", 1.7976931348623157e308, [], [1.7976931348623157e308]),
        ("lte", 0.1, [0.1], [0.1 + 2**-55]),
    ],
)
def test_what_floats_satisfy(op: str, operand: object, yes: list[float], no: list[float]) -> None:
    constraint = parse({op: operand}, Kind.FLOAT)
    assert [constraint.holds(value) for value in [*yes, *no]] == [True] * len(yes) + [False] * len(no)


def truth(op: Op, operands: list[Any], value: Any) -> bool:
    first, last = operands[0], operands[-1]
    answers: dict[Op, bool] = {
        Op.EQ: value == first,
        Op.IN: value in operands,
        Op.GT: value > first,
        Op.GTE: value >= first,
        Op.LT: value < first,
        Op.LTE: value <= first,
        Op.BETWEEN: first <= value <= last,
    }
    return answers[op]


@given(st.sampled_from(list(Op)), st.sampled_from([Kind.INT, Kind.FLOAT]), st.data())
def test_numbers_agree_with_the_plain_meaning(op: Op, kind: Kind, data: st.DataObject) -> None:
    numbers: st.SearchStrategy[Any] = INTS if kind is Kind.INT else FLOATS
    count = {Op.IN: 3, Op.BETWEEN: 2}.get(op, 1)
    operands: list[Any] = sorted(data.draw(st.lists(numbers, min_size=count, max_size=count)))
    constraint = Constraint(kind, op, tuple(operands))
    near: st.SearchStrategy[Any] = st.sampled_from(operands)
    if kind is Kind.INT:
        near = st.builds(lambda at, by: min(max(at + by, INT_MIN), INT_MAX), near, st.integers(-1, 1))
    value = data.draw(numbers | near)
    assert constraint.holds(value) is truth(op, operands, value)
    if op is not Op.IN:
        assert (constraint.low <= value <= constraint.high) is constraint.holds(value)
    else:
        assert constraint.low <= value <= constraint.high or not constraint.holds(value)


def test_equal_however_written() -> None:
    assert parse({"in": [3, 1, 1]}) == parse({"in": [1, 3]})
    assert hash(parse({"in": [3, 1, 1]})) == hash(parse({"in": [1, 3]}))
    assert parse({"eq": "OD"}, Kind.TEXT) == parse({"eq": "od"}, Kind.TEXT)
    assert parse({"eq": 0}, Kind.FLOAT) == parse({"eq": -0.0}, Kind.FLOAT)
    assert parse({"eq": 4}) != parse({"eq": 4}, Kind.FLOAT)
    assert parse({"gt": 4}) != parse({"gte": 4})
