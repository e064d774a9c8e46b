"""The load client against the real bare server: both read loops count the same, and losing a connection is an error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seamark.bench import calls, drain, wire
from seamark.bench.audience import PUBLISHERS, Audience
from seamark.bench.process import Process
from seamark.bench.sample import Sample
from seamark.bench.swarm import Broken, Caller, Swarm, Watcher

pytestmark = pytest.mark.slow  # processes of their own


@pytest.fixture(params=["c", "python"])
def read_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each read loop in turn."""
    drain.library.cache_clear()
    if request.param == "python":
        monkeypatch.setenv(drain.SWITCH, "python")
        assert drain.library() is None
        assert drain.kind() == "Python"
    elif drain.library() is None:
        pytest.skip("no C compiler here")
    yield request.param
    drain.library.cache_clear()


def test_every_delivery_is_counted_once(bare: Process, read_loop: str) -> None:
    audience = Audience(bare, 50)
    outcomes = [audience.window(16, 0.2), audience.window(1, 0.1), audience.rate(5_000, 0.2)]
    total = audience.tally.delivered
    audience.close()
    for outcome in outcomes:
        assert outcome.lost == 0
        assert outcome.broken == 0
        assert outcome.deliveries > 0
        assert outcome.deliveries % 50 == 0
        assert 0 < outcome.p50_ms <= outcome.p99_ms
        assert outcome.per_second > 0
        assert outcome.client_share > 0
    assert total == audience.published * 50


def test_one_at_a_time_means_one(bare: Process, read_loop: str) -> None:
    audience = Audience(bare, 20)
    assert audience.outstanding == 0
    audience.window(1, 0.1)
    assert audience.outstanding == 0
    assert audience.published > 1
    audience.close()


def test_requests_are_driven_and_timed(bare: Process) -> None:
    result = calls.drive(bare, wire.request("POST", "/raw/x", wire.append_body(100)), connections=4, seconds=0.2)
    assert result.requests > 4
    assert 0 < result.p50_ms <= result.p99_ms
    assert result.per_second == pytest.approx(result.requests / result.seconds)
    assert "client core" in calls.disturbance([result])
    assert result.per_server_cpu is None or result.per_server_cpu > 0


def test_a_body_larger_than_the_socket_buffer_goes_out_whole(bare: Process) -> None:
    swarm = Swarm(bare.host, bare.port)
    sample = Sample()
    caller = Caller(swarm, sample)
    caller.call(wire.request("POST", "/raw/x", b"x" * 20_000_000))
    assert caller.busy
    assert swarm.until(lambda: not caller.busy, 30)
    assert len(sample) == 1
    swarm.close()


def test_a_server_that_goes_away_is_an_error(bare: Process, read_loop: str) -> None:
    swarm = Swarm(bare.host, bare.port)
    watcher = Watcher(swarm, "/raw/x/watch", checks=False)
    assert swarm.until(lambda: watcher.open, 10)
    bare.kill()
    with pytest.raises((Broken, ConnectionError)):
        swarm.until(lambda: False, 10)
    swarm.close()


def test_publishers_are_idle_again(bare: Process) -> None:
    audience = Audience(bare, 3)
    audience.window(PUBLISHERS * 2, 0.1)  # more than there are publishers
    assert audience.outstanding == 0
    audience.close()
