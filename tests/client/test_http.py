"""GET over real sockets: straight, through proxies, with TLS, and beside servers that do not speak HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from seamark.client.address import Address, read_address
from seamark.client.http import HttpClient, NoAnswer
from tests.certificate import make_pair

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Talk = Callable[[Reader, Writer], Awaitable[None]]
SECONDS = 5.0


@contextlib.asynccontextmanager
async def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    talks: set[asyncio.Task[None]] = set()

    async def served(reader: Reader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*talks)
        await server.wait_closed()


def saying(raw: bytes, *, heads: list[bytes] | None = None) -> Talk:
    async def talk(reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if heads is not None:
            heads.append(head)
        writer.write(raw)
        await writer.drain()

    return talk


def at(port: int, target: str = "/x", scheme: str = "http") -> Address:
    return read_address(f"{scheme}://127.0.0.1:{port}{target}")


async def fetched(client: HttpClient, address: Address, most: int = 1000) -> tuple[int, bytes]:
    answer = await client.get(address, {"Accept": "*/*"}, seconds=SECONDS)
    try:
        return answer.status, await answer.read(most, SECONDS)
    finally:
        answer.close()


@pytest.mark.parametrize(
    ("raw", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 404, b""),
        (b"HTTP/1.1 304 Same\r\n\r\n", 304, b""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", 200, b"abc"),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", 200, b"abc"),
        (b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, b"a"),
    ],
)
async def test_answers(raw: bytes, status: int, body: bytes) -> None:
    heads: list[bytes] = []
    async with serving(saying(raw, heads=heads)) as port:
        assert await fetched(HttpClient(environ={}), at(port, "/a?b=c")) == (status, body)
    lines = heads[0].decode().lower().split("\r\n")
    assert lines[0] == "get /a?b=c http/1.1"
    assert set(lines[1:-2]) == {
        f"host: 127.0.0.1:{port}",
        "accept: */*",
        "accept-encoding: identity",
        "connection: close",
    }


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000,
    ],
)
async def test_what_is_no_answer(raw: bytes) -> None:
    async with serving(saying(raw)) as port:
        client = HttpClient(environ={})
        with pytest.raises(NoAnswer):
            await fetched(client, at(port))
        assert client.descriptors() == []


async def test_nobody_there_and_nobody_who_answers() -> None:
    async with serving(saying(b"")) as port:
        pass
    with pytest.raises(NoAnswer, match="cannot be asked"):
        await fetched(HttpClient(environ={}), at(port))

    async def mute(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with serving(mute) as port:
        client = HttpClient(environ={})
        with pytest.raises(NoAnswer, match="did not answer within"):
            await client.get(at(port), {}, seconds=0.05)
        assert client.descriptors() == []


async def test_silence_in_the_middle() -> None:
    async def stalls(reader: Reader, writer: Writer) -> None:
        await saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")(reader, writer)
        await reader.read()

    async with serving(stalls) as port:
        client = HttpClient(environ={})
        answer = await client.get(at(port), {}, seconds=SECONDS)
        assert len(client.descriptors()) == 1
        pieces = answer.pieces(0.05)
        assert await anext(pieces) == b"abc"
        with pytest.raises(NoAnswer, match="silent"):
            await anext(pieces)
        with pytest.raises(NoAnswer, match="not here after"):
            await answer.read(10, 0.05)
        answer.close()
        assert client.descriptors() == []


def pair(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    cert, key = folder / "cert.pem", folder / "key.pem"
    make_pair(cert, key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


async def test_tls_needs_a_certificate_that_somebody_trusts(tmp_path: Path) -> None:
    theirs, trusting = pair(tmp_path)
    async with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"), theirs) as port:
        assert await fetched(HttpClient(tls=trusting, environ={}), at(port, scheme="https")) == (200, b"a")
        with pytest.raises(NoAnswer, match="certificate"):
            await fetched(HttpClient(environ={}), at(port, scheme="https"))


async def test_a_proxy_is_told_the_whole_address() -> None:
    heads: list[bytes] = []
    async with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", heads=heads)) as port:
        client = HttpClient(environ={"http_proxy": f"http://me:pw@127.0.0.1:{port}"})
        assert await fetched(client, read_address("http://far.example/x?y")) == (200, b"a")
    text = heads[0].decode()
    assert text.startswith("GET http://far.example/x?y HTTP/1.1\r\n")
    assert "proxy-authorization: Basic bWU6cHc=" in text.replace("Proxy-Authorization", "proxy-authorization")


async def test_a_proxy_lets_tls_through_without_a_look(tmp_path: Path) -> None:
    theirs, trusting = pair(tmp_path)
    asked: list[str] = []

    async def pump(reader: Reader, writer: Writer) -> None:
        while piece := await reader.read(4096):
            writer.write(piece)
        writer.close()

    async def proxy(reader: Reader, writer: Writer) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    heads: list[bytes] = []
    async with (
        serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", heads=heads), theirs) as port,
        serving(proxy) as proxy_port,
    ):
        client = HttpClient(tls=trusting, environ={"https_proxy": f"http://127.0.0.1:{proxy_port}"})
        assert await fetched(client, at(port, scheme="https")) == (200, b"a")
        assert asked[0].startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n")
        assert heads[0].startswith(b"GET /x HTTP/1.1\r\n")


async def test_a_name_is_as_good_as_a_number() -> None:
    async with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")) as port:
        assert await fetched(HttpClient(environ={}), read_address(f"http://localhost:{port}/")) == (200, b"a")


@pytest.mark.parametrize("raw", [b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", b"", b"nonsense\r\n\r\n"])
async def test_a_proxy_that_does_not(raw: bytes) -> None:
    async with serving(saying(raw)) as port:
        client = HttpClient(environ={"https_proxy": f"http://127.0.0.1:{port}"})
        with pytest.raises(NoAnswer):
            await fetched(client, read_address("https://far.example/"))
        assert client.descriptors() == []


async def test_a_proxy_of_another_kind_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="http://host:port"):
        await fetched(HttpClient(environ={"all_proxy": "socks5://h"}), read_address("http://far.example/"))


async def test_a_line_end_in_a_header_is_never_sent() -> None:
    heads: list[bytes] = []
    async with serving(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", heads=heads)) as port:
        with pytest.raises(NoAnswer):
            await HttpClient(environ={}).get(at(port), {"Authorization": "Bearer x\r\nX: y"}, seconds=SECONDS)
    assert not heads
