"""Where a run of records is cut, and what a page of history is asked for."""

from __future__ import annotations

import pytest

from seamark.limits import FLUSH_BYTES_MAX, KIB
from seamark.log.record import Record
from seamark.log.watermarks import Watermarks
from seamark.stream.burst import UNBOUNDED, bounds_of, bursts, manner_of
from seamark.stream.dialect import Span
from tests.stream.conftest import LineDialect, LineScript, World, seqs


class Roomy(LineDialect):
    """Bursts of up to 600 records and so many bytes of payload."""

    burst_records_max = 600

    def __init__(self, burst_bytes_max: int = 400 * KIB) -> None:
        super().__init__(("roomy", burst_bytes_max))
        self.burst_bytes_max = burst_bytes_max


def cut(dialect: LineDialect, *sizes: int, live: bool) -> list[int]:
    """How many records each burst of such a run has. `meta` is half of each size."""
    records = [Record(seq, 0, b"x" * (size - size // 2), meta=b"y" * (size // 2)) for seq, size in enumerate(sizes, 1)]
    fragments = [record.payload + bytes(record.meta or b"") for record in records]
    span = Span("s", 0, len(records) + 3, Watermarks(head=len(records) + 3), live)
    pieces = list(bursts(dialect, records, fragments, span, bounds_of(dialect, live=live)))
    assert [piece.span.after for piece in pieces[1:]] == [piece.span.to for piece in pieces[:-1]]
    assert pieces[-1].span.to == span.to
    return [piece.records for piece in pieces]


@pytest.mark.parametrize("live", [True, False])
def test_a_dialects_bytes_are_those_of_payload_and_meta(live: bool) -> None:
    assert cut(Roomy(100), 50, 50, 50, live=live) == [2, 1]
    assert cut(Roomy(99), 50, 50, 50, live=live) == [1, 1, 1]
    assert cut(Roomy(10), 50, 5, 5, 1, live=live) == [1, 2, 1]  # always at least one


def test_the_cores_own_bound_is_for_what_many_share() -> None:
    half = FLUSH_BYTES_MAX // 2 + 1
    assert cut(Roomy(), half, half, half, live=True) == [1, 1, 1]
    assert cut(Roomy(), half, half, half, live=False) == [3]
    assert cut(LineDialect(), half, half, half, live=False) == [1, 1, 1]


async def test_a_page_of_history_is_as_big_as_its_reader_asked(world: World) -> None:
    await world.append("s", *(["x" * 1_000] * 1_000))
    _, pipe = world.watch("s", script=LineScript(Roomy()))
    _, other = world.watch("s", script=LineScript(Roomy(2 * 1024 * KIB)))
    await world.settle(100)
    counts = [len(frame[6]) for frame in pipe.frames if frame[0] == "records"]
    assert counts == [409, 409, 182]
    assert [len(frame[6]) for frame in other.frames if frame[0] == "records"] == [600, 400]
    assert seqs(pipe.frames) == seqs(other.frames) == [*range(1, 1_001)]


def test_a_manner_is_what_the_dialect_is_capable_of() -> None:
    plain, roomy = manner_of(LineDialect()), manner_of(Roomy(50))
    assert (plain.bounds.records_max, plain.form, plain.deliveries) == (UNBOUNDED, "line", None)
    assert (roomy.bounds.records_max, roomy.bounds.payload_max, roomy.form) == (600, 50, ("roomy", 50))


async def test_manners_are_found_once_for_a_projection_and_not_kept_for_ever(world: World) -> None:
    hub = world.hub
    first = hub.manner(Roomy(50))
    assert hub.manner(Roomy(50)) is first
    assert hub.manner(LineDialect(("roomy", 50))).bounds != first.bounds
    for size in range(100):
        assert hub.manner(Roomy(1_000 + size)).bounds.payload_max == 1_000 + size
    assert hub.manner(Roomy(50)) is not first
