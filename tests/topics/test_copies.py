"""What is copied, and what the copy is."""

from __future__ import annotations

import pytest

from seamark.limits import ROUTER_HOPS_MAX
from seamark.log.protocol import TagMatch
from seamark.log.record import Draft, Record
from seamark.topics.copies import copy_of, hops, matches, wanted
from seamark.topics.routers import Router

RECORD = Record(7, 1, b' {"a" : 1} ', "web-1", "large-1", b'{ "m": 1 }')
PLAIN = Router(name="r", source="a", dest="b")


def again(draft: Draft) -> Record:
    return Record(1, 1, draft.payload, draft.node, draft.tag, draft.meta, draft.subject)


def test_a_copy_is_the_record_byte_for_byte() -> None:
    assert copy_of(PLAIN, RECORD, None) == Draft(RECORD.payload, "web-1", "large-1", RECORD.meta)


def test_node_and_tag_may_stay_behind() -> None:
    bare = Router(name="r", source="a", dest="b", preserve_node=False, preserve_tag=False)
    assert copy_of(bare, RECORD, None) == Draft(RECORD.payload, meta=RECORD.meta)


@pytest.mark.parametrize(
    ("match", "tag", "is_matched"),
    [
        (TagMatch("a"), "a", True),
        (TagMatch("a"), "ab", False),
        (TagMatch("a", prefix=True), "ab", True),
        (TagMatch("", prefix=True), "", True),
        (TagMatch("", prefix=True), None, False),
        (TagMatch(""), None, False),
    ],
)
def test_a_filter_wants_a_tag(match: TagMatch, tag: str | None, is_matched: bool) -> None:
    assert matches(match, tag) is is_matched
    accept = wanted(Router(name="r", source="a", dest="b", filter=match))
    assert accept is not None
    assert accept(Record(1, 1, b"", tag=tag)) is is_matched


def test_a_router_without_a_filter_looks_at_nothing() -> None:
    assert wanted(PLAIN) is None


def test_a_circle_ends_after_so_many_copies_and_other_routers_pass_the_count_on() -> None:
    circular = Router(name="r", source="a", dest="b", allow_cycle=True)
    accept = wanted(circular)
    assert accept is not None
    record, copies = RECORD, 0
    while accept(record):
        record = again(copy_of(circular, record, None))
        passed_on = again(copy_of(PLAIN, record, None))
        copies += 1
        assert hops(record) == hops(passed_on) == copies
    assert copies == ROUTER_HOPS_MAX
