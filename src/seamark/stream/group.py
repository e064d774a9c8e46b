"""A group: the live readers of a channel that want the same records in the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from operator import length_hint
from typing import TYPE_CHECKING, NamedTuple

from seamark.log.record import Record
from seamark.match.filter import Filter
from seamark.stream.burst import Bounds, bounds_of, bursts
from seamark.stream.dialect import Dialect, Span, deliveries_of
from seamark.stream.leg import Leg
from seamark.stream.pipe import Block
from seamark.telemetry import events
from seamark.telemetry.logs import logger

if TYPE_CHECKING:
    from seamark.stream.channel import Channel

_log = logger("stream")


class GroupKey(NamedTuple):
    filter: Filter | None
    projection: Hashable


class Encoding:
    """One projection within a channel: each record's fragment is made once, however many groups want it."""

    __slots__ = ("_alone", "_made", "bounds", "deliveries", "dialect", "groups")

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.bounds: Bounds = bounds_of(dialect, live=True)
        self.deliveries = deliveries_of(dialect)
        self.groups = 0
        self._made: dict[int, bytes] = {}
        self._alone: dict[int, Block | None] = {}

    def alone(self, record: Record, span: Span) -> Block | None:
        """The burst of one record, which is the same for all groups that are given no other of the run: thousands of groups
        want a record here and there."""
        try:
            return self._alone[record.seq]
        except KeyError:
            raw = self.dialect.assemble(self.fragments((record,)), span)
            block = self._alone[record.seq] = Block(raw) if raw else None
            return block

    def fragments(self, records: Sequence[Record]) -> list[bytes]:
        fragment = self.dialect.fragment
        if self.groups == 1:
            return [fragment(record, True) for record in records]
        made = self._made
        out = []
        for record in records:
            raw = made.get(record.seq)
            if raw is None:
                raw = made[record.seq] = fragment(record, True)
            out.append(raw)
        return out

    def forget(self) -> None:
        """The run is over."""
        self._made.clear()
        self._alone.clear()


def _nowhere(block: Block) -> None:
    """Stands in for a reader that left while its group was being written to."""


class Group:
    """Shared members are only a list of bound `write`s: the loop over it is the whole cost of a delivery. Members that
    get bytes of their own are kept apart and served through their session."""

    __slots__ = (
        "_before",
        "_holes",
        "_to",
        "_writing",
        "channel",
        "encoding",
        "key",
        "legs",
        "own",
        "writes",
        "wrote_at",
    )

    def __init__(self, channel: Channel, key: GroupKey, encoding: Encoding) -> None:
        self.channel = channel
        self.key = key
        self.encoding = encoding
        self.writes: list[Callable[[Block], None]] = []
        self.legs: list[Leg | None] = []  # whose write it is, place by place
        self.own: list[Leg] = []
        self.wrote_at = 0.0
        self._to: int | None = None  # while a run is delivered: how far this group is with the block in hand
        self._before = 0  # how far it was before that block
        self._writing: Iterator[Callable[[Block], None]] | None = None
        self._holes = False

    def __len__(self) -> int:
        return len(self.writes) + len(self.own)

    def members(self) -> list[Leg]:
        return [*(leg for leg in self.legs if leg is not None), *self.own]

    def add(self, leg: Leg) -> None:
        assert self._writing is None, "nobody joins while a block is being written"
        if leg.session.own_bytes:
            leg.slot = len(self.own)
            self.own.append(leg)
        else:
            leg.slot = len(self.writes)
            self.writes.append(leg.session.pipe.write)
            self.legs.append(leg)
        leg.group = self

    def remove(self, leg: Leg) -> None:
        if leg.session.own_bytes:
            self._drop_own(leg.slot)
        elif self._writing is not None:
            # The loop must neither skip nor repeat anybody: leave a hole and close it afterwards.
            self.writes[leg.slot] = _nowhere
            self.legs[leg.slot] = None
            self._holes = True
        else:
            self._move_last_to(leg.slot)
        leg.slot = -1
        if not self.writes and not self.own:
            self.channel.remove_group(self)

    def place_of(self, leg: Leg) -> int:
        """How far a live leg has come, exact even from inside the write that is just being made."""
        position = self.channel.position
        assert position is not None, "a live leg's channel has begun"
        if leg.session.own_bytes:
            return max(leg.cursor, position)
        if self._to is None:
            return position
        if self._writing is not None and leg.slot >= len(self.writes) - length_hint(self._writing):
            return self._before
        return self._to

    def deliver(self, records: Sequence[Record], span: Span, now: float) -> int:
        """Encode once, write to all. Returns how many records were handed out, over all members."""
        encoding = self.encoding
        self.wrote_at = now
        if len(records) == 1:
            block = encoding.alone(records[0], span)
            handed = len(self.writes) + len(self.own)
            if handed == 1 and self.writes and block is not None:  # nearly always, where nobody wants what others want
                self._before, self._to = span.after, span.to
                self._write_to_the_only_one(block)
            else:
                self._hand_out(block, span, last=True)
        else:
            handed = 0
            fragments = encoding.fragments(records)
            for burst in bursts(encoding.dialect, records, fragments, span, encoding.bounds):
                handed += burst.records * len(self)
                block = Block(burst.raw) if burst.raw else None
                self._hand_out(block, burst.span, last=burst.span.to == span.to)
        if encoding.deliveries is not None:
            encoding.deliveries.value += handed
        return handed

    def settle(self) -> None:
        """The whole run is delivered: the channel's position speaks for the members again."""
        self._to = None

    def _hand_out(self, block: Block | None, span: Span, *, last: bool) -> None:
        self._before, self._to = span.after, span.to
        if block is not None and self.writes:
            self._write(block)
        if self.own:
            for leg in tuple(self.own):
                if leg.group is self:
                    leg.session.deliver(leg, block, span, last=last)

    def _write(self, block: Block) -> None:
        """The hot loop. A pipe that raises, against its contract, costs its own reader only."""
        self._writing = writing = iter(self.writes)
        while True:
            try:
                for write in writing:
                    write(block)
                break
            except Exception as error:
                self._cannot_write(self.legs[len(self.writes) - length_hint(writing) - 1], error)
        self._writing = None
        if self._holes:
            self._close_holes()

    def _write_to_the_only_one(self, block: Block) -> None:
        """The same without what the loop needs to be left by others: whoever leaves in here was the last."""
        leg = self.legs[0]
        try:
            self.writes[0](block)
        except Exception as error:
            self._cannot_write(leg, error)

    def _cannot_write(self, leg: Leg | None, error: Exception) -> None:
        _log.error(events.FANOUT_FAILED, stream=self.channel.stream, exc_info=True)
        if leg is not None:
            leg.session.fail(error)

    def _close_holes(self) -> None:
        self._holes = False
        legs = [leg for leg in self.legs if leg is not None]
        self.writes = [leg.session.pipe.write for leg in legs]
        self.legs = list(legs)
        for slot, leg in enumerate(legs):
            leg.slot = slot
        if not self.writes and not self.own:
            self.channel.remove_group(self)

    def _drop_own(self, place: int) -> None:
        last = self.own.pop()
        if place < len(self.own):
            self.own[place] = last
            last.slot = place

    def _move_last_to(self, slot: int) -> None:
        write, leg = self.writes.pop(), self.legs.pop()
        if slot < len(self.writes):
            assert leg is not None
            self.writes[slot] = write
            self.legs[slot] = leg
            leg.slot = slot
