"""Cutting a run of records into bursts: what one `assemble` makes and one write carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seamark.limits import FLUSH_BYTES_MAX
from seamark.log.record import Record
from seamark.stream.dialect import Bounded, Dialect, Span


class Burst(NamedTuple):
    """`raw` may be empty when the dialect has nothing to say; `span` still moves the cursor."""

    records: int
    raw: bytes
    span: Span


class Bounds(NamedTuple):
    records_max: int
    bytes_max: int


_UNBOUNDED = 1 << 62


def bounds_of(dialect: Dialect) -> Bounds:
    """The dialect's own bounds within the core's."""
    if isinstance(dialect, Bounded):
        return Bounds(max(1, dialect.burst_records_max), max(1, min(dialect.burst_bytes_max, FLUSH_BYTES_MAX)))
    return Bounds(_UNBOUNDED, FLUSH_BYTES_MAX)


def bursts(
    dialect: Dialect, records: Sequence[Record], fragments: Sequence[bytes], span: Span, bounds: Bounds
) -> Iterator[Burst]:
    """The pieces in order, each of at least one record. The last one reaches `span.to`, the others their last record,
    so that the pieces together cover exactly the span."""
    count = len(fragments)
    if count <= bounds.records_max and sum(map(len, fragments)) <= bounds.bytes_max:
        yield Burst(count, dialect.assemble(fragments, span), span)
        return
    first, after = 0, span.after
    while first < count:
        last = _end_of_piece(fragments, first, bounds)
        to = span.to if last == count else records[last - 1].seq
        piece = Span(span.stream, after, to, span.marks, span.live)
        yield Burst(last - first, dialect.assemble(fragments[first:last], piece), piece)
        first, after = last, to


def _end_of_piece(fragments: Sequence[bytes], first: int, bounds: Bounds) -> int:
    last = first
    size = 0
    while last < len(fragments) and last - first < bounds.records_max:
        size += len(fragments[last])
        if size > bounds.bytes_max and last > first:
            break
        last += 1
    return last
