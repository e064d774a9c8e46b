"""Retention and loss as clients see them, with a clock that moves when told: the examples of the contract."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from seamark.log.protocol import Declares
from seamark.log.watermarks import Loss
from tests.topics.rig import TopicsRig


class Seen(NamedTuple):
    """What one diff gives: the tombstone as (reason, first, last, missed), the seqs, the next cursor."""

    from_seq: int
    tombstone: tuple[str, int, int, int] | None
    seqs: list[int]
    following: int
    node: str | None = None


class Example(NamedTuple):
    """A life of one topic and what is seen at its end."""

    name: str
    steps: list[tuple[Any, ...]]
    state: dict[str, int]
    seen: list[Seen]


EXAMPLES = [
    Example(
        "1 a cap takes the oldest",
        [("config", {"cap_records": 3}), ("write", 6)],
        {"head_seq": 6, "earliest_seq": 4, "count": 3},
        [
            Seen(0, ("cap", 1, 3, 3), [4, 5, 6], 6),
            Seen(2, ("cap", 3, 3, 1), [4, 5, 6], 6),
            Seen(3, None, [4, 5, 6], 6),
        ],
    ),
    Example(
        "2 a deleted prefix is silent",
        [("write", 5), ("delete", {"before_seq": 3})],
        {"head_seq": 5, "earliest_seq": 3, "count": 3},
        [Seen(0, None, [3, 4, 5], 5)],
    ),
    Example(
        "3 a deletion inside does not move the front",
        [
            ("write", ["a", "b", "c", None]),
            ("delete", {"match": ["tag", "Eq", "a"]}),
            ("delete", {"match": ["tag", "Eq", "c"]}),
        ],
        {"head_seq": 4, "earliest_seq": 2, "count": 2},
        [Seen(0, None, [2, 4], 4)],
    ),
    Example(
        "4 a cap passes over what was deleted",
        [("config", {"cap_records": 4}), ("write", 4), ("delete", {"before_seq": 3}), ("write", 6)],
        {"head_seq": 10, "earliest_seq": 7, "count": 4},
        [Seen(0, ("cap", 1, 6, 6), [7, 8, 9, 10], 10)],
    ),
    Example(
        "5 a deletion above the floor is not loss",
        [("config", {"cap_records": 3}), ("write", 6), ("delete", {"before_seq": 6})],
        {"head_seq": 6, "earliest_seq": 6, "count": 1},
        [Seen(0, ("cap", 1, 3, 3), [6], 6), Seen(3, None, [6], 6)],
    ),
    Example(
        "6 age takes the oldest",
        [("config", {"ttl_ms": 150}), ("write", 3), ("pass", 0.2), ("write", 1)],
        {"head_seq": 4, "earliest_seq": 4, "count": 1},
        [Seen(0, ("ttl", 1, 3, 3), [4], 4)],
    ),
    Example(
        "7 age takes everything",
        [("config", {"ttl_ms": 150}), ("write", 3), ("pass", 0.2)],
        {"head_seq": 3, "earliest_seq": 4, "count": 0, "bytes": 0},
        [Seen(0, ("ttl", 1, 3, 3), [], 3)],
    ),
    Example(
        "8 two reasons are mixed as far as both reach",
        [
            ("config", {"ttl_ms": 150}),
            ("write", 4),
            ("pass", 0.2),
            ("write", 6),
            ("config", {"ttl_ms": 150, "cap_records": 4}),
        ],
        {"head_seq": 10, "earliest_seq": 7, "count": 4},
        [Seen(0, ("mixed", 1, 6, 6), [7, 8, 9, 10], 10), Seen(4, ("cap", 5, 6, 2), [7, 8, 9, 10], 10)],
    ),
    Example(
        "9 a topic made again begins anew",
        [("write", 5), ("remove",), ("write", 1)],
        {"head_seq": 1, "earliest_seq": 1, "count": 1},
        [Seen(5, ("recreated", 1, 1, 1), [1], 1)],
    ),
    Example(
        "10 also while it is empty",
        [("write", 5), ("remove",), ("config", {})],
        {"head_seq": 0, "earliest_seq": 1, "count": 0},
        [Seen(5, ("recreated", 1, 0, 1), [], 0)],
    ),
    Example(
        "11 one's own records only move the cursor",
        [("own", 3)],
        {"head_seq": 3, "earliest_seq": 1, "count": 3},
        [Seen(0, None, [], 3, node="me"), Seen(0, None, [1, 2, 3], 3, node="you")],
    ),
    Example(
        "a record lives through its last millisecond",
        [("config", {"ttl_ms": 150}), ("write", 1), ("pass", 0.15)],
        {"head_seq": 1, "earliest_seq": 1, "count": 1},
        [Seen(0, None, [1], 1)],
    ),
    Example(
        "bytes are capped like records",
        [("config", {"cap_bytes": 3}), ("write", 5)],
        {"head_seq": 5, "earliest_seq": 3, "count": 3, "bytes": 3},
        [Seen(0, ("cap", 1, 2, 2), [3, 4, 5], 5)],
    ),
    Example(
        "a tightened cap takes at once, and a relaxed one gives nothing back",
        [("write", 5), ("config", {"cap_records": 2}), ("config", {})],
        {"head_seq": 5, "earliest_seq": 4, "count": 2},
        [Seen(0, ("cap", 1, 3, 3), [4, 5], 5)],
    ),
    Example(
        "a clock that steps back gives nothing back",
        [("config", {"ttl_ms": 150}), ("write", 1), ("pass", 0.2), ("state",), ("step", -10.0)],
        {"head_seq": 1, "earliest_seq": 2, "count": 0},
        [Seen(0, ("ttl", 1, 1, 1), [], 1)],
    ),
    Example(
        "what the source of a topic had lost is told where it would stand",
        [("write", 2), ("lose", 4), ("write", 1)],
        {"head_seq": 5, "earliest_seq": 1, "count": 3},
        [Seen(0, None, [1, 2], 2), Seen(2, ("source_trim", 3, 4, 2), [5], 5)],
    ),
]


async def live(rig: TopicsRig, steps: list[tuple[Any, ...]]) -> None:
    for step, *given in steps:
        what = given[0] if given else None
        if step == "config":
            await rig.call("PUT", "/topics/t", what)
        elif step == "write":
            tags = what if isinstance(what, list) else [None] * int(what or 0)
            await rig.call("POST", "/topics/t", {"records": [{"data": 1, "tag": tag} for tag in tags]})
        elif step == "own":
            await rig.write("t", *range(int(what or 0)), node="me")
        elif step == "delete":
            await rig.call("POST", "/topics/t/delete", what)
        elif step == "remove":
            await rig.call("DELETE", "/topics/t")
        elif step == "pass":
            rig.clock.advance(what or 0)
        elif step == "step":
            rig.clock.step(what or 0)
        elif step == "lose":
            assert isinstance(rig.log, Declares)
            await rig.log.lose("topics:t", int(what or 0), Loss.SOURCE)
        else:
            await rig.state("t")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
async def test_the_contract_s_examples(rig: TopicsRig, example: Example) -> None:
    await live(rig, example.steps)
    for seen in example.seen:
        diff = await rig.diff("t", seen.from_seq, node=seen.node)
        told = diff["tombstone"]
        assert (told and (told["reason"], told["gap_from"], told["gap_to"], told["missed_estimate"])) == seen.tombstone
        assert [record["$seq"] for record in diff["records"]] == seen.seqs
        assert diff["next_from_seq"] == seen.following
        assert diff["caught_up"] is (seen.following == diff["head_seq"])
        assert diff["lag"] == diff["head_seq"] - seen.following
        if told:
            assert set(told) == {"gap_from", "gap_to", "reason", "missed_estimate", "earliest_seq", "head_seq"}
            assert (told["earliest_seq"], told["head_seq"]) == (diff["earliest_seq"], diff["head_seq"])
    state = await rig.state("t")
    assert {key: state[key] for key in example.state} == example.state
    assert state["next_seq"] == state["head_seq"] + 1
    assert (state["bytes"] == 0) is (state["count"] == 0)
