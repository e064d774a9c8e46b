"""The one way in: appends queue up, and one turn of the loop commits whatever has arrived (group commit).

The commit runs inline. A thread would cost four to six times as much in hand-over of the interpreter lock as it gains.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from seamark import limits
from seamark.clock import Clock
from seamark.errors import Busy, SeamarkError, ShuttingDown, WriteFailed
from seamark.log import intake, recovery
from seamark.log.admission import Gate
from seamark.log.commit import PROBE, Committer, Timing
from seamark.log.ledger import Registry
from seamark.log.news import Bell
from seamark.log.protocol import Append, Done, News, Receipt
from seamark.log.record import Record
from seamark.log.revision import Revision
from seamark.log.seal import seal
from seamark.log.shelf import Values
from seamark.log.store import Space, Store
from seamark.log.ticket import Group, Ticket
from seamark.telemetry import events, logs
from seamark.telemetry.metrics import Metrics

_log = logs.logger("log")
_AT_ONCE = Timing(0.0, 0.0)


class GroupWriter:
    """Implements `Writer`. No task and no future per append: callbacks only."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        store: Store,
        *,
        registry: Registry,
        gate: Gate,
        committer: Committer,
        values: Values,
        bell: Bell,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._loop = loop
        self._store = store
        self._registry = registry
        self._gate = gate
        self._committer = committer
        self._values = values
        self._bell = bell
        self._clock = clock
        self._queue: deque[tuple[Append, Done, int, int]] = deque()
        self._queued_bytes = 0
        self._scheduled = False
        self.busy = False  # a turn is running; what it has assigned is not to be disturbed
        self.closed = False
        self._owing = False  # a turn broke off and may have left what it had acknowledged
        self._accepted = metrics.counter("seamark_log_appends_total", "accepted")
        self._deduped = metrics.counter("seamark_log_appends_total", "deduped")
        self._refused = metrics.counter("seamark_log_appends_total", "refused")
        self._appended = metrics.counter("seamark_log_records_appended_total")
        self._overfull = metrics.counter("seamark_log_overfull_total")
        self._peak = metrics.gauge("seamark_log_queued_appends_peak")
        depth = metrics.gauge("seamark_log_queued_appends")
        metrics.on_scrape(lambda: setattr(depth, "value", len(self._queue)))

    @property
    def queued_bytes(self) -> int:
        return self._queued_bytes

    def submit(self, append: Append, done: Done) -> None:
        try:
            records_size, size = intake.measure(append)
            self._refuse_while_unable(size)
        except SeamarkError as error:
            self._answer(done, error)
            return
        self._queue.append((append, done, records_size, size))
        self._queued_bytes += size
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def flush(self) -> None:
        """Commit what was queued so far, at once."""
        while self._queue and not self.busy:
            self._turn()

    def retry(self) -> None:
        """Try a commit with everything that was acknowledged and could not be written yet."""
        if self._committer.failure is None and not self._owing:
            return
        revisions = [Revision(ledger) for ledger in self._registry if ledger.pending or ledger.pending_keys]
        changes = [(Space.FACTS, PROBE, seal(PROBE, b"probe"))] if self._committer.failure is not None else []
        try:
            self._committer.commit(revisions, changes)
        except WriteFailed:
            if self._store.returned():
                self._bell.ring(recovery.reload(self._registry, self._store, self._gate))
            raise
        self._owing = False
        self._bell.ring(
            [
                _news(revision, revision.arrivals, visible=False, synced=True)
                for revision in revisions
                if revision.closed and revision.arrivals
            ]
        )

    # -- one turn

    def _refuse_while_unable(self, size: int) -> None:
        if self.closed:
            raise ShuttingDown("the log is closing")
        failure = self._committer.failure
        if failure is not None:
            raise WriteFailed(failure.message, **failure.fields)
        if self._queued_bytes + size > limits.PENDING_BYTES_MAX:
            self._overfull.value += 1
            raise Busy("too much is waiting to be written", limit="PENDING_BYTES_MAX", max=limits.PENDING_BYTES_MAX)

    def _turn(self) -> None:
        self._scheduled = False
        if self.busy or not self._queue:
            return
        self.busy = True
        self._peak.value = max(self._peak.value, len(self._queue))
        group = Group(self._clock.now_ns())
        taken = self._take()
        try:
            self._run(group, taken)
        except Exception as error:
            # A fault of ours: nobody may be left waiting, and nothing half done may stay.
            _log.error(events.TASK_FAILED, task="group commit", error=repr(error), exc_info=True)
            self._abandon(group, WriteFailed(f"the commit failed: {error!r}", cause=repr(error)))
        finally:
            self.busy = False
            if self._queue and not self._scheduled:
                self._scheduled = True
                self._loop.call_soon(self._turn)

    def _take(self) -> list[tuple[Append, Done, int]]:
        """What fits one commit; at least one append."""
        taken: list[tuple[Append, Done, int]] = []
        records = size = 0
        queue = self._queue
        while queue:
            append, done, records_size, append_size = queue[0]
            records += len(append.drafts)
            size += append_size
            if taken and (records > limits.COMMIT_RECORDS_MAX or size > limits.COMMIT_BYTES_MAX):
                break
            queue.popleft()
            self._queued_bytes -= append_size
            taken.append((append, done, records_size))
        return taken

    def _run(self, group: Group, taken: Sequence[tuple[Append, Done, int]]) -> None:
        refusal = self._committer.failure
        if refusal is not None:
            # These were queued before the store began to refuse. Only `retry` ends that, because it takes everything
            # along that was acknowledged meanwhile.
            for _, done, _ in taken:
                self._answer(done, WriteFailed(refusal.message, **refusal.fields))
            return
        for append, done, size in taken:
            try:
                self._gate.admit(group, append, done, size)
            except SeamarkError as error:
                group.answers.append((done, error))
        damaged = self._show_early(group)
        for done, answer in group.answers:
            self._answer(done, answer)
        group.answers.clear()
        late = [ticket for ticket in group.tickets if not ticket.early] if group.early else group.tickets
        revisions = [
            revision for revision in group.revisions.values() if not revision.closed and revision not in damaged
        ]
        if not late and not revisions and not group.puts:
            return
        try:
            timing, more = self._committer.commit(revisions, puts=group.puts)
            damaged |= more
        except WriteFailed as failure:
            for ticket in late:
                self._finish(ticket, failure)
            return
        for ticket in late:
            if ticket.revision is not None and ticket.revision in damaged:
                self._finish(ticket, damaged[ticket.revision])
            else:
                self._acknowledge(ticket, timing)
        self._bell.ring(_committed_news([revision for revision in revisions if revision not in damaged]))

    def _show_early(self, group: Group) -> dict[Revision, SeamarkError]:
        """Acknowledge what does not wait for the commit, and make it visible. Returns what could not be."""
        instant = [revision for revision in group.revisions.values() if self._is_instant(revision)]
        if not instant and not group.early:
            return {}
        damaged = self._committer.commit(instant, shelf=False)[1] if instant else {}
        shown: dict[Revision, list[Record]] = {}
        for ticket in group.tickets:
            revision = ticket.revision
            if revision is None:
                continue
            if revision.closed:
                ticket.early = group.early = True
            elif ticket.early:
                if ticket.records:
                    revision.ledger.show(ticket.records, ticket.size)
                    shown.setdefault(revision, []).extend(ticket.records)
                if ticket.append.key is not None:
                    revision.ledger.pending_keys[ticket.append.key] = ticket.row(group.now)
                self._values.show(ticket.append.puts)
        for ticket in group.tickets:
            if ticket.early:
                self._acknowledge(ticket, _AT_ONCE)
        news = [_news(rev, rev.fresh, synced=True) for rev in instant if rev.fresh and rev not in damaged]
        for revision, records in shown.items():
            news.append(_news(revision, records))
            del revision.fresh[: len(records)]
            revision.shown = records
        self._bell.ring(news)
        return damaged

    def _is_instant(self, revision: Revision) -> bool:
        """Ephemeral records whose seqs are already reserved: their commit touches memory only."""
        return revision.store is not self._store and not revision.must_commit

    def _acknowledge(self, ticket: Ticket, timing: Timing) -> None:
        revision = ticket.revision
        waited = revision is None or revision.ledger.fsync
        self._accepted.value += 1
        self._appended.value += len(ticket.records)
        self._finish(ticket, ticket.receipt(timing.write_ms, timing.sync_ms if waited else 0.0))

    def _finish(self, ticket: Ticket, answer: Receipt | SeamarkError) -> None:
        if ticket.answered:
            return
        ticket.answered = True
        self._answer(ticket.done, answer)
        if ticket.followers is not None:
            if isinstance(answer, Receipt):
                answer = _as_repeat(answer)
            for done in ticket.followers:
                self._answer(done, answer)

    def _answer(self, done: Done, answer: Receipt | SeamarkError) -> None:
        if not isinstance(answer, Receipt):
            self._refused.value += 1
        elif answer.deduped:
            self._deduped.value += 1
        try:
            done(answer)
        except Exception as error:
            _log.error(events.LISTENER_FAILED, error=repr(error), exc_info=True)

    def _abandon(self, group: Group, failure: WriteFailed) -> None:
        self._owing = True
        for revision in group.revisions.values():
            revision.ledger.forget_unseen()
        for done, answer in group.answers:
            self._answer(done, answer)
        for ticket in group.tickets:
            self._finish(ticket, failure)


def _as_repeat(receipt: Receipt) -> Receipt:
    return Receipt(
        stream=receipt.stream,
        instance=receipt.instance,
        first=receipt.first,
        last=receipt.last,
        head=receipt.head,
        ts=receipt.ts,
        deduped=True,
        sync_ms=receipt.sync_ms,
    )


def _committed_news(revisions: Iterable[Revision]) -> list[News]:
    news: list[News] = []
    for revision in revisions:
        if revision.shown:
            news.append(_news(revision, revision.shown, visible=False, synced=True))
        if revision.fresh:
            news.append(_news(revision, revision.fresh, synced=True))
    return news


def _news(revision: Revision, records: Sequence[Record], *, visible: bool = True, synced: bool = False) -> News:
    ledger = revision.ledger
    return News(ledger.name, ledger.meta.instance, ledger.marks, records, synced, visible)
