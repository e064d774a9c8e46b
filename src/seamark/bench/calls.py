"""A closed loop of HTTP requests: each connection sends the next as soon as it has the answer to the last."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import msgspec

from seamark.bench.process import Process, Usage
from seamark.bench.sample import Sample, median
from seamark.bench.swarm import Caller, Swarm

WARM_SHARE = 0.2
WAITED_SHARE_QUIET = 0.05
DRAIN_SECONDS_MAX = 30.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one measured stretch of requests came to."""

    requests: int
    seconds: float
    server: Usage | None
    client_cpu: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def client_share(self) -> float:
        return self.client_cpu / self.seconds

    @property
    def per_server_cpu(self) -> float | None:
        return self.requests / self.server.ran if self.server else None

    @property
    def waited_share(self) -> float:
        """How much of the time other work kept the server from its core: a disturbed run."""
        return self.server.waited / self.seconds if self.server else 0.0


def drive(server: Process, *requests: bytes, connections: int, seconds: float) -> Result:
    """Send the requests, in turn and again and again, over `connections` connections for about `seconds`."""
    turns = itertools.cycle(requests)
    swarm = Swarm(server.host, server.port)
    sample = Sample()
    open_for_more = True

    def again(caller: Caller) -> None:
        if open_for_more:
            caller.call(next(turns))

    callers = [Caller(swarm, sample, again) for _ in range(connections)]
    for caller in callers:
        caller.call(next(turns))
    _spin(swarm, seconds * WARM_SHARE)
    sample.clear()
    usage, client, began = server.usage(), time.process_time(), time.perf_counter()
    _spin(swarm, seconds)
    elapsed, used, spent = time.perf_counter() - began, server.used(usage), time.process_time() - client
    answered = len(sample)
    p50, p99 = sample.milliseconds(0.5, 0.99)
    open_for_more = False
    swarm.until(lambda: not any(caller.busy for caller in callers), DRAIN_SECONDS_MAX)
    swarm.close()
    return Result(
        requests=answered,
        seconds=elapsed,
        server=used,
        client_cpu=spent,
        p50_ms=p50,
        p99_ms=p99,
    )


def _spin(swarm: Swarm, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        swarm.turn(0.05)


def disturbance(results: Sequence[Result]) -> str:
    """What must be known to believe the figures: how busy the client was, and whether other work was in the way."""
    busy = median([result.client_share for result in results])
    waited = median([result.waited_share for result in results])
    note = f"client core {busy:.0%} busy"
    return (
        note
        if waited < WAITED_SHARE_QUIET
        else f"{note}; disturbed: the server waited {waited:.0%} of the time for its core"
    )
