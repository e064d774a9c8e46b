"""Fields from the file: the table of handlers, with the options that each takes."""

from __future__ import annotations

import math
from collections.abc import Callable

from seamark import limits
from seamark.match.constraint import INT_MAX, INT_MIN
from seamark.notify.configtree import Node, refuse
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
from seamark.notify.places import POINT_CLOUD, POLYGON, PointCloudField, PolygonField


def read_fields(node: Node) -> dict[str, Field]:
    """The `identifier` of an event type. Raises BadConfig."""
    fields = {name: _field(name, node.node(name)) for name in node}
    clouds = [field.name for field in fields.values() if isinstance(field, PointCloudField)]
    for name in clouds:
        if name != POINT_CLOUD:
            refuse(node.at(name), "a PointCloudHandler is only taken under its own name", f"the name {POINT_CLOUD}")
        if POLYGON in fields:
            refuse(node.at(POLYGON), f"subscribers ask for a {POINT_CLOUD} with it", "one of the two")
    return fields


def _field(name: str, node: Node) -> Field:
    handler = node.text("type")
    kind = HANDLERS.get(handler)
    if kind is None:
        refuse(node.at("type"), f"there is no handler {handler!r}", ", ".join(HANDLERS))
    make, options = kind
    node.only({"type", "required", "description", *options})
    read = {key: option(node, key) for key, option in options.items() if key in node}
    if handler == EnumField.handler and "values" not in read:
        refuse(node.at("values"), "it is missing", "a list of words")
    return make(
        name,
        required=node.flag("required"),
        description=node.text("description") if "description" in node else None,
        **read,
    )


def _format(node: Node, key: str) -> str:
    text = node.text(key)
    if text not in DateField.FORMATS:
        refuse(node.at(key), f"{text!r} is not valid", " or ".join(DateField.FORMATS))
    return text


def _int_range(node: Node, key: str) -> tuple[int, int]:
    found = node.raw(key)
    if (
        not isinstance(found, list)
        or len(found) != 2
        or not all(type(bound) is int and INT_MIN <= bound <= INT_MAX for bound in found)
        or found[0] > found[1]
    ):
        refuse(node.at(key), f"{found!r} is not valid", "[min, max] as 64-bit integers")
    return found[0], found[1]


def _float_range(node: Node, key: str) -> tuple[float, float]:
    found = node.raw(key)
    if (
        not isinstance(found, list)
        or len(found) != 2
        or not all(type(bound) in (int, float) and math.isfinite(bound) for bound in found)
        or found[0] > found[1]
    ):
        refuse(node.at(key), f"{found!r} is not valid", "[min, max] as finite numbers")
    return float(found[0]), float(found[1])


def _max_length(node: Node, key: str) -> int:
    return node.count(key, least=0, most=limits.SEQ_MAX)


def _max_points(node: Node, key: str) -> int:
    return node.count(key, least=1, most=limits.POINT_CLOUD_POINTS_MAX)


Option = Callable[[Node, str], object]
HANDLERS: dict[str, tuple[Callable[..., Field], dict[str, Option]]] = {
    StringField.handler: (StringField, {"max_length": _max_length}),
    IntField.handler: (IntField, {"range": _int_range}),
    FloatField.handler: (FloatField, {"range": _float_range}),
    EnumField.handler: (EnumField, {"values": Node.texts}),
    DateField.handler: (DateField, {"canonical_format": _format}),
    TimeField.handler: (TimeField, {}),
    ExpverField.handler: (ExpverField, {"default": Node.text}),
    PolygonField.handler: (PolygonField, {}),
    PointCloudField.handler: (PointCloudField, {"max_points": _max_points}),
}
