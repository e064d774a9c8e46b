"""Catching up: reading the log for the legs of one session that are not live, in turns, until they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seamark.errors import StreamNotFound
from seamark.limits import CATCH_UP_BYTES_MAX, PAGE_BYTES_MAX, PAGE_RECORDS_DEFAULT
from seamark.log.protocol import Page
from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Gap
from seamark.stream.burst import UNBOUNDED, bursts
from seamark.stream.channel import Channel
from seamark.stream.dialect import SaysLimited, Span
from seamark.stream.leg import Leg

if TYPE_CHECKING:
    from seamark.stream.session import Session

_SCANNED_BYTES = 64  # what examining a record that is not delivered counts against the turn


class CatchUp:
    """One task for all legs of a session that are behind; it lives only as long as one is.

    Each leg has a page per turn, so a huge backlog holds up neither the session's other streams nor, thanks to the
    budget, anybody else's.
    """

    __slots__ = ("_bounds", "_deliveries", "_form", "_queue", "_session", "_task")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._queue: dict[Leg, None] = {}
        self._bounds, self._form, self._deliveries = session.hub.manner(session.script.dialect)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def add(self, leg: Leg) -> None:
        self._queue[leg] = None

    def stop(self) -> None:
        """The session is over. When it ended from inside our own turn, the turn notices by itself."""
        self._queue.clear()
        if self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self) -> None:
        session = self._session
        spent = 0
        try:
            while self._queue and session.flowing:
                leg = next(iter(self._queue))
                del self._queue[leg]
                spent += await self._turn(leg)
                if leg.pause_seconds and leg in self._queue and not leg.lives:
                    await asyncio.sleep(leg.pause_seconds)
                if spent >= CATCH_UP_BYTES_MAX:
                    spent = 0
                    await asyncio.sleep(0)
        except Exception as error:
            session.fail(error)
        finally:
            session.caught_up()

    async def _turn(self, leg: Leg) -> int:
        """One page for one leg. Returns what it cost."""
        session = self._session
        if leg.gone_head is not None:
            session.say_dropped(leg)
        if leg.over or leg.channel is None or leg.group is not None:
            return 0
        channel = leg.channel
        try:
            page = await self._read(leg)
        except StreamNotFound:
            session.stream_gone(leg, channel.last_head)
            return 0
        if leg.channel is not channel or not session.flowing:
            if not session.closed:
                self.add(leg)  # paused, or dropped meanwhile: for whoever reads next
            return 0
        if not leg.first_read and page.cursor.instance != leg.instance:
            session.stream_gone(leg, channel.marks.head)  # a later instance is not what was subscribed to
            return 0
        channel.begin(page)
        before = leg.cursor
        self._take(leg, channel, page)
        if leg.cursor == before:
            return CATCH_UP_BYTES_MAX  # nothing new yet: others first
        return sum(record.size for record in page.records) + _SCANNED_BYTES * page.scanned

    async def _read(self, leg: Leg) -> Page:
        hub = self._session.hub
        bounds = self._bounds
        most = PAGE_RECORDS_DEFAULT if bounds.records_max == UNBOUNDED else bounds.records_max
        size = min(bounds.payload_max, PAGE_BYTES_MAX) if bounds.payload_max != UNBOUNDED else CATCH_UP_BYTES_MAX
        if leg.history_left is not None:
            most = min(most, leg.history_left + 1)
        cursor = Cursor(leg.cursor, leg.instance)
        accept = leg.filter
        if hub.reads_now is not None:
            return hub.reads_now.read_now(
                leg.stream, cursor, records_max=most, bytes_max=size, synced=leg.synced, accept=accept
            )
        return await hub.log.read(
            leg.stream, cursor, records_max=most, bytes_max=size, synced=leg.synced, accept=accept
        )

    def _take(self, leg: Leg, channel: Channel, page: Page) -> None:
        session = self._session
        leg.instance = page.cursor.instance
        if leg.first_read and (session.finite or leg.until is not None):
            reach = channel.reach(page.marks)
            leg.until = reach if leg.until is None else min(leg.until, reach)
        if page.gap is not None and (leg.until is None or page.gap.first <= leg.until):
            self._say_gap(leg, page.gap, page)
        leg.cursor = page.resume
        leg.first_read = False
        if session.flowing:
            self._say_records(leg, channel, page)
        if session.flowing and not leg.over:
            self._arrive(leg, channel, page)

    def _say_gap(self, leg: Leg, gap: Gap, page: Page) -> None:
        session = self._session
        if leg.until is not None and gap.last > leg.until:
            gap = Gap(gap.first, leg.until, gap.loss)
        session.hub.metrics.counter("seamark_stream_gaps_total", gap.loss).value += 1
        leg.told = False
        span = Span(leg.stream, leg.cursor, page.resume, page.marks, False)
        session.say(session.script.gap(gap, span, first_read=leg.first_read))
        session.progressed(leg, page.resume)

    def _say_records(self, leg: Leg, channel: Channel, page: Page) -> None:
        records, to = _within(leg, channel, page)
        left = leg.history_left
        limited = left is not None and len(records) > left
        if limited:
            records = records[:left]
            to = records[-1].seq if records else leg.cursor
        if records:
            fragments = self._fragments(leg, page, len(records))
            self._say_bursts(leg, records, fragments, Span(leg.stream, leg.cursor, to, page.marks, False))
            if not self._session.flowing:
                return  # wherever it was paused, the cursor says how far it came
        leg.cursor = to
        if limited:
            self._say_limited(leg, channel, page)

    def _fragments(self, leg: Leg, page: Page, count: int) -> Sequence[bytes]:
        """Those of the page's first records. Often they were made for another reader already."""
        fragment, live = self._session.script.dialect.fragment, leg.lives
        if count < len(page.records):
            return [fragment(record, live) for record in page.records[:count]]
        return page.each((self._form, live), lambda record: fragment(record, live))

    def _say_bursts(self, leg: Leg, records: Sequence[Record], fragments: Sequence[bytes], span: Span) -> None:
        session = self._session
        script = session.script
        for burst in bursts(script.dialect, records, fragments, span, self._bounds):
            stamped = script.stamp(burst.raw, burst.span) if script.personal else None
            if session.closed:
                return
            raw = burst.raw if stamped is None else stamped
            leg.cursor = burst.span.to  # before the write, which may pause us: the bytes count as handed over
            if leg.history_left is not None:
                leg.history_left -= burst.records
            session.hub.history_deliveries.value += burst.records
            if self._deliveries is not None:
                self._deliveries.value += burst.records
            if raw:
                leg.told = False
                session.say(raw)
            session.progressed(leg, leg.cursor)
            if not session.flowing:
                return

    def _say_limited(self, leg: Leg, channel: Channel, page: Page) -> None:
        """More history than was asked for: say so, and skip to where it ends, or end there."""
        session = self._session
        assert isinstance(session.script, SaysLimited), "a leg with `history_max` needs a script that can say so"
        assert channel.position is not None, "the channel began with the first page"
        to = max(leg.cursor, channel.position if leg.until is None else leg.until)
        leg.told = False
        leg.history_left = None
        span = Span(leg.stream, leg.cursor, to, page.marks, False)
        leg.cursor = to
        session.say(session.script.limited(span))
        if leg.limit_ends:
            session.finish(leg)

    def _arrive(self, leg: Leg, channel: Channel, page: Page) -> None:
        """At the end of what it was to read, at the live set, ahead of it, or not there yet."""
        session = self._session
        assert channel.position is not None, "the channel began with the first page"
        if leg.until is not None:
            if leg.cursor < leg.until:
                self.add(leg)
                return
            session.say_caught_up(leg, Span(leg.stream, leg.cursor, leg.cursor, page.marks, False))
            if leg.then_live:
                leg.until = leg.history_left = None
                self.add(leg)
            else:
                session.finish(leg)
        elif channel.join(leg):
            leg.history_left = None
            session.say_caught_up(leg, Span(leg.stream, leg.cursor, leg.cursor, channel.marks, False))
        elif leg.cursor > channel.position and leg.cursor >= channel.reach(page.marks):
            channel.park(leg, page.marks)
        else:
            self.add(leg)


def _within(leg: Leg, channel: Channel, page: Page) -> tuple[Sequence[Record], int]:
    """The page up to the leg's end or the live set's position; what lies behind comes with the next burst. A leg that
    is ahead of the live set reads on by itself."""
    limit = leg.until
    if limit is None and channel.position is not None and page.resume <= channel.position:
        limit = channel.position
    if limit is None or page.cursor.seq <= limit:
        return page.records, page.cursor.seq
    return [record for record in page.records if record.seq <= limit], max(limit, page.resume)
