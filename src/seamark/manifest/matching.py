"""Predicates and segments as functions of a context. An attribute that is missing, or of a type that its operator does not know,
matches nothing, whatever the operator; a boolean is no number, and what is not a number is equal to nothing and to no other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, assert_never

from seamark.manifest.bucket import bucket_of
from seamark.manifest.grammar import kind_of
from seamark.manifest.model import Bucket, Context, Segment
from seamark.manifest.predicate import AllOf, AnyOf, Atom, Node, Not, Op, Scalar, SegmentRef
from seamark.manifest.semver import Precedence, precedence

Matcher: TypeAlias = Callable[[Context], bool]
Lookup: TypeAlias = Callable[[str], Matcher]

_ORDERS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.GT: operator.gt,
    Op.GTE: operator.ge,
    Op.LT: operator.lt,
    Op.LTE: operator.le,
    Op.SEMVER_EQ: operator.eq,
    Op.SEMVER_GT: operator.gt,
    Op.SEMVER_GTE: operator.ge,
    Op.SEMVER_LT: operator.lt,
    Op.SEMVER_LTE: operator.le,
}


def never(_: Context) -> bool:
    return False


def matcher_of(node: Node, lookup: Lookup) -> Matcher:
    """The function of a predicate; `lookup` has those of segments."""
    match node:
        case Atom():
            return _atom(node)
        case SegmentRef():
            return lookup(node.key)
        case AllOf():
            return _all([matcher_of(part, lookup) for part in node.parts])
        case AnyOf():
            return _any([matcher_of(part, lookup) for part in node.parts])
        case Not():
            inner = matcher_of(node.part, lookup)
            return lambda context: not inner(context)
    assert_never(node)


def segment_matcher(segment: Segment, lookup: Lookup) -> Matcher:
    """Both have to match where a segment has both."""
    tests = [] if segment.predicate is None else [matcher_of(segment.predicate, lookup)]
    if segment.bucket is not None:
        tests.append(_bucket(segment.bucket))
    return _all(tests) if tests else never


def _all(tests: Sequence[Matcher]) -> Matcher:
    if len(tests) == 1:
        return tests[0]

    def test(context: Context) -> bool:
        for part in tests:  # noqa: SIM110 - a generator costs more than what it asks
            if not part(context):
                return False
        return True

    return test


def _any(tests: Sequence[Matcher]) -> Matcher:
    if len(tests) == 1:
        return tests[0]

    def test(context: Context) -> bool:
        for part in tests:  # noqa: SIM110 - a generator costs more than what it asks
            if part(context):
                return True
        return False

    return test


def _bucket(bucket: Bucket) -> Matcher:
    attribute, salt, start, end = bucket.attribute, bucket.salt, bucket.start, bucket.end

    def test(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, str) and value != "" and start <= bucket_of(salt, value) <= end

    return test


def _atom(atom: Atom) -> Matcher:
    attribute, op, operand = atom.attribute, atom.op, atom.operand
    if op is Op.IS_SET:
        return lambda context: attribute in context
    if op is Op.IS_NOT_SET:
        return lambda context: attribute not in context
    if isinstance(operand, tuple):
        return _member(attribute, operand, inside=op is Op.IN)
    assert operand is not None
    if op in (Op.EQ, Op.NEQ):
        return _member(attribute, (operand,), inside=op is Op.EQ)
    if not isinstance(operand, str):
        return _ordered(attribute, operand, _ORDERS[op])
    if op in _ORDERS:
        return _version(attribute, operand, _ORDERS[op])
    return _text(attribute, operand, op)


def _member(attribute: str, operands: Iterable[Scalar], *, inside: bool) -> Matcher:
    """One of the operands, or of the type of one and none of them."""
    groups: dict[str, list[Any]] = {}
    for operand in operands:
        groups.setdefault(kind_of(operand), []).append(operand)
    tests = [_MEMBERS[kind](attribute, items, inside) for kind, items in groups.items()]
    return _any(tests)


def _texts(attribute: str, items: list[str], inside: bool) -> Matcher:
    if len(items) == 1:
        text = items[0]
        if inside:
            return lambda context: context.get(attribute) == text

        def other(context: Context) -> bool:
            value = context.get(attribute)
            return isinstance(value, str) and value != text

        return other
    texts = frozenset(items)

    def test(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, str) and (value in texts) is inside

    return test


def _numbers(attribute: str, items: list[float], inside: bool) -> Matcher:
    numbers = frozenset(item for item in items if item == item)  # noqa: PLR0124 - what is not a number is not itself

    def test(context: Context) -> bool:
        value = context.get(attribute)
        if not isinstance(value, int | float) or isinstance(value, bool) or value != value:  # noqa: PLR0124
            return False
        return (value in numbers) is inside

    return test


def _booleans(attribute: str, items: list[bool], inside: bool) -> Matcher:
    wanted = frozenset(items) if inside else frozenset({True, False}) - frozenset(items)
    if len(wanted) == 1:
        (only,) = wanted
        return lambda context: context.get(attribute) is only

    def test(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, bool) and value in wanted

    return test


_MEMBERS: dict[str, Callable[[str, list[Any], bool], Matcher]] = {
    "text": _texts,
    "number": _numbers,
    "boolean": _booleans,
}


def _ordered(attribute: str, operand: float, order: Callable[[Any, Any], bool]) -> Matcher:
    def test(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, int | float) and not isinstance(value, bool) and order(value, operand)

    return test


def _version(attribute: str, operand: str, order: Callable[[Any, Any], bool]) -> Matcher:
    wanted: Precedence | None = precedence(operand)
    assert wanted is not None

    def test(context: Context) -> bool:
        value = context.get(attribute)
        if not isinstance(value, str):
            return False
        found = precedence(value)
        return found is not None and order(found, wanted)

    return test


def _text(attribute: str, operand: str, op: Op) -> Matcher:
    def contains(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, str) and operand in value

    def not_contains(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, str) and operand not in value

    def starts_with(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, str) and value.startswith(operand)

    def ends_with(context: Context) -> bool:
        value = context.get(attribute)
        return isinstance(value, str) and value.endswith(operand)

    tests: dict[Op, Matcher] = {
        Op.CONTAINS: contains,
        Op.NOT_CONTAINS: not_contains,
        Op.STARTS_WITH: starts_with,
        Op.ENDS_WITH: ends_with,
    }
    return tests[op]
