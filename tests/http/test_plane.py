from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from seamark.http.plane import _AT_A_TIME, Patience
from tests.http.rig import Running, request


def test_a_broken_connection_does_not_end_the_rounds_of_the_others(start: Callable[..., Running]) -> None:
    server = start(patience=Patience(round_seconds=0.05, header_seconds=0.3))
    with server.client() as broken, server.client() as silent:
        assert broken.get("/hot/echo/a").status == 200
        server.until(lambda: server.plane.open == 2)

        def sabotage() -> None:
            one = next(c for c in server.plane.connections if c.phase.name == "IDLE")
            one.inspect = lambda now: 1 / 0  # type: ignore[method-assign,assignment]

        with structlog.testing.capture_logs() as lines:
            server.call(sabotage)
            assert broken.ended()
            assert silent.ended()
    assert [line["event"] for line in lines] == ["task.failed"]


def test_rounds_stop_when_nobody_is_there_and_begin_again(start: Callable[..., Running]) -> None:
    server = start(patience=Patience(round_seconds=0.02, header_seconds=0.2))
    for _ in range(2):
        with server.client() as client:
            assert client.get("/hot/echo/a").status == 200
            assert server.call(lambda: server.plane._round) is not None
        server.until(lambda: server.plane._round is None)
    with server.client() as client:
        assert client.ended()


def test_more_connections_than_one_turn_inspects_all_meet_their_deadline(start: Callable[..., Running]) -> None:
    server = start(patience=Patience(round_seconds=0.05, header_seconds=0.3))
    clients = [server.client() for _ in range(_AT_A_TIME + 50)]
    server.until(lambda: server.plane.open == 0)
    for client in clients:
        assert client.ended()
        client.socket.close()


def test_a_closed_stream_whose_client_takes_nothing_is_cut(start: Callable[..., Running]) -> None:
    from seamark.stream.pipe import Block

    server = start(patience=Patience(round_seconds=0.05, linger_seconds=0.2))
    with server.client() as client:
        client.send(request("GET", "/hot/stream"))
        assert client.head().status == 200
        owner = server.routes.owners[-1]
        big = Block(b"x" * 20_000_000)
        server.call(lambda: owner.pipe.write(big))
        server.call(owner.pipe.close)
        begun = time.monotonic()
        server.until(lambda: owner.said[-1:] == ["gone"])
        assert time.monotonic() - begun < 5


def test_connections_are_gauged(start: Callable[..., Running]) -> None:
    server = start()
    with server.client() as stream, server.client() as other:
        stream.send(request("GET", "/hot/stream"))
        assert stream.head().status == 200
        assert b"seamark_http_connections 2.0" in other.get("/metrics").body
        assert server.call(lambda: (len(server.plane.connections), len(server.plane.pipes))) == (1, 1)
