"""Why a flag answered as it did, in the words of OpenFeature: they tell a rule about a share of all entities from one about who asks,
and an answer that nothing could have changed from one where no rule matched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, assert_never

from seamark.manifest.evaluate import DEFAULT, steps
from seamark.manifest.model import Manifest
from seamark.manifest.predicate import AllOf, AnyOf, Atom, Node, Not, SegmentRef
from seamark.manifest.reach import in_order

Why: TypeAlias = Literal["SPLIT", "TARGETING_MATCH", "DEFAULT", "STATIC"]


def why(manifest: Manifest, key: str, environment: str, rule_matched: str, *, include_testing: bool = False) -> Why:
    """Of an answer that this manifest gave."""
    rules, _ = steps(manifest.flags[key], environment, include_testing=include_testing)
    if rule_matched == DEFAULT:
        return "DEFAULT" if rules else "STATIC"
    rule = rules[int(rule_matched.removeprefix("rule:"))]
    reached = in_order(_named(rule.audience), manifest.segments)
    buckets = any(manifest.segments[segment].bucket is not None for segment in reached)
    return "SPLIT" if buckets else "TARGETING_MATCH"


def _named(node: Node) -> Iterator[str]:
    match node:
        case SegmentRef():
            yield node.key
        case Not():
            yield from _named(node.part)
        case AllOf() | AnyOf():
            for part in node.parts:
                yield from _named(part)
        case Atom():
            return
        case _:
            assert_never(node)
