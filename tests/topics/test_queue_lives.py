"""Random lives of a queue on its log, with restarts, against a model that is a dictionary."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.clock import NS_PER_MS
from seamark.log.protocol import Selector
from seamark.topics.queue import Standing
from tests.topics.test_queues import STREAM, Bench

MOST_DELIVERIES = 3
NODES = st.sampled_from("ab")
SEQS = st.lists(st.integers(1, 12), max_size=4).map(tuple)
STEPS = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 4)),
    st.tuples(st.just("claim"), NODES, st.integers(1, 4), st.sampled_from([200, 1_000, 5_000])),
    st.tuples(st.just("ack"), NODES, SEQS),
    st.tuples(st.just("nack"), NODES, SEQS, st.sampled_from([0, 300, 2_000])),
    st.tuples(st.just("extend"), NODES, SEQS, st.sampled_from([500, 3_000])),
    st.tuples(st.just("wait"), st.sampled_from([1, 150, 400, 2_500])),
    st.tuples(st.just("delete"), SEQS),
    st.tuples(st.just("restart")),
)


@dataclass
class Job:
    node: str = ""  # who holds it
    deadline: int = 0
    until: int = 0  # delayed
    deliveries: int = 0
    known: bool = False  # it was given out, and nothing forgot that


@dataclass
class Naive:
    durable: bool
    now: int
    jobs: dict[int, Job] = field(default_factory=dict)
    head: int = 0
    dead: int = 0

    def sweep(self) -> None:
        for job in self.jobs.values():
            if job.node and self.now > job.deadline:
                job.node = ""

    def available(self) -> list[int]:
        self.sweep()
        free = [seq for seq, job in self.jobs.items() if not job.node and self.now >= job.until]
        return sorted(free, key=lambda seq: (not self.jobs[seq].known, seq))

    def held(self, node: str, seqs: tuple[int, ...]) -> list[int]:
        self.sweep()
        return [seq for seq in dict.fromkeys(seqs) if seq in self.jobs and self.jobs[seq].node == node]

    def claim(self, node: str, most: int, lease_ms: int) -> list[tuple[int, int]]:
        given_out: list[tuple[int, int]] = []
        for seq in self.available():
            if len(given_out) == most:
                break
            job = self.jobs[seq]
            if job.deliveries >= MOST_DELIVERIES:
                del self.jobs[seq]
                self.dead += 1
                continue
            job.node, job.deadline, job.known = node, self.now + lease_ms, True
            job.deliveries += 1
            given_out.append((seq, job.deliveries))
        return given_out

    def standing(self) -> Standing:
        in_flight = len([job for job in self.jobs.values() if job.node])
        return Standing(len(self.available()), in_flight, self.dead)

    def restart(self) -> None:
        if not self.durable:
            self.jobs = {seq: Job() for seq in self.jobs}


class Life:
    """Does each step to both and compares what they say."""

    def __init__(self, bench: Bench, naive: Naive) -> None:
        self.bench = bench
        self.naive = naive

    async def do(self, step: tuple[Any, ...]) -> None:
        await getattr(self, step[0])(*step[1:])
        self.naive.sweep()
        assert await self.bench.standing() == self.naive.standing(), step

    async def write(self, count: int) -> None:
        await self.bench.write(*range(count))
        for _ in range(count):
            self.naive.head += 1
            self.naive.jobs[self.naive.head] = Job()

    async def claim(self, node: str, most: int, lease_ms: int) -> None:
        jobs = await self.bench.claim(node, most, lease_ms)
        assert [(job.record.seq, job.deliveries) for job in jobs] == self.naive.claim(node, most, lease_ms)
        assert all(job.lease.deadline == self.naive.now + lease_ms for job in jobs)

    async def ack(self, node: str, seqs: tuple[int, ...]) -> None:
        skipped = await self.bench.ack(node, *seqs)
        held = self.naive.held(node, seqs)
        assert sorted(set(seqs) - set(held)) == sorted(set(skipped) - set(held))
        assert len(seqs) - len(skipped) == len(held)
        for seq in held:
            del self.naive.jobs[seq]

    async def nack(self, node: str, seqs: tuple[int, ...], delay_ms: int) -> None:
        skipped = await self.bench.nack(node, *seqs, delay_ms=delay_ms)
        held = self.naive.held(node, seqs)
        assert len(seqs) - len(skipped) == len(held)
        for seq in held:
            self.naive.jobs[seq].node = ""
            self.naive.jobs[seq].until = self.naive.now + delay_ms

    async def extend(self, node: str, seqs: tuple[int, ...], lease_ms: int) -> None:
        deadlines, _ = await (await self.bench.queue()).extend(node, seqs, [None] * len(seqs), lease_ms=lease_ms)
        held = self.naive.held(node, seqs)
        assert deadlines == dict.fromkeys(held, self.naive.now + lease_ms)
        for seq in held:
            self.naive.jobs[seq].deadline = self.naive.now + lease_ms

    async def wait(self, ms: int) -> None:
        self.bench.clock.advance(ms / 1_000)
        self.naive.now += ms

    async def delete(self, seqs: tuple[int, ...]) -> None:
        await self.bench.log.delete(STREAM, Selector(seqs=seqs))
        self.bench.queues.records_deleted(STREAM)
        for seq in seqs:
            self.naive.jobs.pop(seq, None)

    async def restart(self) -> None:
        await self.bench.restart()
        self.naive.restart()


async def live(steps: list[tuple[Any, ...]], durable: bool, path: Path) -> None:
    bench = Bench(path)
    try:
        await bench.configure(leases_durable=durable, max_deliveries=MOST_DELIVERIES, dead_letter="graves")
        life = Life(bench, Naive(durable, bench.clock.now_ns() // NS_PER_MS))
        for step in steps:
            await life.do(step)
        assert await bench.live() == sorted(life.naive.jobs)
        if life.naive.dead:
            assert len(await bench.live("graves")) == life.naive.dead
    finally:
        await bench.end()


@settings(deadline=None, max_examples=40)
@given(st.lists(STEPS, max_size=30), st.booleans())
def test_a_queue_does_what_the_model_does(steps: list[tuple[Any, ...]], durable: bool) -> None:
    with tempfile.TemporaryDirectory() as path:
        asyncio.run(live(steps, durable, Path(path)))
