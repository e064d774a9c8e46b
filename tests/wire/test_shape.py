from __future__ import annotations

import enum
from typing import Annotated, Any

import msgspec

from seamark.wire.shape import of_example, of_type


class Mode(enum.StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Inner(msgspec.Struct):
    seq: Annotated[int, msgspec.Meta(ge=0, le=9)]
    data: msgspec.Raw = msgspec.Raw()


class Body(msgspec.Struct):
    inner: dict[str, Inner]
    mode: Mode = Mode.FAST
    names: list[str] | None = None
    pair: tuple[float, ...] = ()
    any: Any = None


def test_an_example() -> None:
    example = {"a": [{"b": 1.5, "c": True}], "d": None, "e": [], "f": {"x": 1}, "g": "text"}
    assert of_example(example, {"f": {"type": "object"}, "c": {}}) == {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "number"}, "c": {}}}},
            "d": {}, "e": {"type": "array", "items": {}}, "f": {"type": "object"}, "g": {"type": "string"},
        },
    }  # fmt: skip


def test_a_type() -> None:
    inner = {
        "type": "object",
        "required": ["seq"],
        "properties": {"seq": {"type": "integer", "minimum": 0, "maximum": 9}, "data": {}},
    }
    assert of_type(Body) == {
        "type": "object",
        "required": ["inner"],
        "properties": {
            "inner": {"type": "object", "additionalProperties": inner},
            "mode": {"enum": ["fast", "slow"], "default": "fast"},
            "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "pair": {"type": "array", "items": {"type": "number"}},
            "any": {"default": None},
        },
    }
