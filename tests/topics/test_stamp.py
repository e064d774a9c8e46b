"""Stamps: what meta becomes, and what is read from it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seamark.limits import META_BYTES_MAX, META_KEYS_MAX, SEQ_MAX, STAMP_BYTES_MAX
from seamark.log.record import Record
from seamark.topics.stamp import Stamps, may_be_stamped

STAMPS = Stamps("a->b", "a", "9f3c0a7be1d24c55")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def copy(meta: bytes | None) -> Record:
    return Record(1, 1, b"", meta=meta)


def stamp_in(meta: bytes) -> Any:
    return json.loads(meta)["_topics_router"]


def test_a_stamp_says_where_a_copy_comes_from() -> None:
    stamp = stamp_in(STAMPS.on(None, 17))
    topic_id = stamp["source_topic_id"]
    assert stamp == {
        "idempotency_key": f"router:a->b:{topic_id}:1:17",
        "router": "a->b",
        "source_topic": "a",
        "source_topic_id": topic_id,
        "source_epoch": 1,
        "source_seq": 17,
    }
    assert 0 <= topic_id < 2**53


def test_another_life_of_the_source_has_another_key() -> None:
    assert Stamps("a->b", "a", "other").key(1) != STAMPS.key(1)


def test_an_object_keeps_its_members_as_they_were_written() -> None:
    meta = STAMPS.on(b'{ "z":1.50,"a": 12345678901234567890123,"n":null }', 3)
    assert meta.startswith(b'{"z":1.50,"a":12345678901234567890123,"n":null,"_topics_router":{')


def test_what_has_no_room_for_a_member_is_wrapped() -> None:
    full = {f"k{number}": number for number in range(META_KEYS_MAX)}
    for original in (full, [1, 2], "text", 7, True):
        stamped = json.loads(STAMPS.on(json.dumps(original).encode(), 3))
        assert list(stamped) == ["_topics_original_meta", "_topics_router"]
        assert stamped["_topics_original_meta"] == original
    nearly = {f"k{number}": number for number in range(META_KEYS_MAX - 1)}
    assert len(json.loads(STAMPS.on(json.dumps(nearly).encode(), 3))) == META_KEYS_MAX


def test_the_next_router_puts_its_own_stamp_in_place() -> None:
    first = STAMPS.on(json.dumps({f"k{number}": 0 for number in range(META_KEYS_MAX)}).encode(), 3)
    second = json.loads(Stamps("b->c", "b", "x").on(first, 9))
    assert second["_topics_router"]["router"] == "b->c"
    assert len(second) == 2
    nearly = STAMPS.on(json.dumps({f"k{number}": 0 for number in range(META_KEYS_MAX - 1)}).encode(), 3)
    assert len(json.loads(Stamps("b->c", "b", "x").on(nearly, 9))) == META_KEYS_MAX


def test_the_largest_stamp_fits_the_room_that_it_has() -> None:
    meta = b'{"m":"' + b"x" * (META_BYTES_MAX - 8) + b'"}'
    longest = Stamps("r" * 255, "s" * 255, "i" * 64)
    assert len(longest.on(meta, SEQ_MAX)) <= META_BYTES_MAX + STAMP_BYTES_MAX
    wrapped = b"[" + b'"' + b"x" * (META_BYTES_MAX - 4) + b'"]'
    assert len(longest.on(wrapped, SEQ_MAX)) <= META_BYTES_MAX + STAMP_BYTES_MAX


@given(JSON, st.integers(1, SEQ_MAX))
def test_a_stamp_is_read_back(original: object, seq: int) -> None:
    record = copy(STAMPS.on(json.dumps(original).encode(), seq))
    assert may_be_stamped(record)
    assert STAMPS.seq(record) == seq


@given(
    st.none()
    | JSON.map(json.dumps)
    | st.text()
    | st.sampled_from(['{"_topics_router":{"idempotency_key":1}}', '{"_topics_router":7}'])
)
def test_what_is_no_stamp_of_ours_is_none(text: str | None) -> None:
    assert STAMPS.seq(copy(None if text is None else text.encode("utf-8", "replace"))) is None


def test_a_stamp_of_another_router_or_life_is_not_ours() -> None:
    for other in (Stamps("a->c", "a", "9f3c0a7be1d24c55"), Stamps("a->b", "a", "other")):
        assert STAMPS.seq(copy(other.on(None, 5))) is None
    for seq in ("", "x", "1:2", "-1", "٣", "9" * 20):
        forged = json.dumps({"_topics_router": {"idempotency_key": STAMPS.key(0)[:-1] + seq}}).encode()
        assert STAMPS.seq(copy(forged)) is None
