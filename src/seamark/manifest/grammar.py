"""Predicates as a file writes them: from TOML values to nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from seamark import limits
from seamark.manifest.predicate import COMBINATORS, OPERANDS, Atom, Node, Not, Op, Operand, Scalar, SegmentRef
from seamark.manifest.reading import INT64_MAX, INT64_MIN, Mention, Reading, Spot, Use, quoted
from seamark.manifest.semver import precedence

_OPS = {op.value: op for op in Op}
_ATOM = ("attribute", "op")
_OPERAND = {Operand.SET: "values", Operand.NONE: None}  # of all others: "value"
_FORMS = ("attribute", "segment", *COMBINATORS)
_SEGMENT = frozenset({"segment"})


def read_predicate(value: object, reading: Reading, spot: Spot, depth: int = 1) -> Node | None:
    """The node that stands at `spot`, or None after telling `reading` why there is none."""
    if not isinstance(value, dict):
        return _wrong(reading, spot, "a predicate has to be a table")
    if depth > limits.PREDICATE_DEPTH_MAX:
        return _wrong(reading, spot, f"a predicate is nested deeper than {limits.PREDICATE_DEPTH_MAX}")
    forms = [name for name in _FORMS if name in value]
    if len(forms) != 1:
        return _wrong(reading, spot, f"a predicate has exactly one of {', '.join(map(quoted, _FORMS))}")
    form = forms[0]
    if form == "attribute":
        return _atom(value, reading, spot)
    reading.only(value, {form}, spot)
    if form == "segment":
        return read_segment_ref(value[form], reading, spot)
    return _combined(form, value[form], reading, spot, depth)


def read_segment_ref(key: object, reading: Reading, spot: Spot) -> SegmentRef | None:
    """A reference in a predicate or in a rule. Whether the segment is there, only the other files say."""
    if not isinstance(key, str):
        reading.say("E908", spot, "'segment' has to be a string", "segment")
        return None
    reading.segments.append(Mention(key, Spot(spot.words, spot.of("segment"))))
    return SegmentRef(key)


def _combined(form: str, inner: object, reading: Reading, spot: Spot, depth: int) -> Node | None:
    combinator = COMBINATORS[form]
    if combinator is Not:
        part = read_predicate(inner, reading, Spot(spot.words, spot.of(form)), depth + 1)
        return None if part is None else Not(part)
    if not isinstance(inner, list) or not inner:
        return _wrong(reading, spot, f"{quoted(form)} has to be a non-empty array of predicates", form)
    parts = []
    for place, value in enumerate(inner):
        part = read_predicate(value, reading, Spot(spot.words, f"{spot.of(form)}[{place}]"), depth + 1)
        if part is not None:
            parts.append(part)
    return combinator(tuple(parts)) if len(parts) == len(inner) else None  # type: ignore[arg-type]


def _atom(table: Mapping[str, Any], reading: Reading, spot: Spot) -> Atom | None:
    attribute, name = table["attribute"], table.get("op")
    if not isinstance(attribute, str) or not attribute:
        return _wrong(reading, spot, "'attribute' has to be a non-empty string", "attribute")
    op = _OPS.get(name) if isinstance(name, str) else None
    if op is None:
        if name is None:
            return _wrong(reading, spot, "a predicate on an attribute needs an 'op'")
        reading.say("E904", spot, f"unknown operator {quoted(str(name))}", "op")
        return None
    kind = OPERANDS[op]
    field = _OPERAND.get(kind, "value")
    for other in ("value", "values"):
        if other in table and other != field:
            return _wrong(reading, spot, f"{quoted(op.value)} takes no {quoted(other)}", other)
    if field is None:
        reading.only(table, _ATOM, spot)
        return Atom(attribute, op)
    reading.only(table, (*_ATOM, field), spot)
    operand: Any = table.get(field)
    why = _refusal(operand, kind)
    if why is not None:
        return _wrong(reading, spot, f"{quoted(op.value)} takes as {quoted(field)} {kind.value}{why}", field)
    items: list[Scalar] = operand if isinstance(operand, list) else [operand]
    for use in dict.fromkeys(map(kind_of, items)):
        reading.uses.append(Use(attribute, use, Spot(spot.words, spot.of(field))))
    return Atom(attribute, op, tuple(items) if isinstance(operand, list) else operand)


def kind_of(value: Scalar) -> str:
    """The type of a value as far as predicates tell types apart."""
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def _refusal(operand: object, kind: Operand) -> str | None:
    """None where an operator of this kind can take the operand; else what to add to what it takes."""
    if kind is Operand.SET:
        if not isinstance(operand, list) or not operand:
            return ""
        return next((why for item in operand if (why := _refusal(item, Operand.SCALAR)) is not None), None)
    if isinstance(operand, str):
        if kind is Operand.VERSION:
            return None if precedence(operand) is not None else ""
        return "" if kind is Operand.NUMBER else None
    if kind in (Operand.TEXT, Operand.VERSION) or not isinstance(operand, bool | int | float):
        return ""
    if isinstance(operand, bool):
        return "" if kind is Operand.NUMBER else None
    if isinstance(operand, int):
        return None if INT64_MIN <= operand <= INT64_MAX else "; an integer has to fit 64 bits"
    return "; not a number matches nothing" if math.isnan(operand) else None


def _wrong(reading: Reading, spot: Spot, text: str, name: str | None = None) -> Atom | None:
    """Nothing, after saying why."""
    reading.say("E905", spot, text, name)
    return None
