"""Events are counted and noted however reads cut them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.bench import wire
from seamark.bench.hearer import Hearer
from seamark.bench.process import Process
from seamark.bench.swarm import Broken, Swarm

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'event: live-notification\ndata: {"data":{"payload":{"pad":"x","t":"%019d"}},"id":"p@%d","sequence":%d,"source":"x"}\n\n'


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(text), text)


BODY = b"".join(
    [
        chunk(b"event: heartbeat\ndata: {}\n\n"),
        chunk(EVENT % (11, 1, 1)),
        chunk(EVENT % (12, 2, 2) + EVENT % (13, 5, 5)),
        chunk(EVENT % (14, 7, 7)),
        b"0\r\n\r\n",
    ]
)


@pytest.fixture
def listening() -> Iterator[Swarm]:
    """A swarm whose connections nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        swarm = Swarm(*listener.getsockname())
        yield swarm
        swarm.close()


def feed(hearer: Hearer, *reads: bytes) -> None:
    for read in reads:
        if read:
            hearer.take(bytearray(read + b"\n\nleft of an earlier read\n\n"), len(read))


@given(cuts=st.lists(st.integers(0, len(BODY)), max_size=6).map(sorted))
def test_no_cut_hides_an_event(cuts: list[int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        swarm = Swarm(*listener.getsockname())
        hearer = Hearer(swarm, b"GET / HTTP/1.1\r\n\r\n", opening=1, notes=True)
        feed(hearer, HEAD, *(BODY[start:end] for start, end in zip([0, *cuts], [*cuts, len(BODY)], strict=True)))
        assert hearer.open
        assert hearer.count == 5
        assert swarm.tally.opened == 1
        assert swarm.tally.delivered == 4
        assert hearer.heard is not None
        assert hearer.heard.stamps == [11, 12, 13, 14]
        assert hearer.heard.sequences == [1, 2, 5, 7]
        assert len(hearer.heard.latency) == 4
        swarm.close()


def test_an_end_in_one_read_is_an_end(listening: Swarm) -> None:
    hearer = Hearer(listening, b"GET / HTTP/1.1\r\n\r\n", opening=1)
    feed(hearer, HEAD + BODY[:100])
    assert not hearer.ended
    feed(hearer, BODY[100:])
    assert hearer.ended


def test_a_refusal_is_an_error(listening: Swarm) -> None:
    hearer = Hearer(listening, b"GET / HTTP/1.1\r\n\r\n", opening=1)
    with pytest.raises(Broken, match="400"):
        feed(hearer, b"HTTP/1.1 400 Bad Request\r\n\r\n{}")


def test_a_bare_stream_is_heard(bare: Process) -> None:
    swarm = Swarm(bare.host, bare.port)
    hearer = Hearer(swarm, wire.request("GET", "/rota/1/watch"), opening=1)
    assert swarm.until(lambda: hearer.open, 5)
    assert hearer.count == 1
    assert not hearer.ended
    swarm.close()
