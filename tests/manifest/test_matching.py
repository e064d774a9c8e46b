from __future__ import annotations

import enum
import math
from typing import Any

import pytest

from seamark.manifest.matching import matcher_of, never, segment_matcher
from seamark.manifest.model import Bucket, Segment
from seamark.manifest.predicate import AllOf, AnyOf, Atom, Not, Op, Scalar, SegmentRef

NAN = math.nan


class Plan(enum.StrEnum):
    GOLD = "gold"


Row = tuple[Op, Scalar | tuple[Scalar, ...] | None, list[Any], list[Any]]
ROWS: list[Row] = [  # what matches, and what does not
    (Op.EQ, "gold", ["gold", Plan.GOLD], ["Gold", "", "gol", 1, True, None, b"gold", ["gold"]]),
    (Op.NEQ, "gold", ["Gold", ""], ["gold", Plan.GOLD, 1, True, None, ["x"]]),
    (Op.EQ, "", [""], [0, False, None]),
    (Op.EQ, 1, [1, 1.0], [True, "1", 2, NAN, None]),
    (Op.NEQ, 1, [2, 1.5, 0, math.inf], [1, 1.0, True, False, "2", NAN, None]),
    (Op.EQ, 0, [0, 0.0, -0.0], [False, "", None]),
    (Op.EQ, 2**53 + 1, [2**53 + 1], [2**53, float(2**53)]),
    (Op.EQ, 1.5, [1.5], [1, 2, "1.5", NAN]),
    (Op.EQ, math.inf, [math.inf], [-math.inf, 10**400, NAN]),
    (Op.EQ, True, [True], [1, 1.0, "true", False, None]),
    (Op.NEQ, True, [False], [0, 0.0, "", True, None]),
    (Op.EQ, False, [False], [0, "", None]),
    (Op.GT, 1, [2, 1.5, math.inf, 10**400], [1, 0, True, "2", NAN, None]),
    (Op.GTE, 1, [1, 1.0, 2], [0.5, True, "1", NAN]),
    (Op.LT, 1.5, [1, 1.25, -math.inf], [1.5, 2, False, "0", NAN]),
    (Op.LTE, 1.5, [1.5, 1], [2, False, True, NAN]),
    (Op.IN, ("a", "b"), ["a", "b"], ["c", "", 1, ["a"], None]),
    (Op.NOT_IN, ("a", "b"), ["c", ""], ["a", "b", 1, True, ["c"], None]),
    (Op.IN, (1, 2.5), [1, 1.0, 2.5], [True, "1", 2, NAN]),
    (Op.NOT_IN, (1, 2.5), [2, 0], [1, 1.0, 2.5, True, False, "1", NAN]),
    (Op.IN, (True,), [True], [1, False, "true"]),
    (Op.IN, (True, False), [True, False], [0, 1, None, [True]]),
    (Op.NOT_IN, (True,), [False], [True, 0, None]),
    (Op.NOT_IN, (True, False), [], [True, False, 0]),
    (Op.IN, ("a", 1, True), ["a", 1, True, 1.0], ["b", 2, False]),
    (Op.NOT_IN, ("a", 1), ["b", 2], ["a", 1, True, None]),
    (Op.IN, (NAN, 1), [1], [NAN]),
    (Op.CONTAINS, "b", ["abc", "b"], ["aBc", "", 1, ["b"], {"b": 1}, b"b", None]),
    (Op.NOT_CONTAINS, "b", ["aBc", ""], ["abc", 1, ["x"], None]),
    (Op.STARTS_WITH, "ab", ["ab", "abc"], ["Abc", "a", "", 1, None]),
    (Op.ENDS_WITH, "@example.com", ["bob@example.com"], ["bob@example.com.evil", "BOB@EXAMPLE.COM", 1, None]),
    (Op.SEMVER_EQ, "1.2.0", ["1.2.0", "1.2.0+build"], ["1.2.0-a", "1.2", "v1.2.0", "", 1.2, None]),
    (Op.SEMVER_GT, "1.9.0", ["1.10.0", "2.0.0-a"], ["1.9.0", "1.9.0-z", "1.9", 2, None]),
    (Op.SEMVER_GTE, "1.9.0-b", ["1.9.0-b", "1.9.0"], ["1.9.0-a.9", "2", None]),
    (Op.SEMVER_LT, "1.9.0", ["1.9.0-rc.1", "1.8.99"], ["1.9.0", "1.10.0", "0", None]),
    (Op.SEMVER_LTE, "1.9.0", ["1.9.0", "1.9.0+x"], ["1.9.1", "01.0.0", None]),
    (Op.IS_SET, None, ["", 0, False, NAN, None, []], []),
    (Op.IS_NOT_SET, None, [], ["", 0, False, NAN, None, []]),
]


@pytest.mark.parametrize(("op", "operand", "matching", "others"), ROWS)
def test_operators(op: Op, operand: Scalar | tuple[Scalar, ...] | None, matching: list[Any], others: list[Any]) -> None:
    test = matcher_of(Atom("user.x", op, operand), lambda _: never)
    for value in matching:
        assert test({"user.x": value}) is True, value
    for value in others:
        assert test({"user.x": value}) is False, value


def test_every_operator_has_a_row() -> None:
    assert {row[0] for row in ROWS} == set(Op)


@pytest.mark.parametrize(("op", "operand"), [row[:2] for row in ROWS])
def test_an_attribute_that_is_not_there_matches_nothing(op: Op, operand: Scalar | tuple[Scalar, ...] | None) -> None:
    test = matcher_of(Atom("user.x", op, operand), lambda _: never)
    contexts: list[dict[str, Any]] = [
        {},
        {"user": {"x": operand}},
        {"x": operand},
        {"user.x.y": operand},
        {"": operand},
    ]
    for context in contexts:
        assert test(context) is (op is Op.IS_NOT_SET)


A, B = Atom("a", Op.IS_SET), Atom("b", Op.IS_SET)


@pytest.mark.parametrize(
    ("node", "matching"),
    [
        (AllOf((A, B)), ["ab"]),
        (AllOf((A,)), ["a", "ab"]),
        (AnyOf((A, B)), ["a", "b", "ab"]),
        (AnyOf((B,)), ["b", "ab"]),
        (Not(A), ["", "b"]),
        (Not(AnyOf((A, B))), [""]),
        (AllOf((A, Not(B))), ["a"]),
        (Not(Atom("a", Op.NEQ, 1)), ["", "a", "b", "ab"]),  # the attribute is there with 1, or not there
        (SegmentRef("s"), ["b", "ab"]),
        (AllOf((SegmentRef("s"), SegmentRef("gone"))), []),
    ],
)
def test_combinations(node: Any, matching: list[str]) -> None:
    tests = {"s": matcher_of(B, lambda _: never)}
    test = matcher_of(node, lambda key: tests.get(key, never))
    for letters in ("", "a", "b", "ab"):
        assert test(dict.fromkeys(letters, 1)) is (letters in matching), letters


BUCKET = Bucket("user.id", "feature-x-2026", 791, 6075)  # u-2 is the first that is in it, and u-1 the last


@pytest.mark.parametrize(
    ("value", "matches"),
    [("u-1", True), ("u-2", True), ("u_42", False), ("", False), (1, False), (True, False), (None, False)],
)
def test_a_bucket(value: Any, matches: bool) -> None:
    assert segment_matcher(Segment("s", None, BUCKET), lambda _: never)({"user.id": value}) is matches
    assert segment_matcher(Segment("s", None, BUCKET), lambda _: never)({"user": value}) is False


@pytest.mark.parametrize(("start", "end", "matches"), [(6075, 6075, True), (6074, 6074, False), (6076, 9999, False)])
def test_both_ends_of_a_bucket_are_in_it(start: int, end: int, matches: bool) -> None:
    bucket = Bucket("user.id", "feature-x-2026", start, end)
    assert segment_matcher(Segment("s", None, bucket), lambda _: never)({"user.id": "u-1"}) is matches


def test_a_bucket_and_a_predicate_both_have_to_match() -> None:
    test = segment_matcher(Segment("s", Atom("plan", Op.EQ, "gold"), BUCKET), lambda _: never)
    assert test({"user.id": "u-1", "plan": "gold"})
    assert not test({"user.id": "u-1", "plan": "silver"})
    assert not test({"user.id": "u_42", "plan": "gold"})
    assert not segment_matcher(Segment("s"), lambda _: never)({"user.id": "u-1"})
