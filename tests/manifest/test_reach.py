from __future__ import annotations

from seamark.limits import EVALUATION_DEPTH_MAX, EVALUATION_STEPS_MAX
from seamark.manifest.model import Bucket, Segment
from seamark.manifest.predicate import AllOf, AnyOf, Atom, Node, Not, Op, SegmentRef
from seamark.manifest.reach import Extent, extent_of, extent_of_segment, in_order

ATOM = Atom("a", Op.IS_SET)


def segments(**named: str) -> dict[str, Segment]:
    """Each names those whose keys are its letters."""
    return {key: Segment(key, segments=frozenset(letters)) for key, letters in named.items()}


def test_what_is_named_comes_first() -> None:
    assert in_order("a", segments(a="bc", b="d", c="d", d="", e="a")) == ["d", "b", "c", "a"]
    assert in_order("ec", segments(a="bc", b="d", c="d", d="", e="a")) == ["d", "c", "b", "a", "e"]
    assert in_order("", segments(a="")) == []
    assert in_order("ec", segments(a="bc", b="d", c="d", d="", e="a"), {"c", "d"}) == ["b", "a", "e"]


def test_circles_and_gaps_end() -> None:
    assert in_order("a", segments(a="bx", b="a")) == ["b", "a"]
    assert in_order("a", segments(a="a")) == ["a"]
    assert in_order("x", segments(a="a")) == []


def test_how_much_there_is_to_ask() -> None:
    assert extent_of(ATOM, {}) == Extent(1, 1)
    assert extent_of(Not(ATOM), {}) == Extent(2, 2)
    assert extent_of(AllOf((Not(Not(ATOM)), ATOM)), {}) == Extent(5, 4)
    assert extent_of(AnyOf((ATOM, Not(ATOM))), {}) == Extent(4, 3)
    assert extent_of(SegmentRef("s"), {"s": Extent(7, 3)}) == Extent(8, 4)
    assert extent_of(SegmentRef("gone"), {}) == Extent(1, 1)
    bucket = Bucket("id", "salt", 0, 1)
    assert extent_of_segment(Segment("s", Not(ATOM), bucket), {}) == Extent(4, 3)
    assert extent_of_segment(Segment("s", None, bucket), {}) == Extent(2, 2)


def test_extents_stop_growing() -> None:
    known: dict[str, Extent] = {}
    node: Node = ATOM
    for number in range(200):
        known[f"s{number}"] = extent_of(AnyOf((node, node)), known)
        node = SegmentRef(f"s{number}")
    assert known["s199"] == Extent(EVALUATION_STEPS_MAX + 1, EVALUATION_DEPTH_MAX + 1)
    assert known["s5"].is_small
    assert not known["s199"].is_small
    assert not Extent(1, EVALUATION_DEPTH_MAX + 1).is_small
    assert not Extent(EVALUATION_STEPS_MAX + 1, 1).is_small
    assert Extent(EVALUATION_STEPS_MAX, EVALUATION_DEPTH_MAX).is_small
