"""Many watchers of one stream, each of whom wants something else, and the publishers that keep them busy."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from seamark.bench import wire
from seamark.bench.audience import DRAIN_SECONDS_MAX, OPEN_SECONDS_MAX
from seamark.bench.hearer import Heard, Hearer
from seamark.bench.process import Process, Usage
from seamark.bench.sample import Sample
from seamark.bench.swarm import Caller, Swarm

PUBLISHERS = 64
WARM_SHARE = 0.2


class Post(NamedTuple):
    """A request that publishes, around the stamp in it, and which of the watchers (by their numbers) want what it says."""

    before: bytes
    after: bytes
    wanted_by: frozenset[int]


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """What a measured stretch came to. `late_ms`: how long events took, where they were looked at."""

    notifications: int
    deliveries: int
    seconds: float
    server: Usage | None
    client_cpu: float
    lost: int

    @property
    def per_second(self) -> float:
        return self.notifications / self.seconds

    @property
    def per_server_cpu(self) -> float | None:
        return self.notifications / self.server.ran if self.server else None

    @property
    def client_share(self) -> float:
        return self.client_cpu / self.seconds

    @property
    def waited_share(self) -> float:
        return self.server.waited / self.seconds if self.server else 0.0


class Crowd:
    """All watchers have said their `opening` events when this is made. `checked` are the numbers of those whose every event is
    looked at; more of them would make the client the bottleneck."""

    def __init__(
        self, server: Process, watches: Sequence[bytes], posts: Sequence[Post], *, opening: int, checked: Sequence[int]
    ) -> None:
        self._server = server
        self.swarm = Swarm(server.host, server.port)
        self.tally = self.swarm.tally
        self._posts = posts
        self._turns = itertools.cycle(range(len(posts)))
        self._wanted = [len(post.wanted_by) for post in posts]
        self.published: list[tuple[int, int]] = []  # stamp, and which post it was
        self._owed = 0  # deliveries of all that was published
        self.watchers = [self._watcher(watches[number], opening, number in checked) for number in range(len(watches))]
        if not self.swarm.until(lambda: self.tally.opened == len(watches), OPEN_SECONDS_MAX):
            raise TimeoutError(f"{self.tally.opened} of {len(watches)} watches opened in {OPEN_SECONDS_MAX:.0f} s")
        self._idle: list[Caller] = []
        answers = Sample()
        for _ in range(PUBLISHERS):
            self._idle.append(Caller(self.swarm, answers, self._idle.append))

    def _watcher(self, request: bytes, opening: int, notes: bool) -> Hearer:
        self.swarm.turn(0)
        return Hearer(self.swarm, request, opening=opening, notes=notes)

    @property
    def hits(self) -> float:
        """Watchers that want a notification, on the average."""
        return sum(self._wanted) / len(self._wanted)

    @property
    def outstanding(self) -> int:
        return self._owed - self.tally.delivered

    def run(self, seconds: float) -> Stretch:
        """Publish as fast as it goes, with no more on its way than the publishers have in their hands."""
        self._keep(seconds * WARM_SHARE)
        self._drain()
        began, usage, client = time.perf_counter(), self._server.usage(), time.process_time()
        published, delivered = len(self.published), self.tally.delivered
        self._keep(seconds)
        lost = self._drain()  # what is on its way belongs to the stretch, and so does the time it takes to arrive
        return Stretch(
            notifications=len(self.published) - published,
            deliveries=self.tally.delivered - delivered,
            seconds=time.perf_counter() - began,
            server=self._server.used(usage),
            client_cpu=time.process_time() - client,
            lost=lost,
        )

    def broken(self) -> int:
        """How many events were missing, needless, repeated or out of order, on the connections that look at them."""
        return sum(
            self._faults(number, watcher.heard)
            for number, watcher in enumerate(self.watchers)
            if watcher.heard is not None
        )

    def latency(self) -> Sample:
        """Of all events that were looked at."""
        whole = Sample()
        for watcher in self.watchers:
            if watcher.heard is not None:
                whole.extend(watcher.heard.latency.nanoseconds)
        return whole

    def close(self) -> None:
        self.swarm.close()

    def _faults(self, number: int, heard: Heard) -> int:
        wanted = {stamp for stamp, post in self.published if number in self._posts[post].wanted_by}
        told = set(heard.stamps)
        disorder = sum(after <= before for before, after in itertools.pairwise(heard.sequences))
        return len(wanted ^ told) + len(heard.stamps) - len(told) + disorder

    def _keep(self, seconds: float) -> None:
        allowed = PUBLISHERS * self.hits
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            while self._idle and self.outstanding <= allowed:
                self._publish()
            self.swarm.turn(0.05)

    def _publish(self) -> None:
        number = next(self._turns)
        post, stamp = self._posts[number], time.perf_counter_ns()
        self.published.append((stamp, number))
        self._owed += self._wanted[number]
        self._idle.pop().call(b"%b%019d%b" % (post.before, stamp, post.after))

    def _drain(self) -> int:
        """Wait for what is on its way; how many deliveries never came."""
        self.swarm.until(lambda: self.outstanding <= 0 and len(self._idle) == PUBLISHERS, DRAIN_SECONDS_MAX)
        return self.outstanding


def post(target: str, body: bytes, wanted_by: frozenset[int]) -> Post:
    """From a whole body with a stamp of zeros in it."""
    before, after = wire.request("POST", target, body).split(b"0" * wire.STAMP_DIGITS)
    return Post(before, after, wanted_by)
