"""One router at work: what comes next in its source becomes copies in its dest, a bounded piece at a time.

Copies and the router's new place are one commit, and so are a loss and the place behind it: whatever crashes, a source
record is neither copied twice nor passed over. A source record that is deleted before its turn is passed silently. One that
was lost to a bound or a crash before its turn becomes a lost seq of the dest; whether a filter would have let it through is
no longer known, so it counts.

The place carries the source's instance. When a source is found to be another one, the old one was removed with all that it
held, which is nobody's loss. Of the new one everything is copied, from its first record: that a router copies nothing older
than itself is a rule about the moment of its making, and the new source is younger than the router. (Removing a topic over
HTTP removes its routers too; so this is about streams that were removed by other means.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, takewhile

from seamark import limits
from seamark.errors import HeadConflict, StreamFull, WriteFailed
from seamark.log.protocol import Append, Declares, Log, Receipt, Shelf, StreamState
from seamark.log.record import Draft, Record
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.telemetry.metrics import Metrics
from seamark.topics.copies import copy_of, wanted
from seamark.topics.model import stream_of
from seamark.topics.retained import Retained
from seamark.topics.router_rows import Place, place_of, place_put
from seamark.topics.routers import Router
from seamark.topics.stamp import Stamps


class Feed:
    """`step` is for one caller at a time. `place` is where the store has it, except after a failed commit."""

    def __init__(self, log: Log, metrics: Metrics, router: Router, place: Place) -> None:
        self._log = log
        self._forwarded = metrics.counter("seamark_topics_forwarded_total")
        self._lost = metrics.counter("seamark_topics_forward_lost_total")
        self.place = place
        self.doubtful = False  # a commit failed, and may have been taken all the same
        self.become(router)

    def become(self, router: Router) -> None:
        """Be another router between the same two topics."""
        self.router = router
        self.source = stream_of(router.source)
        self.dest = stream_of(router.dest)
        self._accept = wanted(router)
        self._stamps: Stamps | None = None
        self._retained = Retained(self._log, self.dest, self.place.dest) if router.exactly_once else None

    async def step(self) -> bool:
        """Do the next piece; whether there is more. Raises what the log raises; the place is then where it was, or behind
        those copies that found room."""
        if self.doubtful:
            self._ask_the_store()
        page = await self._log.read(
            self.source, self.place.source, records_max=limits.ROUTER_BATCH_RECORDS, accept=self._accept
        )
        gap = page.gap
        if page.cursor.instance != self.place.source.instance or (gap is not None and gap.loss is Loss.RECREATED):
            self.place = Place(Cursor(0, page.cursor.instance), self.place.forwarded, self.place.dest)
            return True
        if gap is not None:
            await self._lose(gap)
            return True
        if page.cursor.seq > self.place.source.seq:
            await self._copy(page.records, page.cursor.seq)
        return not page.caught_up

    def reaches(self, state: StreamState) -> bool:
        """Whether it has passed all that the source holds."""
        source = self.place.source
        return source.instance == state.instance and source.seq >= state.marks.head

    # -- copies

    async def _copy(self, records: list[Record], upto: int) -> None:
        """Copy these, and have passed everything up to `upto`."""
        stamps = await self._stamps_for_dest()
        if self._retained is not None:
            records = await self._retained.without(records)
        drafts = [copy_of(self.router, record, stamps) for record in records]
        try:
            await self._write(drafts, upto)
        except StreamFull:
            room = fitting(drafts, await self._log.state(self.dest))
            if room < len(records) and records[room].seq - 1 > self.place.source.seq:
                await self._write(drafts[:room], records[room].seq - 1)
            raise

    async def _stamps_for_dest(self) -> Stamps | None:
        if self._retained is None:
            return None
        source = self.place.source
        if self._stamps is None or self._stamps.instance != source.instance:
            assert source.instance is not None
            self._stamps = Stamps(self.router.name, self.router.source, source.instance)
        await self._retained.look(self._stamps, source.seq)
        return self._stamps

    async def _write(self, drafts: Sequence[Draft], upto: int) -> None:
        place = self._moved(upto, len(drafts))
        puts = [place_put(self.router.name, place)]
        stamp_bytes = 0 if self._retained is None else limits.STAMP_BYTES_MAX
        stream = self.dest if drafts else ""  # what is only passed leaves no trace in the dest
        receipt = await self._commit(Append(stream=stream, drafts=drafts, puts=puts, stamp_bytes=stamp_bytes))
        self.place = place
        self._forwarded.value += len(drafts)
        if self._retained is not None and drafts:
            self._retained.wrote(receipt)

    async def _commit(self, append: Append) -> Receipt:
        try:
            return await self._log.append(append)
        except WriteFailed:
            self.doubtful = True
            raise

    # -- losses

    async def _lose(self, gap: Gap) -> None:
        """The dest loses as many as the source did, where its records end now. An engine that cannot say so loses them
        without a word there; the source still tells."""
        place = self._moved(gap.last, 0)
        puts = [place_put(self.router.name, place)]
        if isinstance(self._log, Declares):
            head = (await self._log.state(self.dest)).marks.head
            try:
                await self._log.lose(self.dest, head + gap.missed, Loss.SOURCE, expect_head=head, puts=puts)
            except HeadConflict:
                return  # somebody wrote there meanwhile: the next step tries again
            except WriteFailed:
                self.doubtful = True
                raise
        else:
            await self._commit(Append(puts=puts))
        self.place = place
        self._lost.value += gap.missed

    # -- the place

    def _moved(self, upto: int, copies: int) -> Place:
        dest = self.place.dest if self._retained is None else self._retained.cursor(upto)
        return Place(Cursor(upto, self.place.source.instance), self.place.forwarded + copies, dest)

    def _ask_the_store(self) -> None:
        """A store may refuse a commit and find later that it had taken it: only what it holds now is true."""
        if isinstance(self._log, Shelf):
            kept = place_of(self._log, self.router.name)
            if kept is not None:
                self.place = kept
        self.doubtful = False


def fitting(drafts: Sequence[Draft], state: StreamState) -> int:
    """How many of these, from the first on, a stream that rejects has room for."""
    settings = state.settings
    room = settings.cap_records - state.count if settings.cap_records else len(drafts)
    if settings.cap_bytes:
        left = settings.cap_bytes - state.bytes
        sizes = accumulate(len(draft.payload) + len(draft.meta or b"") for draft in drafts)
        room = min(room, sum(1 for _ in takewhile(lambda size: size <= left, sizes)))
    return max(0, min(room, len(drafts)))
