"""Who holds which job of a queue, until when: lease arithmetic without a clock and without a log.

A job is a seq. It is *fresh* until it is first taken, then in exactly one place: *leased* (somebody holds it), *delayed*
(handed back, not to be had yet), *reclaimed* (to be had again, before all fresh ones), or *leaving* (acknowledged or moved
away, and still in the log for a moment). Only these are remembered; a backlog of fresh jobs costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

import msgspec

_SLACK = 64  # entries of a heap that may be stale before it is rebuilt


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Held by `node` up to and including `deadline`. `owner` is the connection that it ends with; 0: none."""

    node: str
    token: int
    deadline: int
    owner: int = 0


class Leases:
    """The table of one queue. Times are milliseconds, given by the caller."""

    __slots__ = (
        "_deliveries",
        "_due",
        "_held",
        "_leased",
        "_leaving",
        "_order",
        "_reclaimed",
        "_reclaimed_heap",
        "_waiting",
    )

    def __init__(self) -> None:
        self._leased: dict[int, Lease] = {}
        self._waiting: dict[int, int] = {}  # delayed: seq -> when it may be had again
        self._reclaimed: set[int] = set()
        self._leaving: set[int] = set()
        self._deliveries: dict[int, int] = {}  # of every seq in one of the four
        self._held: dict[int, set[int]] = {}  # owner -> seqs
        self._order: list[int] = []  # a heap of `_deliveries`, and stale ones
        self._reclaimed_heap: list[int] = []  # of `_reclaimed`, and stale ones
        self._due: list[tuple[int, int]] = []  # when it comes back, seq: of every lease and delay, and stale ones

    # -- what is known

    def __len__(self) -> int:
        return len(self._deliveries)

    def __contains__(self, seq: int) -> bool:
        return seq in self._deliveries

    def __iter__(self) -> Iterator[int]:
        """Every seq that is not fresh, in order."""
        return iter(sorted(self._deliveries))

    @property
    def in_flight(self) -> int:
        return len(self._leased)

    @property
    def unavailable(self) -> int:
        """Live jobs that nobody can be given: leased, delayed or leaving."""
        return len(self._leased) + len(self._waiting) + len(self._leaving)

    def lease(self, seq: int) -> Lease | None:
        return self._leased.get(seq)

    def delayed_until(self, seq: int) -> int | None:
        return self._waiting.get(seq)

    def deliveries(self, seq: int) -> int:
        """How often the job was given to somebody."""
        return self._deliveries.get(seq, 0)

    def held_by(self, owner: int) -> int:
        return len(self._held.get(owner, ()))

    def reclaimed(self, count: int) -> list[int]:
        """The lowest seqs that can be had again."""
        if count >= len(self._reclaimed):
            return sorted(self._reclaimed)
        found: list[int] = []
        heap = self._reclaimed_heap
        while heap and len(found) < count:
            seq = heappop(heap)
            if seq in self._reclaimed and (not found or found[-1] != seq):
                found.append(seq)
        for seq in found:
            heappush(heap, seq)
        return found

    def next_due(self) -> int | None:
        """When time alone brings a job back: a delay is over, or a lease has just expired."""
        due = self._due
        while due and not self._is_due(*due[0]):
            heappop(due)
        return due[0][0] if due else None

    # -- time

    def sweep(self, now: int) -> list[int]:
        """Take back what nobody holds any more (`now` is past the deadline) and what has waited long enough."""
        back: list[int] = []
        while (when := self.next_due()) is not None and when <= now:
            _, seq = heappop(self._due)
            self._forget_place(seq)
            self._put_back(seq)
            back.append(seq)
        return back

    # -- what callers do

    def grant(self, seq: int, lease: Lease) -> int:
        """Give a fresh or a reclaimed job to somebody. Returns how often it was given, with this time."""
        assert seq not in self._leased
        assert seq not in self._waiting
        assert seq not in self._leaving
        self._reclaimed.discard(seq)
        self._know(seq)
        self._deliveries[seq] += 1
        self._hold(seq, lease)
        return self._deliveries[seq]

    def undo(self, seq: int) -> None:
        """The grant did not reach anybody: the job is to be had again, and it was not delivered."""
        self._forget_place(seq)
        self._put_back(seq)
        self._deliveries[seq] -= 1

    def holds(self, seq: int, node: str, token: int | None) -> bool:
        lease = self._leased.get(seq)
        return lease is not None and lease.node == node and (token is None or token == lease.token)

    def extend(self, seq: int, deadline: int) -> None:
        """A held lease ends then instead."""
        lease = self._leased[seq]
        self._hold(seq, msgspec.structs.replace(lease, deadline=deadline))

    def give_back(self, seq: int, until: int | None = None) -> None:
        """A held job is to be had again: at once, or not before `until`."""
        self._forget_place(seq)
        if until is None:
            self._put_back(seq)
        else:
            self._wait(seq, until)

    def release(self, owner: int) -> list[int]:
        """Everything that a connection holds is to be had again."""
        seqs = sorted(self._held.get(owner, ()))
        for seq in seqs:
            self.give_back(seq)
        return seqs

    def leave(self, seq: int) -> None:
        """The job is done or moved: on its way out of the log, whatever place it was in."""
        self._know(seq)
        self._forget_place(seq)
        self._leaving.add(seq)

    def stay(self, seq: int) -> None:
        """It could not be taken out of the log: to be had again."""
        if seq in self._leaving:
            self._forget_place(seq)
            self._put_back(seq)

    def drop(self, seq: int) -> None:
        """The job is not in the log any more."""
        if self._deliveries.pop(seq, None) is not None:
            self._forget_place(seq)

    def drop_before(self, earliest: int) -> None:
        """Nothing before `earliest` is in the log any more."""
        while self._order and self._order[0] < earliest:
            self.drop(heappop(self._order))

    def restore(self, seq: int, deliveries: int, lease: Lease | None, until: int | None) -> None:
        """Put a job where it was before a restart."""
        assert seq not in self._deliveries
        self._know(seq)
        self._deliveries[seq] = deliveries
        if lease is not None:
            self._hold(seq, lease)
        elif until is not None:
            self._wait(seq, until)
        else:
            self._put_back(seq)

    # -- inside

    def _know(self, seq: int) -> None:
        if seq in self._deliveries:
            return
        self._deliveries[seq] = 0
        heappush(self._order, seq)
        if len(self._order) > 2 * len(self._deliveries) + _SLACK:
            self._order = sorted(self._deliveries)

    def _hold(self, seq: int, lease: Lease) -> None:
        self._leased[seq] = lease
        if lease.owner:
            self._held.setdefault(lease.owner, set()).add(seq)
        self._watch(lease.deadline + 1, seq)

    def _wait(self, seq: int, until: int) -> None:
        self._waiting[seq] = until
        self._watch(until, seq)

    def _put_back(self, seq: int) -> None:
        self._reclaimed.add(seq)
        heappush(self._reclaimed_heap, seq)
        if len(self._reclaimed_heap) > 2 * len(self._reclaimed) + _SLACK:
            self._reclaimed_heap = sorted(self._reclaimed)

    def _watch(self, when: int, seq: int) -> None:
        heappush(self._due, (when, seq))
        if len(self._due) > 2 * (len(self._leased) + len(self._waiting)) + _SLACK:
            self._due = [(lease.deadline + 1, seq) for seq, lease in self._leased.items()]
            self._due += [(until, seq) for seq, until in self._waiting.items()]
            heapify(self._due)

    def _is_due(self, when: int, seq: int) -> bool:
        lease = self._leased.get(seq)
        return when == (self._waiting.get(seq) if lease is None else lease.deadline + 1)

    def _forget_place(self, seq: int) -> None:
        lease = self._leased.pop(seq, None)
        if lease is not None and lease.owner:
            held = self._held[lease.owner]
            held.discard(seq)
            if not held:
                del self._held[lease.owner]
        self._waiting.pop(seq, None)
        self._reclaimed.discard(seq)
        self._leaving.discard(seq)


def deal(wants: Iterable[int]) -> Iterator[int]:
    """Which of several claimers gets the next job, and the next, when all are served round-robin, one job each."""
    left = [[place, want] for place, want in enumerate(wants) if want > 0]
    while left:
        for claimer in left:
            claimer[1] -= 1
            yield claimer[0]
        left = [claimer for claimer in left if claimer[1]]
