"""One GET to a service whose word counts here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from seamark.access.fetch import FAILURES, Fetcher

Answerer = Callable[[int], bytes | None]
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Served:
    url = ""
    asked = 0
    connections = 0


@asynccontextmanager
async def serving(answer: Answerer) -> AsyncIterator[Served]:
    """`answer` gets the number of the question, from 1, and None cuts the connection."""
    served = Served()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                served.asked += 1
                data = answer(served.asked)
                if data is None:
                    return
                writer.write(data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    try:
        yield served
    finally:
        listener.close()


@asynccontextmanager
async def fetching(*, bytes_max: int = 100, timeout_seconds: float = 20.0) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(timeout_seconds=timeout_seconds, bytes_max=bytes_max)
    yield fetcher
    await fetcher.close()


async def test_a_connection_is_kept() -> None:
    async with serving(lambda _: WHOLE) as served, fetching() as fetcher:
        for _ in range(3):
            assert (await fetcher.get(served.url)).body == b"ok"
        assert served.connections == 1


async def test_a_connection_that_ends_when_it_is_used_again_is_no_failure() -> None:
    async with serving(lambda number: None if number == 2 else WHOLE) as served, fetching() as fetcher:
        assert (await fetcher.get(served.url)).status == 200
        assert (await fetcher.get(served.url)).status == 200
        assert (served.asked, served.connections) == (3, 2)


async def test_one_that_always_ends_is() -> None:
    async with serving(lambda _: None) as served, fetching() as fetcher:
        with pytest.raises(FAILURES):
            await fetcher.get(served.url)
        assert served.asked == 2


async def test_an_answer_has_a_size() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + bytes(101)
    async with serving(lambda _: body) as served, fetching() as fetcher:
        with pytest.raises(httpx.StreamError):
            await fetcher.get(served.url)
    async with serving(lambda _: body) as served, fetching(bytes_max=101) as fetcher:
        assert len((await fetcher.get(served.url)).body) == 101


async def test_a_redirect_is_an_answer() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"
    async with serving(lambda _: moved) as served, fetching() as fetcher:
        assert (await fetcher.get(served.url)).status == 302
        assert served.asked == 1


async def test_an_answer_that_drips_is_too_slow() -> None:
    async with serving(lambda _: WHOLE[:-1]) as served, fetching(timeout_seconds=0.05) as fetcher:
        with pytest.raises(TimeoutError):
            await fetcher.get(served.url)


async def test_proxies_of_the_environment_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with serving(lambda _: WHOLE) as served, fetching() as fetcher:
        assert (await fetcher.get(served.url)).status == 200
