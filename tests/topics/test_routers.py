"""What routers may be, and which may stand beside one another."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadInput, QuotaExceeded, RouterCycle, TopicIncompatible
from seamark.topics.routers import Roster, Router


def router(name: str, source: str, dest: str, **more: object) -> Router:
    return Router(name=name, source=source, dest=dest, **more)  # type: ignore[arg-type]


def roster(*routers: Router, routers_max: int = 0) -> Roster:
    made = Roster(routers_max)
    for one in routers:
        made.check(one)
        made.put(one)
    return made


@pytest.mark.parametrize("name", ["r", "jobs->audit", "a:b.c_d-e>", "0", "x" * 255])
def test_a_router_is_named_like_a_topic_or_with_an_arrow(name: str) -> None:
    router(name, "a", "b").check()


@pytest.mark.parametrize("name", ["", ">a", "-a", "a b", "a/b", "é", "x" * 256, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput):
        router(name, "a", "b").check()


@pytest.mark.parametrize(("source", "dest"), [("a", "a"), ("", "b"), ("a", ""), ("a>b", "c"), ("a", "-")])
def test_the_ends_are_two_topics(source: str, dest: str) -> None:
    with pytest.raises(BadInput):
        router("r", source, dest).check()


def test_a_topic_is_fed_from_one_source_by_any_number_of_routers() -> None:
    both = roster(router("r1", "a", "b"), router("r2", "a", "b"))
    assert sorted(one.name for one in both.into("b")) == ["r1", "r2"]
    with pytest.raises(TopicIncompatible) as caught:
        both.check(router("r3", "c", "b", allow_cycle=True))
    assert caught.value.fields == {"topic": "b", "reason": "router_dest_fan_in"}


def test_a_router_is_not_led_elsewhere() -> None:
    one = roster(router("r", "a", "b"))
    for moved in (router("r", "a", "c"), router("r", "c", "b")):
        with pytest.raises(TopicIncompatible) as caught:
            one.check(moved)
        assert caught.value.fields["reason"] == "router_repoint_forbidden"
    one.check(router("r", "a", "b", preserve_tag=False))


def test_fan_in_is_seen_before_a_move_and_a_move_before_a_full_roster() -> None:
    full = roster(router("r1", "a", "b"), router("r2", "c", "d"), routers_max=2)
    with pytest.raises(TopicIncompatible, match="fed from a") as caught:
        full.check(router("r2", "c", "b"))
    assert caught.value.fields["reason"] == "router_dest_fan_in"
    with pytest.raises(QuotaExceeded) as refused:
        full.check(router("r3", "d", "c"))  # it would also close a circle
    assert refused.value.fields == {"limit": "max_routers", "max": 2}
    full.check(router("r2", "c", "d"))
    full.remove("r1")
    full.check(router("r3", "x", "y"))


def test_a_circle_is_refused_with_its_topics() -> None:
    line = roster(router("r1", "a", "b"), router("r2", "b", "c"), router("side", "b", "x"))
    with pytest.raises(RouterCycle) as caught:
        line.check(router("r3", "c", "a"))
    assert caught.value.fields == {"cycle": ["c", "a", "b", "c"]}
    line.check(router("r3", "c", "a", allow_cycle=True))
    with pytest.raises(RouterCycle) as two:
        line.check(router("back", "b", "a"))
    assert two.value.fields == {"cycle": ["b", "a", "b"]}


def test_what_stands_in_a_circle_may_be_put_again_but_loses_no_permission() -> None:
    mirror = roster(router("there", "a", "b"), router("back", "b", "a", allow_cycle=True))
    mirror.check(router("there", "a", "b", preserve_node=False))
    mirror.check(router("back", "b", "a", allow_cycle=True, preserve_node=False))
    with pytest.raises(RouterCycle):
        mirror.check(router("back", "b", "a"))


def test_a_router_is_found_by_the_topics_at_its_ends_until_it_is_removed() -> None:
    line = roster(router("r2", "b", "c"), router("r1", "a", "b"))
    assert [one.name for one in line.naming("b")] == ["r2", "r1"]
    assert line.names() == ["r1", "r2"]
    line.remove("r2")
    assert (line.naming("c"), line.find("r2"), len(line)) == ([], None, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14))
def test_no_circle_comes_about_without_permission(edges: list[tuple[int, int]]) -> None:
    built = Roster()
    for number, (source, dest) in enumerate(edges):
        one = router(f"r{number}", f"t{source}", f"t{dest}")
        if source == dest:
            continue
        try:
            built.check(one)
        except TopicIncompatible:
            continue
        except RouterCycle as circle:
            way = circle.fields["cycle"]
            assert way[0] == way[-1] == one.source
            assert way[1] == one.dest
            steps = {(each.source, each.dest) for each in built} | {(one.source, one.dest)}
            assert all(step in steps for step in itertools.pairwise(way))
            continue
        built.put(one)
    left = {(one.source, one.dest) for one in built}
    while free := {topic for _, topic in left} - {topic for topic, _ in left}:
        left = {edge for edge in left if edge[1] not in free}
    assert not left, "what remains when ends are taken off is a circle"
