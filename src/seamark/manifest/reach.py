"""Which segments rules come to, and how much there is to ask: every reference written out can be far more than the files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple, assert_never

from seamark import limits
from seamark.manifest.model import Segment
from seamark.manifest.predicate import AllOf, AnyOf, Atom, Node, Not, SegmentRef


class Extent(NamedTuple):
    """Of a predicate with every segment written out: how many questions, and how deep. Neither grows far beyond its bound."""

    steps: int
    depth: int

    @property
    def is_small(self) -> bool:
        return self.steps <= limits.EVALUATION_STEPS_MAX and self.depth <= limits.EVALUATION_DEPTH_MAX


_NONE = Extent(0, 0)
_ONE = Extent(1, 1)


def in_order(roots: Iterable[str], segments: Mapping[str, Segment], known: Container[str] = ()) -> list[str]:
    """Every segment that the roots come to, after all that it names itself; without those that are `known`, and what only they
    come to. A reference that closes a circle is as if it were not there."""
    order: list[str] = []
    seen: set[str] = set()
    for root in sorted(roots):
        ahead: list[tuple[str, Iterator[str]]] = []
        for key in (root,):
            if key in segments and key not in seen and key not in known:
                seen.add(key)
                ahead.append((key, iter(sorted(segments[key].segments))))
        while ahead:
            here, rest = ahead[-1]
            for key in rest:
                if key in segments and key not in seen and key not in known:
                    seen.add(key)
                    ahead.append((key, iter(sorted(segments[key].segments))))
                    break
            else:
                order.append(here)
                ahead.pop()
    return order


def extent_of(node: Node, known: Mapping[str, Extent]) -> Extent:
    """`known` has the extents of the segments that the node names."""
    match node:
        case Atom():
            return _ONE
        case SegmentRef():
            return together([known.get(node.key, _NONE)])
        case Not():
            return together([extent_of(node.part, known)])
        case AllOf() | AnyOf():
            return together([extent_of(part, known) for part in node.parts])
    assert_never(node)


def extent_of_segment(segment: Segment, known: Mapping[str, Extent]) -> Extent:
    parts = [] if segment.predicate is None else [extent_of(segment.predicate, known)]
    return together(parts if segment.bucket is None else [*parts, _ONE])


def together(parts: Iterable[Extent]) -> Extent:
    """One level above its parts."""
    steps, depth = 1, 0
    for part in parts:
        steps = min(steps + part.steps, limits.EVALUATION_STEPS_MAX + 1)
        depth = max(depth, part.depth)
    return Extent(steps, min(depth, limits.EVALUATION_DEPTH_MAX) + 1)
