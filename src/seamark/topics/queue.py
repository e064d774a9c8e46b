"""One queue: jobs of its log given out on lease, taken out of the log when they are done."""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from seamark import limits
from seamark.clock import NS_PER_MS, Clock
from seamark.errors import NotAQueue, SeamarkError, StreamNotFound
from seamark.log.protocol import Append, Log, Put, Selector, Shelf, StreamState
from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Loss
from seamark.topics import lease_rows
from seamark.topics.dead_letters import DeadLetters
from seamark.topics.leases import Lease, Leases, deal
from seamark.topics.model import LEASE_MS_MAX, LEASE_MS_MIN, TopicConfig, config_of, topic_of

RUN_SEQS = 64  # neighbours that are read together when single jobs are looked up
TOKEN_BITS = 64


class Want(msgspec.Struct, frozen=True):
    """Who asks for jobs, and for how many. `owner` is the connection that the leases end with; 0: none."""

    node: str
    most: int = 1
    lease_ms: int | None = None  # None: what the queue says
    owner: int = 0


class Job(NamedTuple):
    """A record that was just given to somebody, for the `deliveries`th time."""

    record: Record
    lease: Lease
    deliveries: int


class Standing(NamedTuple):
    """What a queue says of itself."""

    ready: int
    in_flight: int
    dead_lettered: int


class _Pass:
    """One round of giving: several claimers are served round-robin, one job each, until somebody's want or the bound on
    bytes ends it. Everybody gets at least one job if there are so many."""

    def __init__(self, wants: Sequence[Want]) -> None:
        self.wants = wants
        self.hands: list[list[Job]] = [[] for _ in wants]
        self._turns = deal(want.most for want in wants)
        self._left = min(sum(want.most for want in wants), limits.PAGE_RECORDS_MAX)
        self._bytes = 0

    @property
    def room(self) -> int:
        if self._bytes >= limits.PAGE_BYTES_MAX and all(self.hands):
            return 0
        return self._left

    @property
    def jobs(self) -> list[Job]:
        return [job for hand in self.hands for job in hand]

    def give(self, record: Record, lend: Callable[[Record, Want], Job]) -> None:
        place = next(self._turns)
        self.hands[place].append(lend(record, self.wants[place]))
        self._left -= 1
        self._bytes += record.size


class Queue:
    """The lease table of one instance of a queue topic, and what connects it to the log."""

    def __init__(self, log: Log, clock: Clock, state: StreamState, ensure: Callable[[str], Awaitable[object]]) -> None:
        """`ensure` makes a topic where there is none, for dead letters."""
        self.stream = state.name
        self.instance = state.instance
        self.config: TopicConfig = config_of(state.settings)
        self.on_change: Callable[[], None] | None = None  # called when jobs may have come back
        self.unsure = False  # records were deleted: some that we know may be gone
        self._log = log
        self._shelf = log if isinstance(log, Shelf) else None
        self._clock = clock
        self._lock = asyncio.Lock()  # one claim at a time finds out what is next
        self._fresh = 0  # every job after this seq that the table does not know was never given out
        self._outgoing: set[int] = set()
        self._removal: asyncio.Task[None] | None = None
        self.leases = self._restored()
        self._dead = DeadLetters(log, self.stream, self.instance, ensure)
        for seq in self._dead.moving:
            self.leases.leave(seq)

    # -- what it knows

    def now_ms(self) -> int:
        return self._clock.now_ns() // NS_PER_MS

    def standing(self, state: StreamState) -> Standing:
        """As the log stands. Leases that have run out are taken back first."""
        self._look(state)
        leases = self.leases
        return Standing(max(state.count - leases.unavailable, 0), leases.in_flight, self._dead.count)

    async def refresh(self, state: StreamState | None = None) -> StreamState:
        """Learn what the log (as `state` says, if given) and the clock did meanwhile. Raises StreamNotFound, NotAQueue."""
        if state is None:
            state = await self._log.state(self.stream)
        if state.instance != self.instance:
            raise StreamNotFound(f"there is no stream {self.stream} any more", stream=self.stream)
        self._look(state)
        if not self.config.is_queue:
            raise not_a_queue(self.stream)
        if self.unsure:
            self.unsure = False
            await self._drop_deleted()
        return state

    # -- what clients do

    async def take(self, wants: Sequence[Want]) -> list[list[Job]]:
        """Jobs for each of several claimers: reclaimed ones first, lowest first, then fresh ones."""
        async with self._lock:
            await self.refresh()
            await self._finish_moves()
            giving = _Pass(wants)
            try:
                await self._give_reclaimed(giving)
                await self._give_fresh(giving)
                await self._keep(job.record.seq for job in giving.jobs)
            except BaseException:
                self.undo(giving.jobs)
                raise
            return giving.hands

    async def ack(self, node: str, seqs: Sequence[int], tokens: Sequence[int | None]) -> list[int]:
        """These jobs are done: they leave the log. Returns those that `node` does not hold."""
        held, skipped = self._held(node, seqs, tokens, self.leases.leave)
        if held:
            await self.remove(held)
        return skipped

    async def nack(
        self, node: str, seqs: Sequence[int], tokens: Sequence[int | None], *, delay_ms: int = 0
    ) -> list[int]:
        """These jobs are for somebody else, at once or later. Returns those that `node` does not hold."""
        until = self.now_ms() + delay_ms if delay_ms else None
        held, skipped = self._held(node, seqs, tokens, lambda seq: self.leases.give_back(seq, until))
        await self._keep(held)
        self._changed()
        return skipped

    async def extend(
        self, node: str, seqs: Sequence[int], tokens: Sequence[int | None], *, lease_ms: int
    ) -> tuple[dict[int, int], list[int]]:
        """The leases of these jobs end so long after now. Returns their deadlines, and those that `node` does not hold."""
        deadline = self.now_ms() + _lease_ms(lease_ms)
        held, skipped = self._held(node, seqs, tokens, lambda seq: self.leases.extend(seq, deadline))
        await self._keep(held)
        self._changed()
        return dict.fromkeys(held, deadline), skipped

    def release(self, owner: int) -> None:
        """A connection has ended, and all that it holds is to be had again."""
        seqs = self.leases.release(owner)
        if seqs:
            self._keep_soon(seqs)
            self._changed()

    def undo(self, jobs: Sequence[Job]) -> None:
        """These could not be handed over: they were not delivered."""
        for job in jobs:
            if self.leases.lease(job.record.seq) == job.lease:
                self.leases.undo(job.record.seq)
        self._keep_soon(job.record.seq for job in jobs)
        self._changed()

    async def remove(self, seqs: Iterable[int]) -> None:
        """Take jobs that are leaving out of the log. Calls that come together share one deletion, as appends do a commit."""
        self._outgoing.update(seqs)
        if self._removal is None:
            self._removal = asyncio.create_task(self._remove())
        await asyncio.shield(self._removal)

    async def finish_moves(self) -> None:
        """Take out what an earlier process had copied to the dead letters and no more."""
        async with self._lock:
            await self.refresh()
            await self._finish_moves()

    # -- giving

    async def _give_reclaimed(self, giving: _Pass) -> None:
        while giving.room and (seqs := self.leases.reclaimed(min(giving.room, RUN_SEQS))):
            found, examined = await self._look_up(seqs)
            worn: list[Record] = []
            for seq in seqs[: bisect_right(seqs, examined)]:
                record = found.get(seq)
                if record is None:
                    self.leases.drop(seq)
                elif self._is_worn(seq):
                    worn.append(record)
                elif giving.room:
                    giving.give(record, self._lend)
            if worn:
                await self._bury(worn, giving)

    async def _give_fresh(self, giving: _Pass) -> None:
        while giving.room:
            start = self._fresh
            page = await self._log.read(
                self.stream, Cursor(start, self.instance), records_max=giving.room, accept=self._is_fresh
            )
            if page.cursor.instance != self.instance:
                return
            for record in page.records:
                giving.give(record, self._lend)
            self._fresh = page.cursor.seq
            if page.caught_up or page.cursor.seq == start:
                return

    def _lend(self, record: Record, want: Want) -> Job:
        lease_ms = _lease_ms(self.config.lease_ms if want.lease_ms is None else want.lease_ms)
        lease = Lease(want.node, secrets.randbits(TOKEN_BITS), self.now_ms() + lease_ms, want.owner)
        return Job(record, lease, self.leases.grant(record.seq, lease))

    def _is_fresh(self, record: Record) -> bool:
        return record.seq not in self.leases

    # -- dead letters

    def _is_worn(self, seq: int) -> bool:
        most = self.config.max_deliveries
        return bool(most and self.config.dead_letter is not None and self.leases.deliveries(seq) >= most)

    async def _bury(self, worn: Sequence[Record], giving: _Pass) -> None:
        assert self.config.dead_letter is not None
        jobs = [(record, self.leases.deliveries(record.seq)) for record in worn]
        await self._dead.move(self.config.dead_letter, jobs)
        for record in worn:
            if record.seq in self._dead.moving:
                self.leases.leave(record.seq)
            elif giving.room:
                giving.give(record, self._lend)
        await self._finish_moves()

    async def _finish_moves(self) -> None:
        if self._dead.moving:
            await self.remove(self._dead.moving)
            await self._dead.moved()

    # -- inside

    def _look(self, state: StreamState) -> None:
        self.config = config_of(state.settings)
        known = len(self.leases)
        self.leases.drop_before(state.marks.earliest)
        if self.leases.sweep(self.now_ms()) or len(self.leases) != known:
            self._changed()

    def _held(
        self, node: str, seqs: Sequence[int], tokens: Sequence[int | None], act: Callable[[int], object]
    ) -> tuple[list[int], list[int]]:
        """Do it to those that the node holds. A seq that is named twice is held only as long as the first time leaves it."""
        held: list[int] = []
        skipped: list[int] = []
        for seq, token in zip(seqs, tokens, strict=True):
            if self.leases.holds(seq, node, token):
                act(seq)
                held.append(seq)
            else:
                skipped.append(seq)
        return held, skipped

    async def _remove(self) -> None:
        await asyncio.sleep(0)  # whoever acknowledges in the same turn comes along
        seqs, self._outgoing, self._removal = self._outgoing, set(), None
        try:
            if (await self._log.state(self.stream)).instance == self.instance:
                await self._log.delete(self.stream, Selector(seqs=tuple(sorted(seqs))))
        except SeamarkError:
            for seq in seqs - self._dead.moving:
                self.leases.stay(seq)
            raise
        else:
            for seq in seqs:
                self.leases.drop(seq)
            self._keep_soon(seqs)  # a row without its job is found out when it is read
        finally:
            self._changed()

    async def _drop_deleted(self) -> None:
        seqs = list(self.leases)
        while seqs:
            found, examined = await self._look_up(seqs[:RUN_SEQS])
            known = bisect_right(seqs, examined)
            for seq in seqs[:known]:
                if seq not in found:
                    self.leases.drop(seq)
            del seqs[:known]
        self._changed()

    async def _look_up(self, seqs: Sequence[int]) -> tuple[dict[int, Record], int]:
        """The records of some of these seqs, and up to which seq was looked: what is not found up to there is gone."""
        first = seqs[0]
        last = seqs[bisect_right(seqs, first + RUN_SEQS - 1) - 1]
        page = await self._log.read(self.stream, Cursor(first - 1, self.instance), records_max=last - first + 1)
        if page.gap is not None and page.gap.loss is Loss.RECREATED:
            return {}, last  # not the records that we knew
        wanted = set(seqs)
        return {record.seq: record for record in page.records if record.seq in wanted}, max(page.cursor.seq, first)

    # -- leases that outlive the process

    @property
    def _keeps(self) -> bool:
        return self.config.leases_durable and self._shelf is not None

    async def _keep(self, seqs: Iterable[int]) -> None:
        if self._keeps and (puts := lease_rows.rows_of(self.leases, self.stream, self.instance, seqs)):
            await self._log.append(Append(puts=puts))

    def _keep_soon(self, seqs: Iterable[int]) -> None:
        """The same where nobody waits for it: the worst that a lost row does is one delivery more."""
        if self._keeps:
            self._put(lease_rows.rows_of(self.leases, self.stream, self.instance, seqs))

    def _put(self, puts: list[Put]) -> None:
        if puts:
            self._log.writer.submit(Append(puts=puts), lambda outcome: None)

    def _restored(self) -> Leases:
        if self._shelf is None:
            return Leases()
        if self.config.leases_durable:
            self.unsure = True  # some may have left the log with the last process
            return lease_rows.restore(self._shelf, self.stream, self.instance)
        self._put(lease_rows.forget(self._shelf, self.stream))  # the setting was on once
        return Leases()

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()


def _lease_ms(lease_ms: int) -> int:
    return min(max(lease_ms, LEASE_MS_MIN), LEASE_MS_MAX)


def not_a_queue(stream: str) -> NotAQueue:
    return NotAQueue(f"topic {topic_of(stream)} is not a queue", stream=stream)
