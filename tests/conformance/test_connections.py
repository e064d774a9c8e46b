"""Connections that end: cut by the network, at their longest, with the server. The contract's own client comes back by itself,
and has everything, once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyaviso
import pytest
import pytest_asyncio

from seamark.testing.faults import FaultyProxy, Weather
from seamark.testing.server import ServerProcess
from tests.conformance.command import Aviso
from tests.conformance.command import Listening as ListeningCommand
from tests.conformance.rig import PATIENCE_SECONDS, WATCH, measured, serving, wait_for_watches

pytestmark = pytest.mark.slow  # servers are started again, and the client waits five seconds for one that said goodbye


def connect(port: int) -> pyaviso.AsyncAvisoClient:
    return pyaviso.AsyncAvisoClient(base_url=f"http://127.0.0.1:{port}", auth=pyaviso.Anonymous())


async def tick(server: ServerProcess, *numbers: int) -> None:
    client = connect(server.address[1])
    for number in numbers:
        await client.notify(event_type="ticks0", identifier={"n": number})


async def wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


class Listener:
    """What a listener hears, over all its connections."""

    def __init__(self, notifications: Any) -> None:
        self.heard: list[int] = []
        self.notifications = notifications
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for notification in self.notifications:
            self.heard.append(notification.sequence)

    async def until(self, last: int) -> None:
        await wait_until(lambda: self.task.done() or last in self.heard)
        if self.task.done():
            await self.task  # raises what ended it


@asynccontextmanager
async def listening(client: pyaviso.AsyncAvisoClient, **wanted: Any) -> AsyncIterator[Listener]:
    listener = Listener(client.listen("ticks0", **wanted))
    try:
        yield listener
    finally:
        await listener.notifications.aclose()
        await asyncio.wait_for(listener.task, PATIENCE_SECONDS)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    with serving(tmp_path / "server") as process:
        yield process


@pytest_asyncio.fixture
async def proxy(server: ServerProcess) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(*server.address) as proxy:
        yield proxy


@pytest.mark.parametrize("wanted", [{}, {"filter": {"n": {"gte": 0}}}], ids=["all", "filtered"])
async def test_a_cut_is_mended_wherever_it_comes(
    server: ServerProcess, proxy: FaultyProxy, wanted: dict[str, Any]
) -> None:
    await tick(server, *range(10))
    async with listening(connect(proxy.port), start_from=0, **wanted) as listener:
        for last in range(10, 40, 5):
            await listener.until(last)
            assert proxy.cut() == 1
            await tick(server, *range(last, last + 5))
        await listener.until(40)
        assert listener.heard == list(range(1, 41))
        assert proxy.accepted > 6


async def test_a_cut_in_the_middle_of_history_is_mended(server: ServerProcess, proxy: FaultyProxy) -> None:
    await tick(server, *range(40))
    proxy.weather = Weather(bytes_per_second=20_000)  # some 60 notifications a second
    async with listening(connect(proxy.port), start_from=0, mode="replay_only") as listener:
        await listener.until(5)
        assert proxy.cut() == 1
        proxy.change(Weather())
        await listener.until(40)
        await asyncio.wait_for(asyncio.shield(listener.task), PATIENCE_SECONDS)  # a replay ends
        assert listener.heard == list(range(1, 41))


async def test_a_live_listener_that_has_heard_something_goes_on_after_it(
    server: ServerProcess, proxy: FaultyProxy
) -> None:
    async with listening(connect(proxy.port)) as listener:
        await asyncio.to_thread(wait_for_watches, server.base_url, "ticks0")
        await tick(server, 1)
        await listener.until(1)
        proxy.weather = Weather(refusing=True)
        proxy.cut()
        await tick(server, 2, 3)
        accepted = proxy.accepted
        await wait_until(lambda: proxy.accepted > accepted + 1)  # it tries again and again
        proxy.weather = Weather()
        await listener.until(3)
        assert listener.heard == [1, 2, 3]


async def test_at_its_longest_a_connection_is_closed_and_made_again_at_once(tmp_path: Path) -> None:
    with serving(tmp_path / "server", watch_endpoint=WATCH | {"connection_max_duration_sec": 1}) as server:
        async with listening(connect(server.address[1]), start_from=0) as listener:
            number = 0
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await asyncio.to_thread(measured, server.base_url, "aviso_sse_connections_total", "ticks0") < 3:
                    await tick(server, number)
                    number += 1
                    await asyncio.sleep(0.02)
            await listener.until(number)
            assert listener.heard == list(range(1, number + 1))


async def test_the_command_knows_why_it_comes_back(tmp_path: Path) -> None:
    """It says so in its log: at its longest a connection was asked to come back, and a server that goes asked for some time."""
    with serving(tmp_path / "server", watch_endpoint=WATCH | {"connection_max_duration_sec": 1}) as server:
        aviso = Aviso(server.base_url, tmp_path)
        with ListeningCommand(aviso, ("--event", "ticks0", "--identifiers", "{}")) as listener:
            listener.wait_until_listening(1)
            aviso.publish("ticks0", 1)
            listener.until(1)
            await wait_until(lambda: bool(listener.returns))
            assert set(listener.returns) == {("server requested reconnect", "0")}
        with ListeningCommand(aviso, ("--event", "ticks0", "--identifiers", "{}")) as listener:
            listener.wait_until_listening(1)
            assert await asyncio.to_thread(server.stop) == 0
            await wait_until(lambda: listener.returns[-1:] == [("server requested reconnect", "5000")])


async def test_a_server_that_was_killed_is_found_again(server: ServerProcess, proxy: FaultyProxy) -> None:
    await tick(server, 1, 2)
    async with listening(connect(proxy.port), start_from=0) as listener:
        await listener.until(2)
        server.kill()
        await asyncio.to_thread(server.start)
        proxy.aim(*server.address)
        await tick(server, 3, 4)
        await listener.until(4)
        assert listener.heard == [1, 2, 3, 4]


async def test_a_server_that_shuts_down_says_so_and_is_found_again(server: ServerProcess, proxy: FaultyProxy) -> None:
    await tick(server, 1, 2)
    live = connect(proxy.port)
    async with listening(connect(proxy.port), start_from=0) as listener, listening(live) as newcomer:
        await listener.until(2)
        await asyncio.to_thread(wait_for_watches, server.base_url, "ticks0", 2)
        await tick(server, 3)
        await newcomer.until(3)
        accepted = proxy.accepted
        assert await asyncio.to_thread(server.stop) == 0
        await asyncio.sleep(1)
        assert proxy.accepted == accepted  # after a goodbye nobody hammers on the door
        await asyncio.to_thread(server.start)
        proxy.aim(*server.address)
        await tick(server, 4, 5)
        await asyncio.gather(listener.until(5), newcomer.until(5))
        assert (listener.heard, newcomer.heard) == ([1, 2, 3, 4, 5], [3, 4, 5])


async def test_numbers_go_on_over_restarts_of_the_server(server: ServerProcess) -> None:
    for life in range(2):
        await tick(server, life)
        client = connect(server.address[1])
        async with client.listen("ticks0", start_from=life, mode="replay_only") as notifications:
            assert [one.sequence async for one in notifications] == [life + 1]
        await asyncio.to_thread(server.restart)


async def test_a_replay_reaches_its_end_over_cuts(server: ServerProcess, proxy: FaultyProxy) -> None:
    """The end is fixed when the replay begins, and kept over its connections."""
    await tick(server, *range(30))
    proxy.weather = Weather(bytes_per_second=20_000)
    async with listening(
        connect(proxy.port), start_from=0, until="2100-01-01T00:00:00Z", mode="replay_only"
    ) as listener:
        await listener.until(4)
        await tick(server, 30, 31)
        proxy.cut()
        await listener.until(30)
        await asyncio.wait_for(asyncio.shield(listener.task), PATIENCE_SECONDS)
        assert listener.heard == list(range(1, 31))


async def test_a_rejected_listener_does_not_come_back(server: ServerProcess, proxy: FaultyProxy) -> None:
    listener = Listener(connect(proxy.port).listen("nothing"))
    with pytest.raises(pyaviso.HttpError) as raised:
        await asyncio.wait_for(listener.task, PATIENCE_SECONDS)
    assert raised.value.status == 400
    assert proxy.accepted == 1
