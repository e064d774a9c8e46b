"""Whether an append is let in, and which seqs it gets."""

from __future__ import annotations

from collections.abc import Callable

from seamark import limits
from seamark.errors import HeadConflict, QuotaExceeded, StreamFull, StreamNotFound
from seamark.log import dedupe, retention
from seamark.log.ledger import Ledger, Registry
from seamark.log.meta import Meta
from seamark.log.protocol import Append, Done
from seamark.log.record import Record
from seamark.log.revision import Revision
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.log.store import Store
from seamark.log.ticket import Group, Ticket


class Gate:
    """Admits appends into a group, in the order in which they came."""

    def __init__(
        self, store: Store, ephemeral: Store, registry: Registry, quota_bytes: int, instance: Callable[[], str]
    ) -> None:
        self._store = store
        self._ephemeral = ephemeral
        self._registry = registry
        self._quota_bytes = quota_bytes
        self._instance = instance

    def admit(self, group: Group, append: Append, done: Done, size: int) -> None:
        """Give the append its seqs, or decide it at once. Raises SeamarkError when it is refused."""
        if not append.stream:
            ticket = Ticket(append, done, size)
            ticket.ts = group.now
            group.tickets.append(ticket)
            group.puts += [(None, put) for put in append.puts]
            return
        revision = group.revisions.get(append.stream)
        known = revision is not None
        if revision is None:
            revision = self._open(group, append)
        if append.key is not None and self._repeats(group, revision, append.key, done):
            return
        self._check(group, revision, append, size)
        if not known:
            group.revisions[append.stream] = revision
        self._place(group, revision, Ticket(append, done, size), created=revision.created and not known)

    def create(self, name: str, settings: StreamSettings) -> Revision:
        """The first revision of a new stream."""
        if len(self._registry) >= limits.STREAMS_MAX:
            raise QuotaExceeded(f"there are {limits.STREAMS_MAX} streams", limit="STREAMS_MAX", max=limits.STREAMS_MAX)
        meta = Meta(self._registry.next_id, self._instance(), settings)
        self._registry.next_id += 1
        return Revision(Ledger(name, meta, self.home(settings)), created=True)

    def home(self, settings: StreamSettings) -> Store:
        """Where the records of a stream with these settings live."""
        return self._ephemeral if settings.durability is Durability.EPHEMERAL else self._store

    def _open(self, group: Group, append: Append) -> Revision:
        ledger = self._registry.find(append.stream)
        if ledger is None:
            if append.create is None:
                raise StreamNotFound(f"there is no stream {append.stream}", stream=append.stream)
            return self.create(append.stream, append.create)
        revision = Revision(ledger)
        if retention.due(ledger, group.now):
            retention.expire(revision, group.now)
            group.revisions[append.stream] = revision  # the loss is committed even if the append is refused
        return revision

    def _repeats(self, group: Group, revision: Revision, key: str, done: Done) -> bool:
        leader = group.keys.get((revision.meta.id, key))
        if leader is not None:
            if leader.followers is None:
                leader.followers = []
            leader.followers.append(done)
            return True
        if revision.created:
            return False
        with revision.store.view() as view:
            row = dedupe.find(revision.ledger, view, key, group.now)
        if row is None:
            return False
        group.answers.append((done, dedupe.repeat(revision.ledger, row)))
        return True

    def _check(self, group: Group, revision: Revision, append: Append, size: int) -> None:
        ledger, settings = revision.ledger, revision.meta.settings
        if append.expect_head is not None and append.expect_head != ledger.assigned:
            raise HeadConflict.at(ledger.name, expected=append.expect_head, head=ledger.assigned)
        if not append.drafts:
            return
        if settings.discard is Discard.REJECT and (
            (settings.cap_records and revision.live_count + len(append.drafts) > settings.cap_records)
            or (settings.cap_bytes and revision.live_bytes + size > settings.cap_bytes)
        ):
            raise StreamFull(
                f"{ledger.name} is full",
                stream=ledger.name,
                cap_records=settings.cap_records,
                cap_bytes=settings.cap_bytes,
                head=ledger.assigned,
                earliest=ledger.marks.earliest,
            )
        if self._quota_bytes:
            expired = 0 if revision.created else ledger.meta.bytes - revision.meta.bytes
            if self._registry.bytes - expired + group.bytes + size > self._quota_bytes:
                raise QuotaExceeded(
                    f"all streams together hold at most {self._quota_bytes} bytes",
                    limit="quota_bytes",
                    max=self._quota_bytes,
                )

    def _place(self, group: Group, revision: Revision, ticket: Ticket, *, created: bool) -> None:
        ledger, append = revision.ledger, ticket.append
        seq = ledger.assigned
        ts = max(group.now, ledger.last_ts)
        records = [
            Record(number, ts, d.payload, d.node, d.tag, d.meta, d.subject, d.geometry)
            for number, d in enumerate(append.drafts, seq + 1)
        ]
        ticket.revision = revision
        ticket.records = records
        ticket.first = seq + 1
        ticket.last = seq + len(records)
        ticket.ts = ts
        ticket.created = created
        if records:
            ledger.assigned = ticket.last
            ledger.last_ts = ts
            revision.arrive(records, ticket.size)
            group.bytes += ticket.size
        self._classify(group, revision, ticket)
        if append.key is not None:
            group.keys[revision.meta.id, append.key] = ticket
            revision.keys.append((append.key, ticket.row(group.now)))
        if append.puts:
            group.puts += [(revision, put) for put in append.puts]
        group.tickets.append(ticket)

    def _classify(self, group: Group, revision: Revision, ticket: Ticket) -> None:
        """Whether the acknowledgement may come before the commit."""
        durability = revision.meta.settings.durability
        if durability is Durability.FSYNC:
            return
        covered = not revision.created and (not self._store.durable or ticket.last <= revision.ledger.meta.reserved)
        if durability is Durability.EPHEMERAL:
            revision.must_commit |= not covered or bool(ticket.append.puts)
        else:
            # What is pending from an earlier turn could not be committed: then nothing is promised ahead of a commit.
            ticket.early = covered and not revision.ledger.pending
            group.early |= ticket.early
