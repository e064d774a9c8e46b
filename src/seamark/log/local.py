"""The local log: one body of logic over any `Store`. This is the whole wiring; each part is a file of its own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Sequence

from seamark import limits
from seamark.clock import Clock
from seamark.errors import BadInput, Corrupt, Fault, HeadConflict, SeamarkError, WriteFailed
from seamark.log import intake, purge, recovery, retention, subjects
from seamark.log.admission import Gate
from seamark.log.cache import ReadCache
from seamark.log.chores import Chores
from seamark.log.commit import Committer
from seamark.log.deletion import Deletion, check
from seamark.log.ledger import Ledger, Registry
from seamark.log.moving import move
from seamark.log.news import Bell
from seamark.log.protocol import Append, Configured, Deleted, Dropped, News, Page, Put, Receipt, Selector, StreamState
from seamark.log.reader import Accept, Walk, read, seq_at
from seamark.log.revision import Revision
from seamark.log.settings import StreamSettings
from seamark.log.shelf import Values
from seamark.log.store import Store
from seamark.log.sweeper import Sweeper
from seamark.log.watermarks import Cursor, Loss
from seamark.log.writer import GroupWriter
from seamark.telemetry import events, logs
from seamark.telemetry.metrics import Metrics

_log = logs.logger("log")


class LocalLog:
    """Implements `Log`, `ReadsNow`, `Shelf`, `Health` and `Declares`. Belongs to the loop it was made in."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        metrics: Metrics,
        *,
        quota_bytes: int = 0,
        ephemeral: Store | None = None,
        instance: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        began = clock.monotonic()
        loop = asyncio.get_running_loop()
        self._store = store
        self._ephemeral = store if ephemeral is None else ephemeral
        self._clock = clock
        self._registry = Registry()
        self._values = Values(store)
        self._cache = ReadCache()
        self._bell = Bell()
        self._committer = Committer(
            store, self._ephemeral, registry=self._registry, values=self._values, clock=clock, metrics=metrics
        )
        self._gate = Gate(store, self._ephemeral, self._registry, quota_bytes, instance)
        losses = recovery.load(self._registry, store, self._gate)
        self._writer = GroupWriter(
            loop,
            store,
            registry=self._registry,
            gate=self._gate,
            committer=self._committer,
            values=self._values,
            bell=self._bell,
            clock=clock,
            metrics=metrics,
        )
        self._chores = Chores(
            registry=self._registry,
            store=store,
            ephemeral=self._ephemeral,
            committer=self._committer,
            writer=self._writer,
            expire=self._expire,
            clock=clock,
        )
        if losses:
            self._committer.commit((), losses)
        self._sweeper = Sweeper(loop, self._chores.all())
        metrics.on_scrape(lambda: self._measure(metrics))
        _log.info(events.STORE_OPENED, streams=len(self._registry), seconds=clock.monotonic() - began, **store.facts())

    @property
    def writer(self) -> GroupWriter:
        return self._writer

    @property
    def wakeup(self) -> Bell:
        return self._bell

    # -- writing

    async def append(self, append: Append) -> Receipt:
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

        def done(answer: Receipt | SeamarkError) -> None:
            if future.done():
                return  # the caller gave up; the append happened all the same
            if isinstance(answer, SeamarkError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self._writer.submit(append, done)
        return await future

    async def configure(self, name: str, settings: StreamSettings) -> Configured:
        """See `Log`. It is one commit, made on the loop, whatever the size of the stream: another `latest_per_subject`
        reads every record, a class to or from ephemeral copies every chunk, and everything else waits for it."""
        intake.check_text("stream name", name, limits.STREAM_NAME_BYTES_MAX)
        intake.check_settings(settings)
        self._barrier()
        ledger = self._registry.find(name)
        if ledger is None:
            self._commit(self._gate.create(name, settings))
            return Configured(self.state_now(name), True)
        now = self._clock.now_ns()
        revision = Revision(ledger)
        retention.expire(revision, now)
        before = ledger.meta.settings
        revision.meta.settings = settings
        retention.expire(revision, now)  # age goes before caps, under the new settings as well
        revision.must_commit = True
        try:
            subjects.reindex(revision, before.latest_per_subject)
        except Corrupt:
            ledger.forget_unseen()  # what retention took from the front goes back
            raise
        home = self._gate.home(settings)
        if home is ledger.store:
            self._commit(revision)
        else:
            move(self._committer, revision, home)
        return Configured(self.state_now(name), False)

    async def drop(self, name: str) -> Dropped:
        self._barrier()
        ledger = self._registry.find(name)
        if ledger is None:
            return Dropped(name=name, existed=False, head=0, instance="")
        self._committer.commit((), purge.drop_changes(ledger))
        self._registry.remove(ledger)
        if ledger.store is not self._store:
            self._chores.drop_volatile(ledger)
        meta = ledger.meta
        self._bell.ring([News(name, meta.instance, ledger.marks, (), synced=True, dropped=True)])
        return Dropped(name=name, existed=True, head=meta.head, instance=meta.instance)

    async def delete(self, name: str, selector: Selector) -> Deleted:
        check(selector)
        self._barrier()
        self._fresh(name)
        ledger = self._registry.get(name)
        deletion = Deletion(ledger, selector)
        while True:
            self._barrier()
            if self._registry.get(name) is not ledger:
                break
            revision = deletion.step()
            if revision is not None:
                self._commit(revision)
            if deletion.done:
                break
            await asyncio.sleep(0)
        return Deleted(count=deletion.count, state=self.state_now(name))

    async def lose(
        self, name: str, upto: int, loss: Loss, *, expect_head: int | None = None, puts: Sequence[Put] = ()
    ) -> StreamState:
        """See `Declares`."""
        for put in puts:
            intake.check_put(put)
        self._barrier()
        ledger = self._registry.get(name)
        if expect_head is not None and expect_head != ledger.head:
            raise HeadConflict.at(name, expected=expect_head, head=ledger.head)
        if not ledger.head < upto <= limits.SEQ_MAX:
            raise BadInput(f"{name} is at {ledger.head}: only later seqs can be declared lost", head=ledger.head)
        revision = Revision(ledger)
        revision.must_commit = True
        revision.declare_lost(upto, loss)
        self._commit(revision, puts=puts)
        self._bell.ring([News(name, ledger.meta.instance, ledger.marks, (), synced=True)])
        return ledger.state()

    # -- reading

    async def state(self, name: str) -> StreamState:
        return self.state_now(name)

    def state_now(self, name: str) -> StreamState:
        return self._fresh(name).state()

    async def streams(self, *, prefix: str = "", after: str = "", limit: int = 1_000) -> list[StreamState]:
        found: list[StreamState] = []
        for name in self._registry.names(prefix, after):
            if len(found) >= limit:
                break
            found.append(self.state_now(name))
        return found

    async def read(
        self,
        name: str,
        cursor: Cursor,
        *,
        records_max: int = limits.PAGE_RECORDS_DEFAULT,
        bytes_max: int = limits.PAGE_BYTES_DEFAULT,
        synced: bool = False,
        accept: Accept | None = None,
    ) -> Page:
        walk = self._begin(name, cursor, records_max=records_max, bytes_max=bytes_max, synced=synced, accept=accept)
        while not walk.ended:
            await asyncio.sleep(0)
            walk.check_unchanged(self._registry.find(name))
            if not walk.ended:
                read(walk)
        return walk.page()

    def read_now(
        self,
        name: str,
        cursor: Cursor,
        *,
        records_max: int = limits.PAGE_RECORDS_DEFAULT,
        bytes_max: int = limits.PAGE_BYTES_DEFAULT,
        synced: bool = False,
        accept: Accept | None = None,
    ) -> Page:
        """As `read`, but never more than SCAN_RECORDS_MAX records are examined: the page may end early."""
        return self._begin(
            name, cursor, records_max=records_max, bytes_max=bytes_max, synced=synced, accept=accept
        ).page()

    async def seq_at(self, name: str, ts: int) -> int:
        return seq_at(self._fresh(name), ts)

    def fetch(self, space: str, key: bytes) -> bytes | None:
        return self._values.fetch(space, key)

    def scan(self, space: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        return self._values.scan(space, prefix)

    # -- care

    def health(self) -> dict[str, str | int | float | bool]:
        failure = self._committer.failure
        facts: dict[str, str | int | float | bool] = {
            "writable": failure is None,
            "streams": len(self._registry),
            **self._store.facts(),
        }
        if failure is not None:
            facts["cause"] = str(failure.fields.get("cause", failure.message))
        if self._registry.broken:
            facts["damaged_streams"] = len(self._registry.broken)
        return facts

    def sweep(self) -> None:
        """Run the background chores now, until nothing is left to do."""
        while self._sweeper.sweep():
            pass

    async def backup(self, path: str) -> None:
        """A consistent copy in a new directory. It is made on the loop: reads and writes of this process wait until all
        bytes are copied. A server is better copied from another process, which is what `seamark backup` does."""
        self._barrier()
        self._store.backup(path)

    async def close(self) -> None:
        if self._writer.closed:
            return
        self._writer.flush()
        self._writer.closed = True
        self._sweeper.stop()
        try:
            self._rest()
        finally:
            self._store.close()
            self._ephemeral.close()

    # -- inside

    def _rest(self) -> None:
        """The last commit: nothing stays reserved, so the next start has nothing to declare lost."""
        revisions = []
        for ledger in self._registry:
            if ledger.pending or ledger.meta.reserved != ledger.meta.head:
                revision = Revision(ledger)
                revision.must_commit = True
                revisions.append(revision)
        if revisions or self._values.pending():
            self._committer.commit(revisions, resting=True)

    def _barrier(self) -> None:
        """Everything accepted so far is committed, and the store takes writes."""
        if self._writer.closed:
            raise Fault("the log is closed")
        self._writer.flush()
        if self._committer.failure is not None:
            raise WriteFailed(self._committer.failure.message, **self._committer.failure.fields)

    def _begin(
        self, name: str, cursor: Cursor, *, records_max: int, bytes_max: int, synced: bool, accept: Accept | None
    ) -> Walk:
        """A walk with its first step done."""
        walk = Walk(
            self._fresh(name),
            self._cache,
            cursor,
            records_max=records_max,
            bytes_max=bytes_max,
            synced=synced,
            accept=accept,
        )
        read(walk)
        return walk

    def _fresh(self, name: str) -> Ledger:
        """The stream with retention applied: what has expired is committed as lost before anything shows it."""
        ledger = self._registry.get(name)
        if retention.due(ledger, self._clock.now_ns()):
            self._expire(ledger)
        return ledger

    def _expire(self, ledger: Ledger) -> None:
        if self._writer.busy or self._writer.closed or self._committer.failure is not None:
            return  # what cannot be declared lost yet is still there
        revision = Revision(ledger)
        retention.expire(revision, self._clock.now_ns())
        if revision.evicted:
            try:
                self._commit(revision)
            except WriteFailed:
                ledger.front = None

    def _commit(self, revision: Revision, *, puts: Sequence[Put] = ()) -> None:
        _, damaged = self._committer.commit([revision], puts=[(revision, put) for put in puts])
        if damaged:
            raise damaged[revision]

    def _measure(self, metrics: Metrics) -> None:
        metrics.gauge("seamark_log_streams").value = len(self._registry)
        metrics.gauge("seamark_log_records_live").value = self._registry.records
        metrics.gauge("seamark_log_bytes_live").value = self._registry.bytes
        metrics.gauge("seamark_log_writable").value = float(self._committer.failure is None)
        pending = sum(ledger.pending_bytes for ledger in self._registry)
        metrics.gauge("seamark_log_pending_bytes").value = pending + self._writer.queued_bytes
        metrics.gauge("seamark_log_read_cache_bytes").value = self._cache.bytes
