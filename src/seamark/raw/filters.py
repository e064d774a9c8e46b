"""The raw surface's filter: JSON in, `Filter` out.

`{"subject": [...], "polygon": "...", "point": "...", "exclude_nodes": [...]}`. In `subject` a string stands for itself,
`null` for any one token, and an object such as `{"gte": 5}` for a constraint; the operand's type says how the token is read
(an integer, a number, or text).
"""

from __future__ import annotations

from typing import Any

import msgspec

from seamark import limits
from seamark.errors import BadFilter
from seamark.match.constraint import Constraint, Kind, parse_constraint
from seamark.match.filter import Area, Filter
from seamark.match.spatial import parse_point, parse_polygon
from seamark.wire.strictjson import decode


class FilterBody(msgspec.Struct, forbid_unknown_fields=True):
    subject: list[str | dict[str, Any] | None] | None = None
    polygon: str | None = None
    point: str | None = None
    exclude_nodes: tuple[str, ...] = ()


_DECODER = msgspec.json.Decoder(FilterBody)
EVERYTHING = Filter()


def parse_filter(text: str) -> Filter:
    """The filter that a watch's `filter` parameter describes. Raises BadRequest or BadFilter."""
    body = decode(text.encode(), _DECODER, name="filter")
    if body.subject is None:
        return Filter(area=_area(body), exclude_nodes=body.exclude_nodes)
    if not 0 < len(body.subject) <= limits.SUBJECT_TOKENS_MAX:
        raise BadFilter(f"subject must have 1 to {limits.SUBJECT_TOKENS_MAX} tokens", field="subject")
    constraints: list[tuple[int, Constraint]] = []
    for position, token in enumerate(body.subject):
        if isinstance(token, dict):
            name = f"subject[{position}]"
            constraints.append((position, parse_constraint(token, kind=_kind(token), name=name)))
    pattern = tuple(token if isinstance(token, str) else None for token in body.subject)
    return Filter(subject=pattern, constraints=constraints, area=_area(body), exclude_nodes=body.exclude_nodes)


def _area(body: FilterBody) -> Area | None:
    if body.polygon is not None and body.point is not None:
        raise BadFilter("give polygon or point, not both", field="point")
    if body.polygon is not None:
        return parse_polygon(body.polygon)
    return None if body.point is None else parse_point(body.point)


def _kind(constraint: dict[str, Any]) -> Kind:
    """How the operands want the token to be read; what is none of these, `parse_constraint` refuses."""
    operands: list[Any] = []
    for operand in constraint.values():
        operands += operand if isinstance(operand, list) else [operand]
    if any(isinstance(operand, str) for operand in operands):
        return Kind.TEXT
    return Kind.FLOAT if any(isinstance(operand, float) for operand in operands) else Kind.INT
