from __future__ import annotations

import copy

import pytest

from seamark.log import meta as metas
from seamark.log.meta import Meta
from seamark.log.seal import Damaged
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Gap, Loss


def meta(**fields: object) -> Meta:
    return Meta(1, "0123456789abcdef", StreamSettings(), **fields)  # type: ignore[arg-type]


def test_it_comes_back_as_it_was() -> None:
    full = meta(head=9, lost=(Gap(first=3, last=4, loss=Loss.CRASH),), count=7, bytes=70, last_ts=5)
    assert metas.decode(b"t", metas.encode(b"t", full)) == full


def test_another_version_or_another_name_is_damage() -> None:
    with pytest.raises(Damaged):
        metas.decode(b"t", metas.encode(b"t", meta(version=99)))
    with pytest.raises(Damaged):
        metas.decode(b"u", metas.encode(b"t", meta()))


def test_a_copy_is_independent() -> None:
    first = meta(head=3, count=3)
    second = copy.copy(first)
    second.evict(2, 2, Loss.CAP)
    assert first.evict_floor == 1
    assert second.evict_floor == 3


@pytest.mark.parametrize(
    ("floors", "first", "loss"),
    [
        ({"cap_floor": 6, "ttl_floor": 4}, 1, Loss.MIXED),  # worked example 8
        ({"cap_floor": 6, "ttl_floor": 4}, 5, Loss.CAP),
        ({"cap_floor": 3, "ttl_floor": 6}, 4, Loss.TTL),
        ({"source_floor": 6, "cap_floor": 2}, 3, Loss.SOURCE),
        ({"source_floor": 6, "cap_floor": 2}, 2, Loss.CAP),
        ({"crash_floor": 6}, 6, Loss.CRASH),
        ({"crash_floor": 6, "cap_floor": 4}, 4, Loss.MIXED),
        ({"crash_floor": 6, "cap_floor": 4}, 5, Loss.CRASH),
        ({"crash_floor": 3, "ttl_floor": 6}, 3, Loss.MIXED),
        ({"crash_floor": 3, "source_floor": 6}, 2, Loss.MIXED),
        ({"crash_floor": 3, "source_floor": 6, "cap_floor": 3}, 4, Loss.SOURCE),
    ],
)
def test_the_reason_is_the_floor_that_reaches_the_gap(floors: dict[str, int], first: int, loss: Loss) -> None:
    gap = meta(head=9, **floors).front_gap(first)
    assert gap == Gap(first=first, last=6, loss=loss)


def test_no_gap_at_or_above_the_floor() -> None:
    assert meta(head=9, cap_floor=6).front_gap(7) is None


def test_losing_at_the_end_is_an_interior_range_while_something_lives_before_it() -> None:
    stream = meta(head=5, count=5, reserved=9)
    stream.lose(9, Loss.CRASH)
    assert stream.lost == (Gap(first=6, last=9, loss=Loss.CRASH),)
    assert (stream.head, stream.evict_floor, stream.earliest) == (9, 1, 1)


def test_losing_everything_there_ever_was_is_the_floor() -> None:
    stream = meta(head=0)
    stream.lose(9, Loss.CRASH)
    assert stream.lost == ()
    assert (stream.head, stream.evict_floor, stream.earliest, stream.removed) == (9, 10, 10, 0)


def test_adjoining_losses_of_one_kind_are_one_range() -> None:
    stream = meta(head=5, count=5)
    stream.lose(9, Loss.CRASH)
    stream.lose(12, Loss.CRASH)
    stream.lose(13, Loss.SOURCE)
    assert stream.lost == (Gap(first=6, last=12, loss=Loss.CRASH), Gap(first=13, last=13, loss=Loss.SOURCE))


def test_eviction_swallows_what_it_passes_and_folds_what_it_touches() -> None:
    stream = meta(head=5, count=4, removed=1)
    stream.lose(9, Loss.CRASH)
    stream.evict(5, 4, Loss.CAP)  # four live, one removed
    assert stream.lost == ()
    assert (stream.evict_floor, stream.removed) == (10, 0)
    assert stream.front_gap(1) == Gap(first=1, last=9, loss=Loss.MIXED)
    assert stream.front_gap(6) == Gap(first=6, last=9, loss=Loss.CRASH)


def test_eviction_over_a_range_in_the_middle() -> None:
    stream = meta(head=2, count=2)
    stream.lose(4, Loss.SOURCE)
    stream.head, stream.count = 7, 5
    stream.evict(5, 3, Loss.TTL)
    assert stream.lost == ()
    assert (stream.evict_floor, stream.removed) == (6, 0)


def test_a_swallowed_range_keeps_its_reason() -> None:
    """Found by the deep state machine: what a crash took and a cap then passed was told as the cap's alone."""
    stream = meta(head=4, count=4)
    stream.lose(8, Loss.CRASH)
    stream.head, stream.count = 10, 6
    stream.evict(9, 5, Loss.CAP)
    assert stream.front_gap(1) == Gap(first=1, last=9, loss=Loss.MIXED)
    assert stream.front_gap(9) == Gap(first=9, last=9, loss=Loss.CAP)
