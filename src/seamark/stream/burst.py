"""Cutting a run of records into bursts: what one `assemble` makes and one write carries."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from seamark.limits import FLUSH_BYTES_MAX
from seamark.log.record import Record
from seamark.stream.dialect import Bounded, Dialect, Forms, Span, deliveries_of
from seamark.telemetry.metrics import Counter


class Burst(NamedTuple):
    """`raw` may be empty when the dialect has nothing to say; `span` still moves the cursor."""

    records: int
    raw: bytes
    span: Span


class Bounds(NamedTuple):
    """`payload_max` counts what the records hold, `flush_max` what is written."""

    records_max: int
    payload_max: int
    flush_max: int


UNBOUNDED = 1 << 62


def bounds_of(dialect: Dialect, *, live: bool) -> Bounds:
    """The dialect's own bounds. The core's applies where bytes are shared, and where the dialect has none: a reader of
    history that asked for bigger bursts has them written to itself alone, one at a time."""
    if isinstance(dialect, Bounded):
        flush_max = FLUSH_BYTES_MAX if live else UNBOUNDED
        return Bounds(max(1, dialect.burst_records_max), max(1, dialect.burst_bytes_max), flush_max)
    return Bounds(UNBOUNDED, UNBOUNDED, FLUSH_BYTES_MAX)


class Manner(NamedTuple):
    """How history is said in a dialect: cut by these bounds, shared with whoever says it in this form, counted here."""

    bounds: Bounds
    form: Hashable
    deliveries: Counter | None


def manner_of(dialect: Dialect) -> Manner:
    form = dialect.form if isinstance(dialect, Forms) else dialect.projection
    return Manner(bounds_of(dialect, live=False), form, deliveries_of(dialect))


def bursts(
    dialect: Dialect, records: Sequence[Record], fragments: Sequence[bytes], span: Span, bounds: Bounds
) -> Iterator[Burst]:
    """The pieces in order, each of at least one record. The last one reaches `span.to`, the others their last record,
    so that the pieces together cover exactly the span."""
    count = len(fragments)
    if _is_one_piece(records, fragments, bounds):
        yield Burst(count, dialect.assemble(fragments, span), span)
        return
    first, after = 0, span.after
    while first < count:
        last = _end_of_piece(records, fragments, first, bounds)
        to = span.to if last == count else records[last - 1].seq
        piece = Span(span.stream, after, to, span.marks, span.live)
        yield Burst(last - first, dialect.assemble(fragments[first:last], piece), piece)
        first, after = last, to


def _is_one_piece(records: Sequence[Record], fragments: Sequence[bytes], bounds: Bounds) -> bool:
    if len(fragments) > bounds.records_max or sum(map(len, fragments)) > bounds.flush_max:
        return False
    return bounds.payload_max == UNBOUNDED or sum(record.size for record in records) <= bounds.payload_max


def _end_of_piece(records: Sequence[Record], fragments: Sequence[bytes], first: int, bounds: Bounds) -> int:
    last = first
    flush = payload = 0
    while last < len(fragments) and last - first < bounds.records_max:
        flush += len(fragments[last])
        payload += records[last].size
        if (flush > bounds.flush_max or payload > bounds.payload_max) and last > first:
            break
        last += 1
    return last
