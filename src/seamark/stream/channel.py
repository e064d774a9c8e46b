"""A channel: one stream at one consistency, with the groups of its live readers and a position in the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from seamark.errors import StreamNotFound
from seamark.limits import CATCH_UP_BYTES_MAX
from seamark.log.protocol import News, Page
from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Watermarks
from seamark.stream.dialect import Span
from seamark.stream.group import Encoding, Group, GroupKey
from seamark.stream.leg import Leg
from seamark.stream.selection import Selection
from seamark.telemetry import events
from seamark.telemetry.logs import logger

if TYPE_CHECKING:
    from seamark.stream.hub import Hub

_log = logger("stream")


class Channel:
    """Every live reader of the channel has seen everything up to `position`, and nothing after it.

    News with records moves it straight on; news without (another process wrote), or with a hole, makes it read the log
    from its own position. What a shared read cannot say (a gap) sends the live readers back to reading on their own.
    """

    __slots__ = (
        "_behind",
        "_doubtful",
        "_encodings",
        "_ended",
        "_flushing",
        "_goal",
        "_gone_head",
        "_groups",
        "_marks",
        "_parked",
        "_pending",
        "_reader",
        "_selection",
        "dirty",
        "hub",
        "instance",
        "marks",
        "position",
        "stream",
        "synced",
    )

    def __init__(self, hub: Hub, stream: str, synced: bool) -> None:
        self.hub = hub
        self.stream = stream
        self.synced = synced
        self.dirty = False
        self.instance: str | None = None
        self.position: int | None = None  # None until the first page or news says where the stream stands
        self.marks = Watermarks()  # as they were at `position`
        self._pending: list[Record] = []  # heard in this tick; they follow `position` without a hole
        self._marks = self.marks  # as they are after what is pending
        self._doubtful = False  # news of another instance came: only the log can tell which one is the later
        self._goal = 0  # the log is known to reach so far; beyond position and pending it has to be read
        self._gone_head: int | None = None
        self._ended: News | None = None
        self._behind: set[Leg] = set()
        self._parked: set[Leg] = set()
        self._groups: dict[GroupKey, Group] = {}
        self._encodings: dict[Hashable, Encoding] = {}
        self._selection = Selection()
        self._flushing = False
        self._reader: asyncio.Task[None] | None = None

    # -- readers

    def attach(self, leg: Leg) -> None:
        leg.channel = self
        self._behind.add(leg)

    def detach(self, leg: Leg) -> None:
        self._behind.discard(leg)
        self._parked.discard(leg)
        leg.parked = False
        self._release()

    def begin(self, page: Page) -> None:
        """The first page read tells where the stream stands, unless news came before it."""
        if self.position is None:
            self.instance = page.cursor.instance
            self.marks = self._marks = page.marks
            self.position = self._goal = self.reach(page.marks)
            if self._ended is not None and self._ended.instance == self.instance:
                self._vanish(self._ended.marks.head)  # the page was read before the end we heard of

    @property
    def last_head(self) -> int:
        """For a stream that is not there any more: the last head that anybody told us of."""
        return self.marks.head if self._ended is None else self._ended.marks.head

    def reach(self, marks: Watermarks) -> int:
        """How far this channel's readers may see."""
        return marks.synced if self.synced else marks.head

    def join(self, leg: Leg) -> bool:
        """Into the live set, if the reader stands exactly where the live set does: nothing lost, nothing twice."""
        if self._flushing or leg.cursor != self.position or leg.instance != self.instance:
            return False
        dialect = leg.session.script.dialect
        key = GroupKey(leg.filter, dialect.projection)
        group = self._groups.get(key)
        if group is None:
            encoding = self._encodings.get(key.projection)
            if encoding is None:
                encoding = self._encodings[key.projection] = Encoding(dialect)
            encoding.groups += 1
            group = self._groups[key] = Group(self, key, encoding)
            self._selection.add(group)
        group.add(leg)
        leg.cursor = self.position  # the same number, and from now on the same object for all: they are many
        if not leg.session.own_bytes:
            leg.joined_at = self.hub.wheel.now()
        self._behind.discard(leg)
        return True

    def left(self, leg: Leg) -> None:
        """Out of the live set, still on the stream."""
        self._behind.add(leg)

    def park(self, leg: Leg, marks: Watermarks) -> None:
        """The reader is ahead of us: it has seen the log before our news came. It is woken when we have moved."""
        self._parked.add(leg)
        leg.parked = True
        self._goal = max(self._goal, self.reach(marks))
        if self._goal > self._end:
            self.hub.mark(self)

    def remove_group(self, group: Group) -> None:
        del self._groups[group.key]
        self._selection.remove(group)
        group.encoding.groups -= 1
        if not group.encoding.groups:
            del self._encodings[group.key.projection]

    @property
    def live(self) -> int:
        return sum(map(len, self._groups.values()))

    # -- news

    def hear(self, news: News) -> None:
        """Take note; the flush at the end of the tick acts on it."""
        if self.instance is not None and news.instance != self.instance:
            # Late news of an earlier instance, or news of a later one whose predecessor's end we missed: the log knows
            # which.
            self._doubtful = True
            self.hub.mark(self)
        elif news.dropped and self.instance is None:
            self._ended = news  # nobody has read anything yet: it may be the end of an earlier instance
        elif news.dropped:
            self._vanish(news.marks.head)
        elif news.synced if self.synced else news.visible:
            self._advance(news)

    def _advance(self, news: News) -> None:
        mark = self.reach(news.marks)
        if self.position is None:
            # Whatever is visible by now is history to every reader.
            self.instance = news.instance
            self.marks = self._marks = news.marks
            self.position = self._goal = mark
            return
        if mark <= self._end:
            return
        fresh = self._following(news.records) if news.records else None
        if fresh is None:
            self._goal = max(self._goal, mark)
        else:
            self._pending += fresh
            self._marks = news.marks
        self.hub.mark(self)

    def _following(self, records: Sequence[Record]) -> Sequence[Record] | None:
        """The records that continue what we have without a hole; None when only the log can tell."""
        if self._unread:
            return None  # already reading: these will be found there
        end = self._end
        if records[0].seq <= end:
            records = [record for record in records if record.seq > end]
        dense = records and records[-1].seq - end == len(records)  # they ascend, and begin behind `end`
        return records if dense else None

    @property
    def _unread(self) -> bool:
        """Whether the log has to be asked: it is known to reach further, or may hold another instance."""
        return self._doubtful or self._goal > self._end

    @property
    def _end(self) -> int:
        """How far position and pending reach together."""
        if self._pending:
            return self._pending[-1].seq
        return self.position or 0

    def _vanish(self, head: int) -> None:
        self._gone_head = head
        self.hub.forget_channel(self)  # a stream of the same name made later gets a channel of its own
        self.hub.mark(self)

    # -- the flush

    def flush(self) -> None:
        """Once per tick: hand out what is pending, then read on if the log is known to reach further."""
        if self._pending:
            records, self._pending = self._pending, []
            self._fan_out(records, records[-1].seq, self._marks)
        if self._unread and self._reader is None:
            self._read_on()
        if self._gone_head is not None:
            self._dismiss(self._gone_head)
        self._wake_parked()
        self._release()

    def _fan_out(self, records: Sequence[Record], to: int, marks: Watermarks) -> None:
        assert self.position is not None, "a channel begins before anything is handed out"
        span = Span(self.stream, self.position, to, marks, True)
        chosen = self._selection.choose(records) if self._groups else {}
        now = self.hub.wheel.now()
        self._flushing = True
        for group, wanted in chosen.items():
            try:
                self.hub.deliveries.value += group.deliver(wanted, span, now)
            except Exception as error:
                self._fail(group, error)
        self.position = to
        self.marks = marks
        for group in chosen:
            group.settle()
        for encoding in self._encodings.values():
            encoding.forget()
        self._flushing = False

    def _fail(self, group: Group, error: Exception) -> None:
        """A dialect could not encode: its readers' streams end, loudly; the others go on."""
        _log.error(events.FANOUT_FAILED, stream=self.stream, exc_info=True)
        for leg in group.members():
            leg.session.fail(error)

    def _read_on(self) -> None:
        log = self.hub.reads_now
        if log is None:
            self._reader = asyncio.get_running_loop().create_task(self._read_waiting())
            return
        spent = 0
        while self._unread:
            if spent >= CATCH_UP_BYTES_MAX:
                self.hub.mark(self)
                return
            self._doubtful = False
            goal = self._goal
            try:
                page = log.read_now(self.stream, self._cursor(), synced=self.synced)
            except Exception as error:
                self._cannot_read(error)
                return
            spent += sum(record.size for record in page.records)
            self._take(page, goal)

    async def _read_waiting(self) -> None:
        """`_read_on` for a log whose reads wait. News that comes meanwhile only raises the goal, or the doubt anew."""
        try:
            while self._unread:
                self._doubtful = False
                goal = self._goal
                self._take(await self.hub.log.read(self.stream, self._cursor(), synced=self.synced), goal)
                self._wake_parked()
        except Exception as error:
            self._cannot_read(error)
            self._wake_parked()
        finally:
            self._reader = None
            self._release()

    def _take(self, page: Page, goal: int) -> None:
        """Act on a page that was asked for when the goal was `goal`; by now it may be higher, and the page too old."""
        assert self.position is not None, "a channel begins before it reads"
        if page.cursor.instance != self.instance:
            self._goal = self._end
            self._vanish(self.marks.head)
        elif page.gap is not None:
            self._scatter(max(self._goal, self.reach(page.marks)), page.marks)
        elif page.cursor.seq > self.position:
            self._fan_out(page.records, page.cursor.seq, page.marks)
        elif self._end < goal == self._goal:
            self._scatter(goal, page.marks)  # the log does not show what it announced: let every reader see for itself

    def _cannot_read(self, error: Exception) -> None:
        """Let every reader try for itself: each will meet the failure and end as its surface says. A stream that is not
        there any more is about to be announced as dropped."""
        if not isinstance(error, StreamNotFound):
            _log.error(events.SESSION_FAILED, stream=self.stream, exc_info=error)
        self._scatter(max(self._goal, self._end), self._marks)

    def _scatter(self, to: int, marks: Watermarks) -> None:
        """Nobody is live any more, so the channel may stand at the mark; its readers come there by themselves."""
        legs = [leg for group in self._groups.values() for leg in group.members()]
        for leg in legs:
            leg.leave()
        self.position = self._goal = to
        self.marks = self._marks = marks
        for leg in legs:
            leg.session.kick(leg)

    def _cursor(self) -> Cursor:
        return Cursor(self._end, self.instance)

    def _wake_parked(self) -> None:
        if self._parked:
            parked, self._parked = self._parked, set()
            for leg in parked:
                leg.parked = False
                leg.session.kick(leg)

    # -- the end

    def _dismiss(self, head: int) -> None:
        legs = [leg for group in self._groups.values() for leg in group.members()]
        for leg in [*legs, *self._behind]:
            if leg.group is None and not leg.first_read and leg.instance != self.instance:
                # It came in between the end and our hearing of it, and is reading the later instance already.
                leg.detach()
                self.hub.attach(leg)
                leg.session.kick(leg)
            else:
                leg.session.stream_gone(leg, head)

    def _release(self) -> None:
        if self._behind or self._groups:
            return
        if self._reader is not None:
            self._reader.cancel()
        self.hub.forget_channel(self)
