"""A crowd against the bare server: each event goes to as many watchers as it should, and faults are seen."""

from __future__ import annotations

from seamark.bench import wire
from seamark.bench.crowd import Crowd, Post, post
from seamark.bench.process import Process

EVENT = b'{"records":[{"data":{"data":{"payload":{"pad":"x","t":"%019d"}},"sequence":1,"end":0}}]}' % 0


def crowd_of(bare: Process, share: int, *, wanted_by: frozenset[int], path: str) -> Crowd:
    target = f"{path}/{share}"
    posts: list[Post] = [post(target, EVENT, wanted_by)]
    return Crowd(bare, [wire.request("GET", target + "/watch")] * 10, posts, opening=1, checked=[0, 9])


def test_an_event_goes_to_its_share_of_the_watchers(bare: Process) -> None:
    crowd = crowd_of(bare, 3, wanted_by=frozenset(range(3)), path="/rota")
    stretch = crowd.run(0.2)
    assert crowd.hits == 3
    assert stretch.lost == 0
    assert stretch.deliveries == 3 * stretch.notifications > 0
    assert stretch.per_second > 0
    assert sum(watcher.count - 1 for watcher in crowd.watchers) == 3 * len(crowd.published)
    counts = [watcher.count for watcher in crowd.watchers]
    assert max(counts) - min(counts) <= 1
    assert len(crowd.latency()) > 0
    crowd.close()


def test_what_is_missing_or_needless_is_seen(bare: Process) -> None:
    crowd = crowd_of(bare, 10, wanted_by=frozenset(range(1, 11)), path="/rota")
    crowd.run(0.1)
    sent = len(crowd.published)
    # Watcher 0 is told what it does not want, and by all of them the sequence never grows.
    assert crowd.broken() == sent + 2 * (sent - 1)
    crowd.close()
