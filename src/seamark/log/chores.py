"""What the sweeper does: each chore is one bounded piece of work, and says whether there is more."""

from __future__ import annotations

from collections.abc import Callable

from seamark import limits
from seamark.clock import Clock
from seamark.log import dedupe, purge, retention
from seamark.log.commit import Committer
from seamark.log.indexing import Indexing
from seamark.log.ledger import Ledger, Registry
from seamark.log.store import ID, Change, Store
from seamark.log.sweeper import Chore
from seamark.log.writer import GroupWriter

_TEND_EVERY = 60  # rounds


class Chores:
    """All of them, over one log's parts."""

    def __init__(
        self,
        *,
        registry: Registry,
        store: Store,
        ephemeral: Store,
        committer: Committer,
        writer: GroupWriter,
        expire: Callable[[Ledger], None],
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._store = store
        self._ephemeral = ephemeral
        self._committer = committer
        self._writer = writer
        self._expire = expire
        self._clock = clock
        self._indexing = Indexing(registry, self._write)
        self._volatile_dropped: list[int] = []
        self._round = 0

    def all(self) -> list[tuple[str, Chore]]:
        return [
            ("retry", self.retry),
            ("expire", self.expire),
            ("forget keys", self.forget_keys),
            ("purge dropped", self.purge_dropped),
            ("purge leftovers", self.purge_leftovers),
            ("build columns", self._indexing.build),
            ("clear columns", self._indexing.clear),
            ("tend", self.tend),
        ]

    def drop_volatile(self, ledger: Ledger) -> None:
        """A dropped stream's records are in memory: nothing on disk will remind us."""
        self._volatile_dropped.append(ledger.meta.id)

    def retry(self) -> bool:
        """After a failed commit, see whether the store takes writes again."""
        self._writer.retry()
        return False

    def expire(self) -> bool:
        now = self._clock.now_ns()
        for ledger in self._registry:
            if retention.due(ledger, now):
                self._expire(ledger)
        return False

    def forget_keys(self) -> bool:
        more = False
        for store in {self._store, self._ephemeral}:
            with store.view() as view:
                changes = dedupe.forget(self._registry, view, self._clock.now_ns())
            if changes:
                self._write(store, changes)
                more = True
        return more

    def purge_dropped(self) -> bool:
        if self._volatile_dropped:
            key = ID.pack(self._volatile_dropped[0])
            changes = purge.owned(self._ephemeral, key, limits.PURGE_RECORDS_MAX)
            if changes:
                self._ephemeral.write(changes)
            else:
                del self._volatile_dropped[0]
            return True
        changes = purge.step_dropped(self._store)
        if changes:
            self._write(self._store, changes)
        return bool(changes)

    def purge_leftovers(self) -> bool:
        for ledger in self._registry:
            if ledger.meta.leftovers:
                changes, more = purge.step_leftovers(ledger)
                self._write(ledger.store, changes)
                ledger.meta.leftovers = more
                return True
        return False

    def tend(self) -> bool:
        self._round += 1
        if self._round % _TEND_EVERY == 0:
            self._store.tend()
        return False

    def _write(self, store: Store, changes: list[Change]) -> None:
        if store is not self._store:
            store.write(changes)
        elif self._committer.failure is not None:
            raise self._committer.failure
        else:
            self._committer.commit((), changes)
