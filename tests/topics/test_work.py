"""Work streams on a pipe in memory: what they are given, when, and what happens to it when they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from seamark.limits import PIPE_HIGH_WATER_BYTES, STALL_SECONDS_MAX
from seamark.log.protocol import Selector
from seamark.stream.sse import Comment, Event, Parser
from seamark.topics.queue import Standing, Want
from seamark.topics.queue_model import job_event
from seamark.topics.work import HEARTBEAT_SECONDS
from tests.stream.conftest import TapPipe
from tests.topics.test_queues import NAME, STREAM, Bench, Refusing


class Worker:
    """The far end of one work stream."""

    def __init__(self, bench: Bench, node: str, most: int, lease_ms: int | None = None) -> None:
        self.bench = bench
        self.pipe = TapPipe()
        self.ended = 0
        self._want = Want(node, most, lease_ms)
        self._read = 0

    async def open(self) -> Worker:
        await self.bench.queues.work(NAME, self._want, partial(job_event, NAME), lambda: self.pipe, self._end)
        await settle()
        return self

    def _end(self) -> None:
        self.ended += 1

    def said(self) -> list[tuple[str, Any]]:
        """The events since the last call."""
        raw = b"".join(self.pipe.taken[self._read :])
        self._read = len(self.pipe.taken)
        return [
            ("", event.text) if isinstance(event, Comment) else (event.event, json.loads(event.data))
            for event in Parser(comments=True).feed(raw)
        ]

    def jobs(self) -> list[int]:
        """The seqs of the jobs since the last call, and nothing else was said."""
        events = self.said()
        assert {kind for kind, _ in events} <= {"job"}
        return [body["$seq"] for _, body in events]


async def settle(turns: int = 20) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def pass_time(bench: Bench, seconds: float) -> None:
    bench.clock.advance(seconds)
    bench.wheel.advance()
    await settle()


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench(None)
    await made.configure()
    yield made
    await made.end()


async def test_the_first_words_and_a_job(bench: Bench) -> None:
    await bench.write('{"a":\n1}', tag="t", node="n", meta=b'{"m":1}')
    worker = await Worker(bench, "a", 1).open()
    raw = b"".join(worker.pipe.taken).decode()
    lease = (await bench.queue()).leases.lease(1)
    assert lease is not None
    assert raw == (
        "retry: 2000\n\n"
        f'id: 1\nevent: job\ndata: {{"topic":"jobs","$seq":1,"lease_id":"lease_{lease.token:016x}",'
        f'"deadline":{lease.deadline},"$ts":1700000000000,"$tag":"t","deliveries":1,"data":{{"a": 1}},"meta":{{"m":1}}}}\n\n'
    )
    (event,) = Parser().feed(raw.encode())
    assert isinstance(event, Event)
    assert event.id == "1"


async def test_a_stream_holds_no_more_than_it_may_and_is_refilled(bench: Bench) -> None:
    worker = await Worker(bench, "a", 2).open()
    assert worker.jobs() == []
    await bench.write(*range(5))
    await settle()
    assert worker.jobs() == [1, 2]
    await bench.ack("a", 1)
    await settle()
    assert worker.jobs() == [3]
    await bench.nack("a", 2)
    await settle()
    assert worker.jobs() == [2]  # what came back goes first, also to whom it came from
    await bench.ack("a", 2, 3)
    await settle()
    assert worker.jobs() == [4, 5]


async def test_time_alone_brings_jobs(bench: Bench) -> None:
    await bench.write(1, 2)
    await bench.claim("other", lease_ms=1_000)
    await bench.claim("other")
    await bench.nack("other", 2, delay_ms=5_000)
    worker = await Worker(bench, "a", 5).open()
    assert worker.jobs() == []
    await pass_time(bench, 1.03)
    assert worker.jobs() == [1]
    await pass_time(bench, 4)
    assert worker.jobs() == [2]


async def test_a_lease_of_its_own_that_ran_out_makes_room(bench: Bench) -> None:
    await bench.write(1)
    worker = await Worker(bench, "a", 1, lease_ms=1_000).open()
    assert worker.jobs() == [1]
    await pass_time(bench, 0.5)
    queue = await bench.queue()
    await queue.extend("a", [1], [None], lease_ms=1_000)
    await pass_time(bench, 0.9)
    assert worker.jobs() == []
    await pass_time(bench, 0.15)
    ((kind, body),) = worker.said()
    assert (kind, body["$seq"], body["deliveries"]) == ("job", 1, 2)


async def test_several_streams_are_served_round_robin(bench: Bench) -> None:
    workers = [await Worker(bench, node, 5).open() for node in "abc"]
    await bench.write(*range(7))
    await settle()
    assert [worker.jobs() for worker in workers] == [[1, 4, 7], [2, 5], [3, 6]]


async def test_a_disconnect_releases_only_what_the_connection_holds(bench: Bench) -> None:
    await bench.write(*range(5))
    await bench.claim("a")
    leaving = await Worker(bench, "a", 2).open()
    staying = await Worker(bench, "a", 3).open()
    assert leaving.jobs() == [2, 3]
    assert staying.jobs() == [4, 5]
    leaving.pipe.leave()
    await settle()
    assert leaving.ended == 1
    assert staying.jobs() == [2]
    assert await bench.standing() == Standing(1, 4, 0)
    assert await bench.ack("a", 1) == []


async def test_the_task_ends_with_the_last_stream_and_begins_with_the_next(bench: Bench) -> None:
    for _ in range(2):
        worker = await Worker(bench, "a", 1).open()
        assert any(task.get_name() == "work streams" for task in asyncio.all_tasks())
        worker.pipe.leave()
        await settle()
        assert not any(task.get_name() == "work streams" for task in asyncio.all_tasks())
    await bench.write(1)
    worker = await Worker(bench, "a", 1).open()
    assert worker.said()[-1][0] == "job"


async def test_a_reader_that_does_not_read_gets_no_more_jobs(bench: Bench) -> None:
    slow = await Worker(bench, "slow", 50).open()
    slow.pipe.stalled = True
    await bench.write(*("1" * 4_000 for _ in range(40)))
    await settle()
    assert slow.pipe.writes_while_paused == 0
    assert slow.pipe.most_buffered < PIPE_HIGH_WATER_BYTES + 5_000
    held = (await bench.standing()).in_flight
    assert 0 < held < 10  # what was dealt to it and could not be sent is to be had, undelivered
    quick = await Worker(bench, "quick", 50).open()
    assert {body["deliveries"] for kind, body in quick.said() if kind == "job"} == {1}
    assert await bench.standing() == Standing(0, 40, 0)
    quick.pipe.leave()
    slow.pipe.drain()
    await settle()
    assert len([1 for kind, _ in slow.said() if kind == "job"]) == 40


async def test_a_reader_that_is_stuck_is_closed_and_what_it_holds_released(bench: Bench) -> None:
    slow = await Worker(bench, "slow", 50).open()
    slow.pipe.stalled = True
    await bench.write(*("1" * 4_000 for _ in range(20)))
    await settle()
    await pass_time(bench, STALL_SECONDS_MAX + 1)
    assert slow.ended == 1
    assert await bench.standing() == Standing(20, 0, 0)
    await pass_time(bench, 10)
    assert slow.pipe.ended  # the connection was cut


async def test_silence_is_broken_by_heartbeats_only(bench: Bench) -> None:
    worker = await Worker(bench, "a", 1, lease_ms=600_000).open()
    assert worker.said() == []
    await pass_time(bench, HEARTBEAT_SECONDS * 0.9)
    await bench.write(1)
    await settle()
    assert worker.jobs() == [1]
    await pass_time(bench, HEARTBEAT_SECONDS * 0.5)
    assert worker.said() == []
    for _ in range(2):
        await pass_time(bench, HEARTBEAT_SECONDS * 1.2)
    assert worker.said() == [("", "hb")] * 2
    assert worker.pipe.taken[-1] == b": hb\n\n"


async def test_deleting_the_topic_ends_its_streams(bench: Bench) -> None:
    await bench.write(1)
    worker = await Worker(bench, "a", 1).open()
    assert worker.jobs() == [1]
    await bench.topics.remove(NAME)
    ((kind, body),) = worker.said()
    assert (kind, body["code"], body["error"]) == ("error", 409, "not_a_queue")
    assert worker.pipe.ended
    assert worker.ended == 1


async def test_a_stop_is_told_and_what_is_held_can_be_had_after_it(bench: Bench) -> None:
    await bench.write(1)
    worker = await Worker(bench, "a", 1).open()
    worker.jobs()
    await bench.queues.drain()
    assert worker.said() == [
        ("error", {"code": 503, "error": "shutting_down", "message": "the server is stopping", "retry_after_ms": 2_000})
    ]
    assert worker.ended == 1
    assert await bench.standing() == Standing(1, 0, 0)


async def test_a_deletion_of_what_a_stream_holds_makes_room(bench: Bench) -> None:
    await bench.write(1, 2)
    worker = await Worker(bench, "a", 1).open()
    assert worker.jobs() == [1]
    await bench.log.delete(STREAM, Selector(seqs=(1,)))
    bench.queues.records_deleted(STREAM)
    await settle()
    assert worker.jobs() == [2]


async def test_no_stream_is_fed_what_could_not_be_written_down(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.configure(leases_durable=True)
    worker = await Worker(bench, "a", 1).open()
    await bench.write(1)
    Refusing(bench.log, "append", monkeypatch)
    await settle()
    assert worker.jobs() == []
    assert await bench.standing() == Standing(1, 0, 0)


async def test_an_idle_stream_asks_the_log_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.write(1)
    worker = await Worker(bench, "a", 1).open()
    assert worker.jobs() == [1]

    async def asked(*args: object) -> None:
        raise AssertionError("nothing has happened")

    monkeypatch.setattr(bench.log, "state", asked)
    for _ in range(20):
        await pass_time(bench, 1)
    assert worker.said() == [("", "hb")]
    assert not worker.pipe.ended
