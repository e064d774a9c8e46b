"""Predicates: what has to be true of a context. The nodes are values; `evaluate` makes functions of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool


class Op(enum.Enum):
    """The operators by their names in a file."""

    EQ = "eq"
    NEQ = "neq"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NOT_IN = "not_in"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    SEMVER_EQ = "semver_eq"
    SEMVER_GT = "semver_gt"
    SEMVER_GTE = "semver_gte"
    SEMVER_LT = "semver_lt"
    SEMVER_LTE = "semver_lte"
    IS_SET = "is_set"
    IS_NOT_SET = "is_not_set"


@dataclass(frozen=True, slots=True)
class Atom:
    """One attribute, asked one question. `operand` is a tuple for `in` and `not_in`, and None for `is_set` and `is_not_set`."""

    attribute: str
    op: Op
    operand: Scalar | tuple[Scalar, ...] | None = None


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """True where the segment matches the same context."""

    key: str


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


Node: TypeAlias = Atom | SegmentRef | AllOf | AnyOf | Not

# What a file calls the nodes that are made of others. The contract does not name them: this table is the only place that does.
COMBINATORS: dict[str, type[AllOf | AnyOf | Not]] = {"all": AllOf, "any": AnyOf, "not": Not}


class Operand(enum.Enum):
    """What an operator takes."""

    SCALAR = "a string, a number or a boolean"
    NUMBER = "a number"
    TEXT = "a string"
    VERSION = "a version by Semantic Versioning 2.0.0"
    SET = "a non-empty array of strings, numbers or booleans"
    NONE = "nothing"


OPERANDS: dict[Op, Operand] = {
    **dict.fromkeys((Op.EQ, Op.NEQ), Operand.SCALAR),
    **dict.fromkeys((Op.GT, Op.GTE, Op.LT, Op.LTE), Operand.NUMBER),
    **dict.fromkeys((Op.IN, Op.NOT_IN), Operand.SET),
    **dict.fromkeys((Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS_WITH, Op.ENDS_WITH), Operand.TEXT),
    **dict.fromkeys((Op.SEMVER_EQ, Op.SEMVER_GT, Op.SEMVER_GTE, Op.SEMVER_LT, Op.SEMVER_LTE), Operand.VERSION),
    **dict.fromkeys((Op.IS_SET, Op.IS_NOT_SET), Operand.NONE),
}
