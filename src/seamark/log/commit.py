"""The commit: everything that has to move together becomes one write of the store, and shows only afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seamark.clock import Clock
from seamark.errors import Corrupt, SeamarkError, WriteFailed
from seamark.log import dedupe, retention, subjects
from seamark.log.ledger import Registry
from seamark.log.protocol import Put
from seamark.log.revision import Revision
from seamark.log.seal import seal
from seamark.log.shelf import Values, change_of
from seamark.log.store import ID, Change, Space, Store, StoreFailed
from seamark.telemetry import events, logs
from seamark.telemetry.metrics import Metrics

NEXT_ID = b"next_id"
PROBE = b"probe"

_log = logs.logger("log")


class Timing(NamedTuple):
    write_ms: float
    sync_ms: float


class Committer:
    """The only place that writes. Knows whether the store takes writes now, and if not, why."""

    def __init__(
        self, store: Store, ephemeral: Store, *, registry: Registry, values: Values, clock: Clock, metrics: Metrics
    ) -> None:
        self.store = store
        self._ephemeral = ephemeral
        self._registry = registry
        self._values = values
        self._clock = clock
        self._metrics = metrics
        self._committed = metrics.counter("seamark_log_commits_total", "committed")
        self._failed = metrics.counter("seamark_log_commits_total", "failed")
        self._seconds = metrics.histogram("seamark_log_commit_seconds")
        self._records = metrics.histogram("seamark_log_commit_records")
        self._syncs = metrics.histogram("seamark_log_sync_seconds")
        self._bytes = metrics.counter("seamark_log_bytes_committed_total")
        self._removed = metrics.counter("seamark_log_records_deleted_total")
        self.failure: WriteFailed | None = None

    def commit(
        self,
        revisions: Sequence[Revision],
        changes: Sequence[Change] = (),
        *,
        puts: Sequence[tuple[Revision | None, Put]] = (),
        shelf: bool = True,
        resting: bool = False,
    ) -> tuple[Timing, dict[Revision, SeamarkError]]:
        """Write all revisions, changes, and puts (with `shelf` those acknowledged before as well) at once. Returns how
        long it took, and the revisions left out, with their puts, because what is stored of their stream is damaged.
        Raises WriteFailed: nothing written."""
        began = self._clock.monotonic()
        try:
            ready, refused = self._close(revisions, resting=resting)
            durable = self._values.pending() if shelf else []
            durable += [change_of(put) for revision, put in puts if revision is None or revision not in refused]
            durable += changes
            volatile = self._gather(ready, durable)
            sync = self._write(durable) if durable else 0.0
        except BaseException:
            for revision in revisions:
                revision.ledger.forget_unseen()
            raise
        if volatile:
            self._ephemeral.write(volatile)
        if shelf and durable:
            self._values.committed()
        self._adopt(ready)
        took = self._clock.monotonic() - began
        if durable:
            self._committed.value += 1
            self._seconds.observe(took)
            self._records.observe(sum(len(revision.arrivals) for revision in ready))
        return Timing((took - sync) * 1e3, sync * 1e3), refused

    def _gather(self, ready: Sequence[Revision], durable: list[Change]) -> list[Change]:
        """Add what goes to the durable store; return what stays in memory."""
        volatile: list[Change] = []
        if any(revision.keys and revision.home is self.store for revision in ready):
            with self.store.view() as view:  # before the revisions' keys: one may be used again once it is forgotten
                durable += dedupe.forget(self._registry, view, self._clock.now_ns())
        for revision in ready:
            (durable if revision.home is self.store else volatile).extend(revision.changes)
            if revision.durable_meta:
                durable.append(revision.meta_change())
        if any(revision.created for revision in ready):
            durable.append((Space.FACTS, NEXT_ID, seal(NEXT_ID, ID.pack(self._registry.next_id))))
        return volatile

    def _close(
        self, revisions: Sequence[Revision], *, resting: bool
    ) -> tuple[list[Revision], dict[Revision, SeamarkError]]:
        ready: list[Revision] = []
        refused: dict[Revision, SeamarkError] = {}
        for revision in revisions:
            try:
                with revision.reading():
                    subjects.replace(revision)
                    retention.trim(revision)
                    revision.close(resting=resting)
            except Corrupt as damage:
                refused[revision] = damage
                revision.ledger.forget_unseen()
            else:
                ready.append(revision)
        return ready, refused

    def _write(self, durable: Sequence[Change]) -> float:
        try:
            sync = self.store.write(durable)
        except StoreFailed as failed:
            self._failed.value += 1
            if self.failure is None:
                _log.error(events.COMMIT_FAILED, cause=str(failed))
            self.failure = WriteFailed(f"the store refuses writes: {failed}", cause=str(failed))
            raise self.failure from failed
        if self.failure is not None:
            self.failure = None
            _log.info(events.COMMIT_RECOVERED)
        if self.store.durable:
            self._syncs.observe(sync)
            self._bytes.value += sum(len(key) + (0 if value is None else len(value)) for _, key, value in durable)
        return sync

    def _adopt(self, ready: Sequence[Revision]) -> None:
        for revision in ready:
            ledger = revision.ledger
            if revision.gone:
                ledger.front = None
            if revision.created:
                ledger.adopt(revision.meta)
                self._registry.add(ledger)
            else:
                self._registry.replace(ledger, revision.meta)
            for loss, count in revision.evicted.items():
                self._metrics.counter("seamark_log_records_evicted_total", loss.value).value += count
            self._removed.value += revision.removed_count
