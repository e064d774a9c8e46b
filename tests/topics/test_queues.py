"""Queues in one process: what claims, acknowledgements, time, deletions and restarts make of the jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from seamark.clock import NS_PER_MS, ManualClock
from seamark.errors import StreamFull, WriteFailed
from seamark.log.engines.embedded import open_embedded
from seamark.log.engines.memory import open_memory
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Deleted, Receipt, Selector
from seamark.log.record import Draft
from seamark.log.settings import Discard
from seamark.log.watermarks import Cursor
from seamark.stream.hub import Hub
from seamark.stream.wheel import Wheel
from seamark.telemetry.metrics import Metrics
from seamark.topics.model import TopicConfig, TopicType, stream_of
from seamark.topics.queue import Job, Queue, Standing, Want
from seamark.topics.queues import Queues
from seamark.topics.service import Topics
from tests.stream.conftest import Narrow

NAME = "jobs"
STREAM = stream_of(NAME)


class Bench:
    """A log with queues on it, in a process that can end and begin again."""

    def __init__(self, path: Path | None, *, narrow: bool = False) -> None:
        """`narrow`: the log is one whose reads wait, and that keeps nothing on a shelf."""
        self.clock = ManualClock()
        self.path = path
        self.narrow = narrow
        self.begin()

    def begin(self) -> None:
        metrics = Metrics()
        if self.path is None:
            self.log: LocalLog = open_memory(self.clock, metrics)
        else:
            self.log = open_embedded(self.path, self.clock, metrics)
        if self.narrow:
            self.log = cast("LocalLog", Narrow(self.log, silent=False))
        self.wheel = Wheel(self.clock)
        self.hub = Hub(self.log, self.wheel, metrics)
        self.topics = Topics(self.log, self.clock)
        self.queues = Queues(self.topics, self.hub, self.clock)

    async def end(self) -> None:
        await self.queues.drain()
        self.topics.close()
        self.hub.close()
        self.wheel.close()
        await self.log.close()

    async def restart(self) -> None:
        await self.end()
        self.begin()
        self.queues.start()
        await asyncio.sleep(0)

    async def configure(self, name: str = NAME, **config: Any) -> None:
        await self.topics.configure(name, TopicConfig(type=TopicType.QUEUE, **config))

    async def write(self, *data: object, **draft: Any) -> Receipt:
        drafts = [Draft(str(one).encode(), **draft) for one in data]
        return await self.log.append(Append(stream=STREAM, drafts=drafts))

    async def claim(self, node: str = "a", most: int = 1, lease_ms: int | None = None) -> list[Job]:
        return (await self.queues.claim(NAME, Want(node, most, lease_ms)))[0]

    async def queue(self) -> Queue:
        return await self.queues.open(NAME)

    async def ack(self, node: str, *seqs: int) -> list[int]:
        return await (await self.queue()).ack(node, seqs, [None] * len(seqs))

    async def nack(self, node: str, *seqs: int, delay_ms: int = 0) -> list[int]:
        return await (await self.queue()).nack(node, seqs, [None] * len(seqs), delay_ms=delay_ms)

    async def standing(self) -> Standing:
        return await self.queues.standing(await self.queue())

    async def live(self, name: str = NAME) -> list[int]:
        page = await self.log.read(stream_of(name), Cursor())
        return [record.seq for record in page.records]


@pytest_asyncio.fixture(params=["memory", "embedded", "narrow"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path if request.param == "embedded" else None, narrow=request.param == "narrow")
    await made.configure()
    yield made
    await made.end()


@pytest_asyncio.fixture
async def durable(tmp_path: Path) -> AsyncIterator[Bench]:
    """On a disk, where something is left after the end of a process."""
    made = Bench(tmp_path)
    await made.configure()
    yield made
    await made.end()


def seqs(jobs: Sequence[Job]) -> list[int]:
    return [job.record.seq for job in jobs]


async def test_jobs_come_in_order_and_leave_when_they_are_done(bench: Bench) -> None:
    await bench.write("x", "y", "z")
    jobs = await bench.claim(most=2)
    assert seqs(jobs) == [1, 2]
    assert [job.deliveries for job in jobs] == [1, 1]
    assert await bench.standing() == Standing(ready=1, in_flight=2, dead_lettered=0)
    assert await bench.ack("a", 1, 2) == []
    assert await bench.standing() == Standing(1, 0, 0)
    assert await bench.live() == [3]
    assert seqs(await bench.claim(most=9)) == [3]


async def test_only_its_holder_may_do_something_with_a_job(bench: Bench) -> None:
    await bench.write("x", "y")
    (job,) = await bench.claim("a")
    queue = await bench.queue()
    wrong = job.lease.token ^ 1
    assert await queue.ack("b", [1], [None]) == [1]
    assert await queue.ack("a", [1, 2], [wrong, None]) == [1, 2]
    assert await queue.nack("b", [1], [job.lease.token]) == [1]
    assert await queue.extend("b", [1], [None], lease_ms=1_000) == ({}, [1])
    assert await queue.ack("a", [1, 1], [job.lease.token, None]) == [1]  # the second time it is gone
    assert await bench.live() == [2]


async def test_what_comes_back_goes_first_and_the_lowest_before_the_others(bench: Bench) -> None:
    await bench.write(*"uvwxyz")
    await bench.claim(most=4)
    await bench.nack("a", 3)
    await bench.nack("a", 1)
    assert seqs(await bench.claim("b", most=3)) == [1, 3, 5]
    bench.clock.advance(31)
    assert seqs(await bench.claim("c", most=9)) == [1, 2, 3, 4, 5, 6]


async def test_a_lease_lasts_until_its_deadline_and_not_longer(bench: Bench) -> None:
    await bench.write("x")
    now = bench.clock.now_ns() // NS_PER_MS
    (job,) = await bench.claim(lease_ms=1_000)
    assert job.lease.deadline == now + 1_000
    bench.clock.advance(1)
    assert await bench.claim("b") == []
    bench.clock.advance(0.001)
    (again,) = await bench.claim("b")
    assert again.deliveries == 2
    assert await bench.ack("a", 1) == [1]
    assert await bench.ack("b", 1) == []


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (99, 100), (10**12, 86_400_000), (None, 5_000)])
async def test_leases_are_neither_too_short_nor_too_long(bench: Bench, asked: int | None, given: int) -> None:
    await bench.configure(lease_ms=5_000)
    await bench.write("x")
    (job,) = await bench.claim(lease_ms=asked)
    assert job.lease.deadline - bench.clock.now_ns() // NS_PER_MS == given


async def test_extending_sets_and_does_not_add(bench: Bench) -> None:
    await bench.write("x")
    await bench.claim(lease_ms=60_000)
    bench.clock.advance(1)
    now = bench.clock.now_ns() // NS_PER_MS
    deadlines, skipped = await (await bench.queue()).extend("a", [1, 2], [None, None], lease_ms=2_000)
    assert (deadlines, skipped) == ({1: now + 2_000}, [2])
    bench.clock.advance(2.001)
    assert seqs(await bench.claim("b")) == [1]


async def test_a_delayed_job_waits(bench: Bench) -> None:
    await bench.write("x")
    await bench.claim()
    await bench.nack("a", 1, delay_ms=500)
    assert await bench.standing() == Standing(0, 0, 0)
    bench.clock.advance(0.499)
    assert await bench.claim() == []
    bench.clock.advance(0.001)
    assert (await bench.standing()).ready == 1
    assert seqs(await bench.claim()) == [1]


async def test_many_workers_never_hold_the_same_job(bench: Bench) -> None:
    await bench.write(*range(200))
    held: dict[int, str] = {}
    done: list[int] = []

    async def worker(node: str) -> None:
        while jobs := await bench.claim(node, most=3):
            for job in jobs:
                assert held.setdefault(job.record.seq, node) == node
            await asyncio.sleep(0)
            give_back = jobs[0].record.seq if jobs[0].deliveries == 1 and jobs[0].record.seq % 5 == 0 else 0
            for job in jobs:
                del held[job.record.seq]
            if give_back:
                assert await bench.nack(node, give_back) == []
            finished = [seq for seq in seqs(jobs) if seq != give_back]
            assert await bench.ack(node, *finished) == []
            done.extend(finished)

    await asyncio.gather(*(worker(f"w{number}") for number in range(12)))
    assert sorted(done) == list(range(1, 201))
    assert await bench.standing() == Standing(0, 0, 0)
    assert len((await bench.queue()).leases) == 0


async def test_a_backlog_costs_no_memory(bench: Bench) -> None:
    await bench.write(*range(5_000))
    for _ in range(10):
        await bench.ack("a", *seqs(await bench.claim(most=100)))
    queue = await bench.queue()
    assert len(queue.leases) == 0
    assert (await bench.standing()).ready == 4_000
    assert seqs(await bench.claim()) == [1_001]


async def test_acknowledgements_of_one_turn_share_a_commit(durable: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await durable.write(*range(20))
    await durable.claim(most=20)
    calls: list[Selector] = []
    delete = durable.log.delete

    async def counted(name: str, selector: Selector) -> Deleted:
        calls.append(selector)
        return await delete(name, selector)

    monkeypatch.setattr(durable.log, "delete", counted)
    await asyncio.gather(*(durable.ack("a", seq) for seq in range(1, 21)))
    assert len(calls) == 1
    assert await durable.live() == []


async def test_jobs_that_are_deleted_evicted_or_expired_are_held_by_nobody(bench: Bench) -> None:
    await bench.configure(cap_records=6, ttl_ms=60_000)
    await bench.write(*range(6), tag="t")
    await bench.claim(most=5)
    assert (await bench.standing()).in_flight == 5
    await bench.write(6)  # evicts the first
    assert await bench.standing() == Standing(2, 4, 0)
    await bench.log.delete(STREAM, Selector(seqs=(3,)))
    bench.queues.records_deleted(STREAM)
    assert await bench.standing() == Standing(2, 3, 0)
    assert await bench.ack("a", 1, 3) == [1, 3]
    bench.clock.advance(61)
    assert await bench.standing() == Standing(0, 0, 0)
    assert await bench.ack("a", 2) == [2]
    assert len((await bench.queue()).leases) == 0


async def test_a_job_that_was_given_back_and_deleted_is_not_given_out(bench: Bench) -> None:
    await bench.write(*"abcd")
    await bench.claim(most=3)
    await bench.nack("a", 1, 2, 3)
    await bench.log.delete(STREAM, Selector(seqs=(1, 2)))
    assert seqs(await bench.claim(most=4)) == [3, 4]


async def test_reclaimed_jobs_far_apart_are_found(bench: Bench) -> None:
    await bench.write(*range(1_000))
    await bench.claim(most=1_000)
    await bench.ack("a", *(seq for seq in range(1, 1_001) if seq % 97))
    bench.clock.advance(31)
    assert seqs(await bench.claim(most=50)) == list(range(97, 1_001, 97))


async def test_big_jobs_are_not_given_all_at_once(bench: Bench) -> None:
    for _ in range(12):
        await bench.write("x" * (1 << 20))
    first = await bench.claim(most=100)
    assert 1 <= len(first) < 12
    bench.clock.advance(31)
    again = await bench.claim(most=100)
    assert seqs(again)[: len(first)] == seqs(first)
    assert len(again) < 12


async def test_a_topic_that_is_made_again_begins_anew(bench: Bench) -> None:
    await bench.write("x", "y")
    await bench.claim(most=2)
    await bench.topics.remove(NAME)
    await bench.configure()
    await bench.write("z")
    assert await bench.standing() == Standing(1, 0, 0)
    (job,) = await bench.claim("b")
    assert (job.record.seq, job.record.payload, job.deliveries) == (1, b"z", 1)
    assert await bench.ack("a", 1) == [1]


async def test_claims_of_one_window_are_served_round_robin(bench: Bench) -> None:
    await bench.configure(claim_jitter_ms=200)
    await bench.write(*range(5))
    claims = [asyncio.create_task(bench.claim(node, most=most)) for node, most in (("a", 10), ("b", 1), ("c", 10))]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(claim.done() for claim in claims)
    bench.clock.advance(0.25)
    bench.wheel.advance()
    hands = [seqs(jobs) for jobs in await asyncio.gather(*claims)]
    assert hands == [[1, 4], [2], [3, 5]]


async def test_a_claimer_that_left_its_window_holds_nothing(bench: Bench) -> None:
    await bench.configure(claim_jitter_ms=200)
    await bench.write(*range(2))
    gone = asyncio.create_task(bench.claim("a"))
    stays = asyncio.create_task(bench.claim("b"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone.cancel()
    bench.clock.advance(0.25)
    bench.wheel.advance()
    assert seqs(await stays) == [2]
    assert (await bench.standing()).in_flight == 1


# -- dead letters


async def worn_out(bench: Bench, deliveries: int = 2, node: str = "a") -> None:
    for _ in range(deliveries):
        assert await bench.claim(node)
        bench.clock.advance(31)


async def test_a_job_that_was_delivered_too_often_moves(bench: Bench) -> None:
    await bench.configure(max_deliveries=2, dead_letter="graves")
    await bench.write("bad", tag="t", node="n", meta=b'{"k": 1.50}')
    await worn_out(bench)
    await bench.write("good")
    assert seqs(await bench.claim(most=5)) == [2]
    assert await bench.standing() == Standing(0, 1, 1)
    (record,) = (await bench.log.read(stream_of("graves"), Cursor())).records
    assert (record.payload, record.tag, record.node) == (b"bad", "t", "n")
    assert record.meta == (
        b'{"k":1.50,"$dead_letter_from":"jobs","$dead_letter_deliveries":"2","$dead_letter_src_seq":"1"}'
    )
    assert await bench.live() == [2]


async def test_without_a_dead_letter_topic_a_job_is_delivered_for_ever(bench: Bench) -> None:
    await bench.configure(max_deliveries=2)
    await bench.write("bad")
    await worn_out(bench, 5)
    assert [job.deliveries for job in await bench.claim()] == [6]


async def test_a_full_dead_letter_topic_loses_nothing(bench: Bench) -> None:
    await bench.topics.configure("graves", TopicConfig(cap_records=1, discard=Discard.REJECT))
    await bench.configure(max_deliveries=1, dead_letter="graves")
    await bench.write("bad", "worse")
    await bench.claim(most=2)
    await bench.nack("a", 1, 2)
    assert seqs(await bench.claim(most=5)) == [2]
    assert await bench.standing() == Standing(0, 1, 1)
    with pytest.raises(StreamFull):
        await bench.log.append(Append(stream=stream_of("graves"), drafts=[Draft(b"x")]))


class Refusing:
    """Makes one method of a log fail at its nth call from now, before or after it has done its work."""

    def __init__(self, log: LocalLog, method: str, patch: pytest.MonkeyPatch, *, after: bool = False) -> None:
        inner = getattr(log, method)

        async def call(*args: Any, **more: Any) -> Any:
            patch.setattr(log, method, inner)
            if after:
                await inner(*args, **more)
            raise WriteFailed("the disk is full")

        patch.setattr(log, method, call)


@pytest.mark.parametrize("method", ["append", "delete"])
@pytest.mark.parametrize("after", [False, True], ids=["refused", "taken and refused"])
@pytest.mark.parametrize("again", ["same process", "restarted"])
async def test_a_move_that_is_cut_in_two_neither_loses_nor_doubles(
    durable: Bench, monkeypatch: pytest.MonkeyPatch, method: str, after: bool, again: str
) -> None:
    await durable.configure(max_deliveries=1, dead_letter="graves", leases_durable=True)
    await durable.topics.ensure("graves", TopicConfig())
    await durable.write("bad")
    await durable.claim()
    await durable.nack("a", 1)
    Refusing(durable.log, method, monkeypatch, after=after)
    try:
        jobs = await durable.claim()
    except WriteFailed:
        assert method == "delete"
    else:
        assert seqs(jobs) == [1]  # as far as we know it could not be moved, so it is delivered again
        await durable.nack("a", 1)
    if again == "restarted":
        await durable.restart()
    assert await durable.claim() == []
    assert await durable.live() == []
    assert await durable.live("graves") == [1]
    assert (await durable.standing()).dead_lettered == 1


async def test_what_had_moved_is_gone_after_a_restart_even_if_nobody_asks(
    durable: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await durable.configure(max_deliveries=1, dead_letter="graves")
    await durable.topics.ensure("graves", TopicConfig())
    await durable.write("bad", "good")
    await durable.claim()
    await durable.nack("a", 1)
    Refusing(durable.log, "delete", monkeypatch)
    with pytest.raises(WriteFailed):
        await durable.claim()
    assert await durable.live() == [1, 2]
    await durable.restart()
    for _ in range(20):
        await asyncio.sleep(0)
    assert await durable.live() == [2]
    assert await durable.live("graves") == [1]
    assert await durable.standing() == Standing(1, 0, 1)
    await durable.restart()
    assert await durable.standing() == Standing(1, 0, 1)


# -- restarts


async def test_without_durable_leases_all_jobs_are_to_be_had_after_a_restart(durable: Bench) -> None:
    await durable.write(*"abc")
    await durable.claim(most=3)
    await durable.ack("a", 2)
    await durable.restart()
    assert await durable.standing() == Standing(2, 0, 0)
    jobs = await durable.claim("b", most=3)
    assert [(job.record.seq, job.deliveries) for job in jobs] == [(1, 1), (3, 1)]


async def test_durable_leases_outlive_the_process(durable: Bench) -> None:
    await durable.configure(leases_durable=True)
    await durable.write(*"abcdef")
    held = await durable.claim("a", most=4, lease_ms=60_000)
    await durable.ack("a", 1)
    await durable.nack("a", 2)
    await durable.nack("a", 3, delay_ms=5_000)
    await durable.restart()
    assert await durable.standing() == Standing(ready=3, in_flight=1, dead_lettered=0)
    jobs = await durable.claim("b", most=9)
    assert [(job.record.seq, job.deliveries) for job in jobs] == [(2, 2), (5, 1), (6, 1)]
    queue = await durable.queue()
    assert await queue.ack("a", [4], [held[3].lease.token]) == []
    durable.clock.advance(5)
    assert [(job.record.seq, job.deliveries) for job in await durable.claim("c", most=9)] == [(3, 2)]
    await durable.ack("b", 2, 5, 6)
    await durable.ack("c", 3)
    assert list(durable.log.scan("queue-leases")) == []


async def test_a_scrape_sees_what_there_is_and_opens_nothing_in_vain(durable: Bench) -> None:
    await durable.write(*"abc")
    await durable.claim(most=2)
    assert durable.queues.standing_now(await durable.log.state(STREAM)) == Standing(1, 2, 0)
    assert durable.queues.in_flight == 2
    await durable.restart()
    assert durable.queues.standing_now(await durable.log.state(STREAM)) == Standing(3, 0, 0)
    await durable.configure(leases_durable=True)
    await durable.claim(most=2)
    await durable.restart()
    assert durable.queues.standing_now(await durable.log.state(STREAM)) == Standing(1, 2, 0)
    assert durable.queues.in_flight == 2


async def test_what_routers_owe_a_queue_is_there_when_it_is_claimed(bench: Bench) -> None:
    async def forward(name: str) -> None:
        assert name == NAME
        await bench.write("forwarded")

    bench.topics.derived = lambda name: name == NAME
    bench.topics.before_read = forward
    assert seqs(await bench.claim(most=5)) == [1]


async def test_jobs_that_left_with_the_last_process_are_not_restored(
    durable: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await durable.configure(leases_durable=True)
    await durable.write(*"ab")
    await durable.claim(most=2)
    await durable.log.delete(STREAM, Selector(seqs=(1,)))  # and the process ends before its row is removed
    await durable.restart()
    assert await durable.standing() == Standing(0, 1, 0)


async def test_what_was_kept_of_a_queue_goes_with_it(durable: Bench) -> None:
    await durable.configure(leases_durable=True, max_deliveries=1, dead_letter="graves")
    await durable.write(*"ab")
    await durable.claim()
    await durable.nack("a", 1)
    await durable.claim()
    assert (await durable.standing()).dead_lettered == 1
    await durable.restart()  # also one that this process has not opened
    await durable.topics.remove(NAME)
    await asyncio.sleep(0)
    for space in ("queue-leases", "queue-moved", "queue-dead"):
        assert list(durable.log.scan(space)) == []


async def test_leases_are_given_only_when_they_are_kept(durable: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await durable.configure(leases_durable=True)
    await durable.write(*"ab")
    Refusing(durable.log, "append", monkeypatch)
    with pytest.raises(WriteFailed):
        await durable.claim(most=2)
    assert await durable.standing() == Standing(2, 0, 0)
    jobs = await durable.claim("b", most=2)
    assert [job.deliveries for job in jobs] == [1, 1]
    assert all(one.lease.token != two.lease.token for one, two in pairwise(jobs))


async def test_what_could_not_be_acknowledged_comes_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.write("x")
    await bench.claim()
    Refusing(bench.log, "delete", monkeypatch)
    with pytest.raises(WriteFailed):
        await bench.ack("a", 1)
    assert await bench.standing() == Standing(1, 0, 0)
    assert [job.deliveries for job in await bench.claim("b")] == [2]
