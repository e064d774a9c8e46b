"""Watchers of one stream on one server, and the publishers that keep them busy."""

from __future__ import annotations

import itertools
import time

import msgspec

from seamark.bench import wire
from seamark.bench.process import Process, Usage
from seamark.bench.sample import Sample
from seamark.bench.swarm import Caller, Swarm, Watcher

PUBLISHERS = 16
CHECKED = 10  # connections that look at every event; more of them would make the client the bottleneck
OPEN_SECONDS_MAX = 60.0
DRAIN_SECONDS_MAX = 20.0
SPIN_SECONDS = 0.0015  # epoll sleeps in whole milliseconds; a fixed rate needs better than that
_numbers = itertools.count(1)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one measured stretch of deliveries came to."""

    deliveries: int
    seconds: float
    server: Usage | None
    client_cpu: float
    p50_ms: float
    p99_ms: float
    lost: int
    broken: int

    @property
    def per_second(self) -> float:
        return self.deliveries / self.seconds

    @property
    def per_server_cpu(self) -> float | None:
        return self.deliveries / self.server.ran if self.server else None

    @property
    def waited_share(self) -> float:
        """How much of the time other work kept the server from its core: a disturbed run."""
        return self.server.waited / self.seconds if self.server else 0.0

    @property
    def client_share(self) -> float:
        """How busy the load client's core was: near 1 it would be what limits the figure."""
        return self.client_cpu / self.seconds


class Audience:
    """`watchers` open streams over one fresh stream, live only."""

    def __init__(self, server: Process, watchers: int, *, durability: str = "fsync") -> None:
        self._server = server
        self.watchers = watchers
        self.path = self._make(durability)
        self.swarm = Swarm(server.host, server.port)
        self.tally = self.swarm.tally
        self._requests = wire.append_body(1).split(b"%019d" % 0)
        assert len(self._requests) == 2
        self._body_bytes = len(wire.append_body(1))
        self._head = wire.request("POST", self.path, b" " * self._body_bytes)[: -self._body_bytes]
        every = max(1, watchers // CHECKED)
        for number in range(watchers):
            Watcher(self.swarm, self._watch(), checks=number % every == 0)
            if number % 64 == 0:
                self.swarm.turn(0)
        if not self.swarm.until(lambda: self.tally.opened == watchers, OPEN_SECONDS_MAX):
            raise TimeoutError(f"{self.tally.opened} of {watchers} watches opened in {OPEN_SECONDS_MAX:.0f} s")
        self.published = 0
        self._idle: list[Caller] = []
        answers = Sample()
        for _ in range(PUBLISHERS):
            self._idle.append(Caller(self.swarm, answers, self._idle.append))

    def _make(self, durability: str) -> str:
        """The stream, by the path that is written to."""
        path = f"/raw/bench-{next(_numbers)}"
        self._ask("PUT", path, {"durability": durability})
        return path

    def _watch(self) -> str:
        """Where one more watcher is served."""
        return self.path + "/watch"

    def _ask(self, method: str, path: str, body: object) -> dict[str, object]:
        return wire.ask(self._server.host, self._server.port, method, path, body)

    def close(self) -> None:
        self.swarm.close()

    @property
    def outstanding(self) -> int:
        return self.published * self.watchers - self.tally.delivered

    def window(self, events: int, seconds: float) -> Outcome:
        """As fast as it goes with at most `events` events on their way (1: the next when everybody has the last)."""
        allowed = (events - 1) * self.watchers
        self.swarm.timing(events == 1)
        self._keep(allowed, min(0.3, seconds / 4))
        start = self._begin()
        self._keep(allowed, seconds)
        return self._end(start)

    def rate(self, deliveries_per_second: float, seconds: float) -> Outcome:
        """Events at fixed times, whatever becomes of the earlier ones; latency counts from the intended time."""
        every = self.watchers / deliveries_per_second
        self.swarm.timing(True)
        start = self._begin()
        due = start.clock
        end = start.clock + seconds
        while due < end:
            left = due - time.perf_counter()
            if left <= 0 and self._idle:
                self._publish(int(due * 1e9))
                due += every
            self.swarm.turn(max(0.0, left - SPIN_SECONDS) if self._idle else SPIN_SECONDS)
        return self._end(start)

    def _keep(self, allowed: int, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            while self._idle and self.outstanding <= allowed:
                self._publish(time.perf_counter_ns())
            self.swarm.turn(0.05)

    def _publish(self, stamp: int) -> None:
        before, after = self._requests
        self.published += 1
        self._idle.pop().call(b"%b%b%019d%b" % (self._head, before, stamp, after))

    def _begin(self) -> _Start:
        self._drain()
        self.tally.latency.clear()
        self.tally.broken = 0
        return _Start(time.perf_counter(), self._server.usage(), time.process_time(), self.tally.delivered)

    def _end(self, start: _Start) -> Outcome:
        """Everything on its way belongs to the stretch, and so does the time it takes to arrive."""
        lost = self._drain()
        seconds = time.perf_counter() - start.clock
        used = self._server.used(start.server)
        p50, p99 = self.tally.latency.milliseconds(0.5, 0.99)
        return Outcome(
            deliveries=self.tally.delivered - start.delivered,
            seconds=seconds,
            server=used,
            client_cpu=time.process_time() - start.client,
            p50_ms=p50,
            p99_ms=p99,
            lost=lost,
            broken=self.tally.broken,
        )

    def _drain(self) -> int:
        """Wait for what is on its way; how many deliveries never came."""
        self.swarm.until(lambda: self.outstanding <= 0 and len(self._idle) == PUBLISHERS, DRAIN_SECONDS_MAX)
        return self.outstanding


class TopicAudience(Audience):
    """Watch sessions on the same `topics` topics each, of which one is written to. They are fresh ones unless `base` names
    those of an earlier audience."""

    def __init__(
        self, server: Process, watchers: int, *, topics: int = 1, durability: str = "disk", base: str = ""
    ) -> None:
        base = base or f"bench-{next(_numbers)}"
        self._names = [f"{base}-{number}" for number in range(topics)]
        super().__init__(server, watchers, durability=durability)

    def _make(self, durability: str) -> str:
        for name in self._names:
            self._ask("PUT", f"/v0/topics/{name}", {"durability": durability})
        return f"/v0/topics/{self._names[0]}"

    def _watch(self) -> str:
        return str(self._ask("POST", "/v0/watch", {"topics": {name: {} for name in self._names}})["stream_url"])


class _Start(msgspec.Struct, frozen=True):
    clock: float
    server: Usage | None
    client: float
    delivered: int
