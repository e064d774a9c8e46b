"""Streams on the data plane: the hand-over of the connection, chunked framing, backpressure, and every way to end."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import time
import tracemalloc
from collections.abc import Callable

import pytest

from seamark import limits
from seamark.http.connection import PlaneProtocol
from seamark.http.front import Front
from seamark.http.plane import Plane
from seamark.http.transport_pipe import TransportPipe
from seamark.http.turn import PlaneExchange
from seamark.stream.pipe import Block
from seamark.telemetry.metrics import Metrics
from tests.http.rig import Client, Owner, Running, authenticate, request

PREFIXES = pytest.mark.parametrize("prefix", ["/hot", "/cold"])


def opened(server: Running, client: Client, path: str, *lines: str) -> Owner:
    """Begin a stream and find its owner on the server's side."""
    count = len(server.routes.owners)
    client.send(request("GET", path, *lines))
    assert client.head().status == 200
    assert client.chunk() == b": hello\n\n"
    return server.routes.owners[count]


@PREFIXES
def test_a_stream_carries_its_headers_and_its_blocks_as_chunks(server: Running, client: Client, prefix: str) -> None:
    client.send(request("GET", f"{prefix}/stream"))
    head = client.head()
    assert (head.status, head.headers["transfer-encoding"]) == (200, "chunked")
    assert (head.headers["content-type"], head.headers["cache-control"]) == ("text/event-stream", "no-store")
    assert len(head.headers["x-request-id"]) == 36
    assert head.headers["date"].endswith("GMT")
    assert client.chunk() == b": hello\n\n"
    owner = server.routes.owners[-1]
    server.call(lambda: owner.pipe.write(Block(b"data: one\n\n")))
    assert client.chunk() == b"data: one\n\n"


@PREFIXES
def test_closing_says_the_last_block_and_ends_the_body(server: Running, client: Client, prefix: str) -> None:
    owner = opened(server, client, f"{prefix}/stream")
    server.call(lambda: owner.pipe.close(Block(b"event: bye\n\n")))
    assert client.chunks() == b"event: bye\n\n"
    server.until(lambda: owner.said == ["gone"])
    assert server.call(lambda: owner.pipe.closing)


@PREFIXES
def test_a_connection_goes_on_after_its_stream(server: Running, client: Client, prefix: str) -> None:
    """As `Connection: keep-alive` says: a client that asks again at once must not find the connection cut."""
    for _ in range(3):
        owner = opened(server, client, f"{prefix}/stream")
        server.call(lambda owner=owner: owner.pipe.close(Block(b"bye")))  # type: ignore[misc]
        assert client.chunks() == b"bye"
        answer = client.get("/hot/echo/a")
        assert (answer.status, "connection" in answer.headers) == (200, False)
        server.until(lambda owner=owner: owner.said == ["gone"])  # type: ignore[misc]
        server.call(owner.pipe.abort)
        assert client.get("/cold/echo/a").status == 200
    assert server.call(lambda: (server.plane.open, len(server.plane.pipes))) == (1, 0)


def test_a_reader_that_lags_behind_the_end_has_its_connection_after_it(server: Running, client: Client) -> None:
    owner = opened(server, client, "/hot/stream")
    block = Block(b"x" * 50_000)
    written = []

    def fill() -> bool:
        owner.pipe.write(block)
        written.append(block)
        return "pause" in owner.said

    server.until(fill)
    server.call(owner.pipe.close)
    assert server.call(lambda: owner.pipe.closing)
    assert len(client.chunks()) == 50_000 * len(written)
    server.until(lambda: "gone" in owner.said)
    assert client.get("/hot/echo/a").status == 200


@pytest.mark.parametrize("case", ["close", "input", "draining"])
def test_a_connection_that_must_end_with_its_stream(
    server: Running, client: Client, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    owner = opened(server, client, "/hot/stream", *(["Connection: close"] if case == "close" else []))
    if case == "input":
        client.send(b"GET")  # nobody knows what of it was meant for whom
        pipe = owner.pipe
        assert isinstance(pipe, TransportPipe)
        server.until(lambda: pipe._ignored)
    if case == "draining":
        monkeypatch.setattr(server.plane, "draining", True)
    server.call(owner.pipe.close)
    assert client.chunks() == b""
    assert client.ended()
    server.until(lambda: owner.said == ["gone"])


@PREFIXES
def test_a_coroutine_may_stream_and_its_failure_ends_the_stream(server: Running, client: Client, prefix: str) -> None:
    owner = opened(server, client, f"{prefix}/stream-later")
    server.call(lambda: owner.pipe.write(Block(b"one")))
    assert client.chunk() == b"one"
    with server.client() as other:
        count = len(server.routes.owners)
        other.send(request("GET", f"{prefix}/stream-later?boom"))
        server.until(lambda: len(server.routes.owners) > count)
        broken = server.routes.owners[count]
        server.until(lambda: broken.said == ["gone"])
        if prefix == "/hot":
            assert b"secret" not in other.all()  # cut off
        else:
            assert b"secret" not in other.answer().body  # an ASGI server can only be told that it is over


def test_a_client_that_left_before_its_stream_began(server: Running) -> None:
    count = len(server.routes.owners)
    with server.client() as client:
        client.send(request("GET", "/hot/stream-later"))
    server.until(lambda: len(server.routes.owners) > count and server.routes.owners[count].said == ["gone"])


def test_a_closed_pipe_takes_writes_and_drops_them(server: Running, client: Client) -> None:
    owner = opened(server, client, "/hot/stream")

    def misuse() -> None:
        owner.pipe.close()
        owner.pipe.write(Block(b"late"))
        owner.pipe.close(Block(b"later"))

    server.call(misuse)
    assert client.chunks() == b""
    server.until(lambda: owner.said == ["gone"])
    server.call(lambda: owner.pipe.write(Block(b"last")))
    server.call(owner.pipe.abort)
    assert owner.said == ["gone"]


@PREFIXES
def test_the_owner_hears_once_that_the_client_left(server: Running, prefix: str) -> None:
    with server.client() as client:
        owner = opened(server, client, f"{prefix}/stream")
    server.until(lambda: owner.said == ["gone"])
    server.call(lambda: owner.pipe.write(Block(b"x")))
    server.call(owner.pipe.abort)
    time.sleep(0.02)
    assert owner.said == ["gone"]


def test_a_half_closed_client_is_taken_to_have_left(server: Running, client: Client) -> None:
    owner = opened(server, client, "/hot/stream")
    client.socket.shutdown(socket.SHUT_WR)
    server.until(lambda: owner.said == ["gone"])


@PREFIXES
def test_abort_drops_what_is_unsent(server: Running, client: Client, prefix: str) -> None:
    owner = opened(server, client, f"{prefix}/stream")
    server.call(owner.pipe.abort)
    server.until(lambda: owner.said == ["gone"])


@PREFIXES
def test_backpressure_pauses_and_resumes_and_nothing_is_lost(server: Running, client: Client, prefix: str) -> None:
    owner = opened(server, client, f"{prefix}/stream")
    block = Block(b"x" * 50_000)
    written = 0

    def fill() -> bool:
        nonlocal written
        if "pause" not in owner.said:
            owner.pipe.write(block)
            written += 1
        return "pause" in owner.said

    server.until(fill)
    if prefix == "/hot":  # elsewhere the server below has its own buffers and soon takes more
        assert server.call(lambda: owner.pipe.buffered) > limits.PIPE_HIGH_WATER_BYTES
    for _ in range(written):
        got = 0
        while got < 50_000:
            got += len(client.chunk())
    server.until(lambda: owner.said == ["pause", "resume"])
    assert server.call(lambda: owner.pipe.buffered) <= limits.PIPE_LOW_WATER_BYTES


def test_what_the_client_sends_is_ignored_up_to_a_bound(server: Running, client: Client) -> None:
    owner = opened(server, client, "/hot/stream")
    client.send(request("GET", "/hot/echo/a"))
    server.call(lambda: owner.pipe.write(Block(b"still here")))
    assert client.chunk() == b"still here"
    try:
        client.send(b"x" * (2 * limits.STREAM_INPUT_BYTES_MAX))
    except OSError:
        pass
    server.until(lambda: owner.said == ["gone"])


def test_requests_pipelined_behind_a_stream_are_not_served(server: Running, client: Client) -> None:
    server.routes.seen.clear()
    client.send(request("GET", "/hot/stream") + request("POST", "/hot/later?1", "Content-Length: 0"))
    assert client.head().status == 200
    assert client.chunk() == b": hello\n\n"
    owner = server.routes.owners[-1]
    server.call(owner.pipe.close)
    assert client.chunks() == b""
    assert client.ended()
    assert server.routes.seen == []


def test_a_stream_waits_for_the_answers_before_it(server: Running, client: Client) -> None:
    count = len(server.routes.owners)
    client.send(request("GET", "/hot/slow?60") + request("GET", "/hot/stream"))
    server.until(lambda: len(server.routes.owners) > count)
    owner = server.routes.owners[-1]
    server.call(lambda: owner.pipe.write(Block(b"early")))
    assert client.answer().status == 201
    assert client.head().status == 200
    assert client.chunk() == b": hello\n\n"
    assert client.chunk() == b"early"


def test_a_stream_that_never_got_its_turn_is_told_so(server: Running) -> None:
    with server.client() as client:
        count = len(server.routes.owners)
        client.send(request("GET", "/hot/slow?200") + request("GET", "/hot/stream"))
        server.until(lambda: len(server.routes.owners) > count)
        owner = server.routes.owners[-1]
    server.until(lambda: owner.said == ["gone"])


def test_a_stream_closed_before_its_turn_ends_properly(server: Running, client: Client) -> None:
    count = len(server.routes.owners)
    client.send(request("GET", "/hot/slow?60") + request("GET", "/hot/stream"))
    server.until(lambda: len(server.routes.owners) > count)
    owner = server.routes.owners[-1]
    server.call(lambda: owner.pipe.close(Block(b"bye")))
    assert client.answer().status == 201
    assert client.answer().body == b": hello\n\nbye"
    server.until(lambda: owner.said == ["gone"])


async def test_a_pipe_that_takes_over_a_full_transport_starts_paused() -> None:
    """Earlier answers still fill the connection, and the transport has said so to the protocol before."""
    near, far = socket.socketpair()
    far.setblocking(False)
    loop = asyncio.get_running_loop()
    plane = Plane(Front([], authenticate=authenticate, metrics=Metrics()))
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=near)
    assert isinstance(transport, asyncio.Transport)
    transport.write(b"x" * 5_000_000)
    pipe = TransportPipe(plane, b"head", chunked=True)
    owner = Owner(pipe)
    pipe.owner = owner
    transport.set_protocol(pipe)
    pipe.attach(transport)
    assert owner.said == ["pause"]
    received = 0
    while received < 5_000_004:
        received += len(await loop.sock_recv(far, 1_000_000))
    await asyncio.sleep(0.01)
    assert owner.said == ["pause", "resume"]
    far.close()
    while plane.open:
        await asyncio.sleep(0.01)
    assert owner.said == ["pause", "resume", "gone"]


def test_a_waiting_stream_has_backpressure_too(server: Running, client: Client) -> None:
    count = len(server.routes.owners)
    client.send(request("GET", "/hot/slow?100") + request("GET", "/hot/stream"))
    server.until(lambda: len(server.routes.owners) > count)
    owner = server.routes.owners[-1]
    server.call(lambda: owner.pipe.write(Block(b"x" * (limits.PIPE_HIGH_WATER_BYTES + 1))))
    assert owner.said == ["pause"]
    assert client.answer().status == 201
    server.until(lambda: owner.said == ["pause", "resume"])


@PREFIXES
def test_head_of_a_stream_has_no_body_and_its_owner_is_let_go(server: Running, client: Client, prefix: str) -> None:
    count = len(server.routes.owners)
    assert client.get(f"{prefix}/stream", method="HEAD").status == 200
    server.until(lambda: len(server.routes.owners) > count and server.routes.owners[-1].said == ["gone"])


def test_http_1_0_gets_its_stream_unframed_until_the_end(server: Running, client: Client) -> None:
    count = len(server.routes.owners)
    client.send(b"GET /hot/stream HTTP/1.0\r\n\r\n")
    server.until(lambda: len(server.routes.owners) > count)
    head = client.head()
    assert "transfer-encoding" not in head.headers
    assert head.headers["connection"] == "close"
    server.call(lambda: server.routes.owners[-1].pipe.close(Block(b"bye\n")))
    assert client.rest() == b": hello\n\nbye\n"


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux lets a process say how long to wait")
def test_a_peer_that_left_without_a_word_is_not_waited_for(server: Running, client: Client) -> None:
    """Nothing tells a server that a machine lost its power; the system would go on sending for a quarter of an hour."""
    owner = opened(server, client, "/hot/stream")
    assert isinstance(owner.pipe, TransportPipe)
    transport = owner.pipe._transport
    assert transport is not None
    option = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    patience_ms = server.call(lambda: transport.get_extra_info("socket").getsockopt(*option))
    assert patience_ms == limits.WRITE_STALL_SECONDS * 1_000


def test_small_writes_are_not_held_back(server: Running, client: Client) -> None:
    owner = opened(server, client, "/hot/stream")
    assert isinstance(owner.pipe, TransportPipe)
    transport = owner.pipe._transport
    assert transport is not None
    nodelay = server.call(lambda: transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    assert nodelay != 0


@pytest.mark.slow
def test_five_thousand_connections_leave_nothing_behind(start: Callable[..., Running]) -> None:
    """Opened and dropped at every stage: silent, half a request, half a body, answered, waiting, streaming."""
    server = start()
    stages = [
        b"",
        b"GET /hot/ec",
        request("POST", "/hot/body", "Content-Length: 10") + b"abc",
        request("POST", "/cold/body", "Content-Length: 10") + b"abc",
        request("GET", "/hot/echo/a"),
        request("POST", "/hot/later?20", "Content-Length: 0"),
        request("POST", "/cold/later?20", "Content-Length: 0"),
        request("GET", "/hot/stream"),
        request("GET", "/cold/stream"),
        b"garbage\r\n\r\n",
    ]

    def rounds(count: int) -> None:
        for number in range(count):
            with server.client() as client:
                client.send(stages[number % len(stages)])
        server.until(lambda: server.plane.open == 0 and len(asyncio.all_tasks()) <= 3, 30)
        server.routes.owners.clear()
        server.routes.seen.clear()

    def left() -> dict[str, int]:
        gc.collect()
        kinds = (PlaneProtocol, PlaneExchange, TransportPipe, Client, Owner, asyncio.Task)
        names = [type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, kinds)]
        return {name: names.count(name) for name in set(names)}

    rounds(len(stages) * 2)
    before = server.call(left)
    rounds(5_000)
    after = server.call(left)
    assert {name: after[name] for name in after if after[name] > before.get(name, 0)} == {}


@pytest.mark.slow
def test_an_idle_watcher_is_slim(start: Callable[..., Running]) -> None:
    """Python memory only; the transport's own and the kernel's are not in this count."""
    server = start()
    clients = [server.client() for _ in range(20)]
    for client in clients:
        opened(server, client, "/hot/stream")
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        more = [server.client() for _ in range(200)]
        for client in more:
            opened(server, client, "/hot/stream")
        clients += more
        server.call(gc.collect)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    for client in clients:
        client.socket.close()
    assert grown / 200 < 6_000  # the test's own client and owner included
    assert server.call(lambda: len(server.plane.connections)) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="how much a socket takes is told by Linux")
def test_the_kernel_holds_little_for_a_client_that_does_not_read(server: Running, client: Client) -> None:
    """Without a bound its send buffer grows to megabytes before the pipe hears that nobody reads."""
    owner = opened(server, client, "/hot/stream")
    block = Block(b":" + b"x" * (8 * limits.KIB))

    def fill() -> int:
        written = 0
        while "pause" not in owner.said and written < 64 * limits.MIB:
            owner.pipe.write(block)
            written += len(block.raw)
        return written

    assert server.call(fill) < limits.MIB
