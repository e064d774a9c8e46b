"""How one surface speaks on a stream. The core decides what is said and when; a dialect decides the bytes."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from seamark.log.record import Record
from seamark.log.watermarks import Gap, Watermarks
from seamark.stream.pipe import Block
from seamark.telemetry.metrics import Counter


class Close(enum.StrEnum):
    """Why the server ended a stream. A peer that went away gets no closing frame."""

    END = "end"  # a finite reading has reached its end
    DEADLINE = "deadline"  # the stream's maximum duration
    SHUTDOWN = "shutdown"
    REPLACED = "replaced"  # a newer connection took the session over
    REVOKED = "revoked"  # its credentials were
    SLOW = "slow"  # no progress on the socket for too long
    DROPPED = "dropped"  # every stream it watched is gone
    FAULT = "fault"  # the log could not be read


class Span(msgspec.Struct, frozen=True):
    """What a run of fragments covers on one stream: everything examined in `after+1 .. to`."""

    stream: str
    after: int
    to: int
    marks: Watermarks
    live: bool  # from the live set; False while reading history


class Dialect(Protocol):
    """`projection` equal means: same bytes for the same record, so work and memory are shared.

    All methods are pure, return complete SSE text (or b"" for "say nothing") and never raise for stored records.
    """

    @property
    def projection(self) -> Hashable: ...

    def fragment(self, record: Record, live: bool) -> bytes:
        """One record, encoded. Cached per (projection, record, live) while a burst is being sent. `live` also for what a
        reader whose history is over (`LegSpec.then_live`) reads from the log."""
        ...

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        """One burst from its fragments; shared by all readers with equal projection and filter."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """Capability of a dialect: one burst (one call of `assemble`) holds at most so many records, and so many bytes of
    payload and meta. Always at least one record.

    Equal projections must have equal bounds. A page of history is read in one such burst, however big; a live burst is
    bounded by the core as well, and without this capability every burst is bounded by the core alone.
    """

    @property
    def burst_records_max(self) -> int: ...
    @property
    def burst_bytes_max(self) -> int: ...


@runtime_checkable
class Counted(Protocol):
    """Capability of a dialect: a counter of its own for the records handed to readers. Equal projections share it."""

    @property
    def deliveries(self) -> Counter: ...


def deliveries_of(dialect: Dialect) -> Counter | None:
    return dialect.deliveries if isinstance(dialect, Counted) else None


@runtime_checkable
class Forms(Protocol):
    """Capability of a dialect: what its fragments depend on beside the record and `live`, where that is less than the
    projection. Dialects of equal form make the same fragments."""

    @property
    def form(self) -> Hashable: ...


class Script(Protocol):
    """What one session says beside the shared bursts; may depend on the session (request id, topic text, cursor map)."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def personal(self) -> bool:
        """True: every burst passes through `stamp`, and every live burst is followed by `caught_up`, in the same write.
        False: live bursts are the shared bytes alone, written in the tight loop; `caught_up` is said only after history."""
        ...

    def opening(self) -> bytes: ...

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        """The burst with what only this session can add (a composite cursor id); None: send the shared bytes as they are;
        b"": say nothing. Called only when `personal`, also for a burst that the dialect left empty, once per burst."""
        ...

    def gap(self, gap: Gap, span: Span, *, first_read: bool) -> bytes: ...

    def caught_up(self, span: Span) -> bytes:
        """History has reached the head (or the end of a finite reading), or, when `personal`, a live burst was sent.
        Not repeated while nothing was said on this stream in between; b"" leaves it to be said."""
        ...

    def dropped(self, stream: str, head: int) -> bytes: ...

    def heartbeat(self) -> bytes: ...

    def closing(self, reason: Close) -> bytes: ...


@runtime_checkable
class Alike(Protocol):
    """Capability of a `personal` script: sessions that stand at the same places say the same, and can share it."""

    def live(self, block: Block, span: Span, *, last: bool) -> Block | None:
        """What `stamp` makes of a live burst, with `caught_up` after the last of a run; asked instead of those two. None:
        say nothing."""
        ...


@runtime_checkable
class SaysLimited(Protocol):
    """Capability of a script whose legs have a `history_max`: what to say when there was more history than that."""

    def limited(self, span: Span) -> bytes: ...
