"""Composite cursors: bytes out, places back, and nothing from junk."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.limits import LEGS_PER_SESSION_MAX, WATCH_INLINE_TOPICS_MAX
from seamark.topics.cursor import CHECKPOINT, TopicSet, restored, rewound, solo_id, topic_set
from seamark.topics.model import U64_MAX, stream_of

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}", fullmatch=True)
SEQS = st.integers(0, U64_MAX)


def topics(*names: str) -> TopicSet:
    return topic_set(map(stream_of, names))


def test_the_samples_of_the_contract() -> None:
    assert solo_id(b"orders", 4098) == b"eyJvcmRlcnMiOjQwOTh9"
    assert topics("orders").event_id([4098]) == b"eyJvcmRlcnMiOjQwOTh9"
    assert topics("orders.dlq").event_id([12]) == b"eyJvcmRlcnMuZGxxIjoxMn0"
    both = topics("orders", "notifications", "audit")
    sample = b"eyJvcmRlcnMiOjUyMTAsIm5vdGlmaWNhdGlvbnMiOjg4MTMwfQ"
    assert both.streams == ("topics:audit", "topics:notifications", "topics:orders")
    assert both.places(sample) == [(1, 88130), (2, 5210)]


@given(st.sets(NAMES, min_size=1, max_size=20), st.data())
def test_an_id_says_what_was_written(names: set[str], data: st.DataObject) -> None:
    chosen = topics(*names)
    seqs = data.draw(st.lists(SEQS, min_size=len(names), max_size=len(names)))
    event_id = chosen.event_id(seqs)
    assert chosen.places(event_id) == list(enumerate(seqs))
    assert len(event_id) <= 4 * 1024 + 16
    if not event_id.startswith(CHECKPOINT):
        padded = event_id + b"=" * (-len(event_id) % 4)
        written = json.loads(base64.urlsafe_b64decode(padded))
        assert written == dict(zip(sorted(names), seqs, strict=True))
        assert chosen.places(padded) == list(enumerate(seqs))  # a client may have padded it


@pytest.mark.parametrize("seq", [7, 2**32 - 1, 2**32, U64_MAX])
def test_many_topics_are_packed_into_a_token(seq: int) -> None:
    fits = topics(*(f"topic-{n:03}" for n in range(WATCH_INLINE_TOPICS_MAX)))
    assert not fits.event_id([seq] * len(fits)).startswith(CHECKPOINT)
    many = topics(*(f"{n:03}-{'x' * 251}" for n in range(LEGS_PER_SESSION_MAX)))
    seqs = [seq - n % 7 for n in range(LEGS_PER_SESSION_MAX)]
    token = many.event_id(seqs)
    assert token.startswith(CHECKPOINT)
    assert len(token) < 3_000
    assert many.places(token) == list(enumerate(seqs))


def test_long_names_are_packed_as_well() -> None:
    long = topics(*(f"{n}{'x' * 250}" for n in range(20)))
    assert long.event_id([1] * 20).startswith(CHECKPOINT)


def test_a_token_of_other_topics_says_nothing() -> None:
    one, other = (topics(*(f"{kind}{n}" for n in range(100))) for kind in "ab")
    assert other.places(one.event_id([1] * 100)) == []
    assert topics("a0", "a1").places(one.event_id([1] * 100)) == []


def test_an_id_speaks_only_of_the_topics_it_names() -> None:
    chosen = topics("a", "b")
    assert chosen.places(base64.urlsafe_b64encode(b'{"a":4,"b":9,"z":1}')) == [(0, 4), (1, 9)]
    assert chosen.places(base64.urlsafe_b64encode(b'{"b":9}')) == [(1, 9)]


@pytest.mark.parametrize(
    "text", ["", "null", "[]", '{"a":-1}', '{"a":1.0}', '{"a":true}', '{"a":"1"}', '{"a":null}', '{"a":1', "{" * 9_000]
)
def test_what_is_no_map_says_nothing(text: str) -> None:
    assert topics("a").places(base64.urlsafe_b64encode(text.encode()).rstrip(b"=")) == []


def test_a_seq_beyond_64_bits_says_nothing() -> None:
    assert topics("a").places(base64.urlsafe_b64encode(b'{"a":%d}' % (U64_MAX + 1))) == []


@given(st.binary(max_size=60))
def test_junk_says_nothing(junk: bytes) -> None:
    chosen = topics("a")
    for event_id in (junk, CHECKPOINT + junk):
        for position, seq in chosen.places(event_id):  # by chance it may be an id
            assert position == 0
            assert 0 <= seq <= U64_MAX


def test_a_rewind_never_advances() -> None:
    assert (rewound(10, 4), rewound(7, 9), rewound(5, 5)) == (4, 7, 5)


def test_a_place_saved_before_a_crash_is_only_a_lower_bound() -> None:
    assert restored(10, 14, head=20) == 14
    assert restored(10, 4, head=20) == 4
    assert restored(10, 25, head=20) == 10
    assert restored(10, 10, head=10) == 10
