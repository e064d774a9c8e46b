"""The model agrees with the worked examples, and keeps its own promises for whatever is done to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import NS_PER_MS
from seamark.errors import BadInput, HeadConflict, StreamFull
from seamark.log.protocol import Selector, TagMatch
from seamark.log.record import Draft
from seamark.log.settings import Discard, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.examples import EXAMPLES, SPEC_EXAMPLES, Delete, Example, Set, Wait, Write, gaps_of
from seamark.testing.model import StreamModel

START_NS = 1_000 * NS_PER_MS


def play(example: Example) -> StreamModel:
    model, now = StreamModel(example.settings), START_NS
    for step in example.steps:
        match step:
            case Write(drafts):
                model.append(drafts, now)
            case Wait(ms):
                now += ms * NS_PER_MS
            case Set(settings):
                model.configure(settings, now)
            case Delete(selector, count):
                assert model.delete(selector, now) == count
    model.retain(now)
    return model


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_worked_examples(example: Example) -> None:
    model = play(example)
    assert (model.head, model.evict_floor, model.earliest) == (example.head, example.evict_floor, example.earliest)
    assert model.count == example.count
    for seq, told in example.told.items():
        story = model.read(Cursor(seq), instance="i")
        assert (story.gaps, [record.seq for record in story.records]) == (gaps_of(told), told[1])


def test_the_examples_of_the_spec_are_all_there() -> None:
    """Examples 9 to 11 are about recreation and filters: see the contract."""
    assert [example.name.split()[0] for example in SPEC_EXAMPLES] == [str(n) for n in range(1, 9)]


def test_keys() -> None:
    model = StreamModel(StreamSettings(dedupe_window_ms=10))
    first = model.append([Draft(b"a"), Draft(b"b")], START_NS, key="k")
    repeat = model.append([Draft(b"other")], START_NS + 10 * NS_PER_MS, key="k", expect_head=99)
    assert (first.deduped, repeat.deduped) == (False, True)
    assert (repeat.first, repeat.last, repeat.head, repeat.ts) == (1, 2, 2, START_NS)
    assert model.append([Draft(b"c")], START_NS + 10 * NS_PER_MS + 1, key="k").first == 3
    assert not model.keys["k"].expired_once


def test_refusals_change_nothing() -> None:
    model = StreamModel(StreamSettings(cap_records=2, cap_bytes=9, discard=Discard.REJECT))
    model.append([Draft(b"a"), Draft(b"b")], START_NS)
    with pytest.raises(StreamFull):
        model.append([Draft(b"")], START_NS, key="k")
    with pytest.raises(HeadConflict):
        model.append([], START_NS, expect_head=1)
    with pytest.raises(BadInput):
        model.delete(Selector(), START_NS)
    assert (model.head, model.count, model.keys) == (2, 2, {})
    assert model.delete(Selector(seqs=(1,)), START_NS) == 1
    with pytest.raises(StreamFull):
        model.append([Draft(b"x" * 9)], START_NS)
    assert model.append([Draft(b"x" * 8)], START_NS).first == 3


def test_a_crash_is_a_gap_in_the_middle_until_the_front_reaches_it() -> None:
    model = StreamModel(StreamSettings())
    model.append([Draft(b"a"), Draft(b"b")], START_NS)
    model.crash(5)
    model.append([Draft(b"c")], START_NS)
    assert model.read(Cursor(0), instance="i").gaps == [Gap(3, 5, Loss.CRASH)]
    assert model.read(Cursor(3), instance="i").gaps == [Gap(4, 5, Loss.CRASH)]
    assert model.read(Cursor(5), instance="i").gaps == []
    assert (model.evict_floor, model.earliest, model.head) == (1, 1, 6)
    model.configure(StreamSettings(cap_records=1), START_NS)
    assert (model.evict_floor, model.earliest) == (6, 6)
    assert model.read(Cursor(0), instance="i").gaps == [Gap(1, 5, Loss.MIXED)]
    assert model.read(Cursor(2), instance="i").gaps == [Gap(3, 5, Loss.CRASH)]
    assert model.read(Cursor(2), instance="i").gaps == [Gap(3, 5, Loss.CRASH)]


def test_forgetting_loses_everything() -> None:
    model = StreamModel(StreamSettings())
    model.append([Draft(b"a"), Draft(b"b")], START_NS)
    model.forget(7)
    assert (model.head, model.count, model.evict_floor, model.earliest) == (7, 0, 8, 8)
    assert model.read(Cursor(1), instance="i").gaps == [Gap(2, 7, Loss.CRASH)]


def test_a_cursor_of_another_life_gets_everything() -> None:
    model = play(SPEC_EXAMPLES[4])
    for cursor in (Cursor(7), Cursor(6, "other"), Cursor(0, "other")):
        story = model.read(cursor, instance="mine")
        assert story.gaps == [Gap(1, 5, Loss.RECREATED)]
        assert [record.seq for record in story.records] == [6]


SETTINGS = st.builds(
    StreamSettings,
    cap_records=st.integers(0, 6),
    cap_bytes=st.integers(0, 12),
    ttl_ms=st.sampled_from([0, 0, 5, 50]),
    latest_per_subject=st.sampled_from([0, 0, 1, 2]),
    discard=st.sampled_from(Discard),
)
DRAFTS = st.lists(
    st.builds(
        Draft,
        st.binary(max_size=4),
        tag=st.sampled_from([None, "a", "ab"]),
        subject=st.sampled_from([None, ("x",), ("y",)]),
    ),
    max_size=4,
)
SELECTORS = st.builds(
    Selector,
    before=st.none() | st.integers(0, 30),
    tag=st.none() | st.builds(TagMatch, st.sampled_from(["a", "ab"]), st.booleans()),
    subject=st.none() | st.just(("x",)),
)
STEPS = st.lists(DRAFTS | SELECTORS | SETTINGS | st.integers(-20, 40), max_size=25)


@given(SETTINGS, STEPS)
def test_every_seq_is_told_once_or_was_removed(
    settings: StreamSettings, steps: Sequence[list[Draft] | Selector | StreamSettings | int]
) -> None:
    """Density: what a reader is told, and what was removed, are all the seqs there are."""
    model, now, removed = StreamModel(settings), START_NS, 0
    floor = earliest = 1
    for step in steps:
        if isinstance(step, list):
            try:
                model.append(step, now)
            except StreamFull:
                continue
        elif isinstance(step, Selector):
            removed += model.delete(step, now) if step != Selector() else 0
        elif isinstance(step, StreamSettings):
            model.configure(step, now)
        else:
            now += step * NS_PER_MS
        model.retain(now)
        assert floor <= model.evict_floor <= model.earliest <= model.head + 1
        assert earliest <= model.earliest
        floor, earliest = model.evict_floor, model.earliest
    story = model.read(Cursor(), instance="i")
    told = [record.seq for record in story.records]
    assert len(story.gaps) == (floor > 1)
    assert all(seq >= floor for seq in told)
    assert len(told) == model.count
    assert sum(record.size for record in story.records) == model.bytes
    if not model.settings.latest_per_subject and floor == 1 and not settings.latest_per_subject:
        assert len(told) + removed <= model.head
