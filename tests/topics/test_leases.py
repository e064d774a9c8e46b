"""The lease table against a model that looks at every job every time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from seamark.topics.leases import Lease, Leases, deal

Place = Literal["leased", "delayed", "reclaimed", "leaving"]


@dataclass
class Job:
    place: Place
    deliveries: int = 0
    lease: Lease | None = None
    until: int = 0


@dataclass
class Naive:
    """What the table should say, found by looking at everything."""

    jobs: dict[int, Job] = field(default_factory=dict)

    def places(self, place: Place) -> list[int]:
        return sorted(seq for seq, job in self.jobs.items() if job.place == place)

    def comes_back(self) -> list[int]:
        moments = [job.lease.deadline + 1 for job in self.jobs.values() if job.place == "leased" and job.lease]
        return moments + [job.until for job in self.jobs.values() if job.place == "delayed"]

    def sweep(self, now: int) -> set[int]:
        back = set()
        for seq, job in self.jobs.items():
            expired = job.place == "leased" and job.lease is not None and now > job.lease.deadline
            if expired or (job.place == "delayed" and now >= job.until):
                job.place = "reclaimed"
                back.add(seq)
        return back


class LeaseLives(RuleBasedStateMachine):
    """Random lives of a queue. Nothing here is a clock: time is a number."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Leases()
        self.naive = Naive()
        self.now = 1_000
        self.fresh = 1
        self.tokens = 0

    def lease(self, ms: int, node: str, owner: int) -> Lease:
        self.tokens += 1
        return Lease(node, self.tokens, self.now + ms, owner)

    @rule(ms=st.integers(1, 50), node=st.sampled_from("ab"), owner=st.integers(0, 2), count=st.integers(1, 5))
    def claim(self, ms: int, node: str, owner: int, count: int) -> None:
        """Reclaimed jobs first, lowest first, then fresh ones."""
        seqs = self.table.reclaimed(count)
        assert seqs == self.naive.places("reclaimed")[:count]
        while len(seqs) < count:
            seqs.append(self.fresh)
            self.fresh += 1
        for seq in seqs:
            lease = self.lease(ms, node, owner)
            job = self.naive.jobs.setdefault(seq, Job("reclaimed"))
            job.place, job.lease, job.deliveries = "leased", lease, job.deliveries + 1
            assert self.table.grant(seq, lease) == job.deliveries

    @rule(ms=st.integers(0, 40))
    def time_goes_by(self, ms: int) -> None:
        self.now += ms
        back = self.table.sweep(self.now)
        assert len(back) == len(set(back))
        assert set(back) == self.naive.sweep(self.now)

    @precondition(lambda self: self.naive.places("leased"))
    @rule(data=st.data(), delay=st.none() | st.integers(1, 60))
    def nack(self, data: st.DataObject, delay: int | None) -> None:
        seq = data.draw(st.sampled_from(self.naive.places("leased")))
        until = None if delay is None else self.now + delay
        self.table.give_back(seq, until)
        job = self.naive.jobs[seq]
        job.place, job.until = ("reclaimed", 0) if until is None else ("delayed", until)

    @precondition(lambda self: self.naive.places("leased"))
    @rule(data=st.data(), ms=st.integers(1, 60))
    def extend(self, data: st.DataObject, ms: int) -> None:
        seq = data.draw(st.sampled_from(self.naive.places("leased")))
        self.table.extend(seq, self.now + ms)
        before = self.naive.jobs[seq].lease
        assert before is not None
        self.naive.jobs[seq].lease = Lease(before.node, before.token, self.now + ms, before.owner)

    @precondition(lambda self: self.naive.places("leased"))
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        seq = data.draw(st.sampled_from(self.naive.places("leased")))
        self.table.undo(seq)
        self.naive.jobs[seq].place = "reclaimed"
        self.naive.jobs[seq].deliveries -= 1

    @precondition(lambda self: self.naive.jobs)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        seq = data.draw(st.sampled_from(sorted(self.naive.jobs)))
        self.table.leave(seq)
        self.naive.jobs[seq].place = "leaving"

    @precondition(lambda self: self.naive.places("leaving"))
    @rule(data=st.data(), gone=st.booleans())
    def left(self, data: st.DataObject, gone: bool) -> None:
        seq = data.draw(st.sampled_from(self.naive.places("leaving")))
        if gone:
            self.table.drop(seq)
            del self.naive.jobs[seq]
        else:
            self.table.stay(seq)
            self.naive.jobs[seq].place = "reclaimed"

    @rule(owner=st.integers(1, 2))
    def release(self, owner: int) -> None:
        held = [
            seq for seq in self.naive.places("leased") if (one := self.naive.jobs[seq].lease) and one.owner == owner
        ]
        assert self.table.release(owner) == held
        for seq in held:
            self.naive.jobs[seq].place = "reclaimed"

    @rule(back=st.integers(0, 10))
    def lose_the_front(self, back: int) -> None:
        earliest = self.fresh - back
        self.table.drop_before(earliest)
        self.naive.jobs = {seq: job for seq, job in self.naive.jobs.items() if seq >= earliest}

    @invariant()
    def agrees(self) -> None:
        table, naive = self.table, self.naive
        assert list(table) == sorted(naive.jobs)
        assert table.in_flight == len(naive.places("leased"))
        assert table.unavailable == len(naive.jobs) - len(naive.places("reclaimed"))
        assert table.next_due() == min(naive.comes_back(), default=None)
        for seq, job in naive.jobs.items():
            assert table.deliveries(seq) == job.deliveries
            assert table.lease(seq) == (job.lease if job.place == "leased" else None)
            assert table.delayed_until(seq) == (job.until if job.place == "delayed" else None)
        for owner in (1, 2):
            held = [seq for seq in naive.places("leased") if (one := naive.jobs[seq].lease) and one.owner == owner]
            assert table.held_by(owner) == len(held)

    @invariant()
    def stays_small(self) -> None:
        """Whatever happened before, memory follows what is known now."""
        assert len(self.table._due) <= 3 * len(self.table) + 200
        assert len(self.table._reclaimed_heap) <= 3 * len(self.table) + 200
        assert len(self.table._order) <= 3 * len(self.table) + 200


TestLeaseLives = LeaseLives.TestCase


def test_a_lease_holds_in_its_last_millisecond() -> None:
    table = Leases()
    table.grant(1, Lease("a", 1, deadline=100))
    assert table.sweep(100) == []
    assert table.holds(1, "a", 1)
    assert table.sweep(101) == [1]
    assert not table.holds(1, "a", 1)


def test_a_token_is_asked_for_only_when_it_is_given() -> None:
    table = Leases()
    table.grant(1, Lease("a", 7, deadline=100))
    assert table.holds(1, "a", None)
    assert not table.holds(1, "a", 8)
    assert not table.holds(1, "b", 7)
    assert not table.holds(2, "a", None)


def test_leases_that_are_extended_for_ever_cost_nothing() -> None:
    table = Leases()
    table.grant(1, Lease("a", 1, deadline=100))
    for deadline in range(101, 5_000):
        table.extend(1, deadline)
    assert len(table._due) < 200
    assert table.next_due() == 5_000


def test_jobs_that_come_and_go_leave_nothing_behind() -> None:
    table = Leases()
    for seq in range(1, 5_000):
        table.grant(seq, Lease("a", seq, deadline=100))
        table.give_back(seq)
        table.grant(seq, Lease("a", seq, deadline=100))
        table.leave(seq)
        table.drop(seq)
    assert len(table) == 0
    assert len(table._due) + len(table._order) + len(table._reclaimed_heap) < 200
    assert not table._held


@given(st.lists(st.integers(0, 6), max_size=6), st.integers(0, 40))
def test_dealing_is_fair(wants: list[int], jobs: int) -> None:
    given_to = list(islice(deal(wants), jobs))
    counts = [given_to.count(place) for place in range(len(wants))]
    assert sum(counts) == min(jobs, sum(wants))
    for place, count in enumerate(counts):
        assert count <= wants[place]
        if count < wants[place]:  # whoever wanted more got as much as anybody, or one less in the last round
            assert count >= max(counts) - 1


def test_dealing_begins_with_the_first_and_goes_round() -> None:
    assert list(deal([1, 3, 0, 2])) == [0, 1, 3, 1, 3, 1]
