"""The compiled read loop finds what the Python one finds."""

from __future__ import annotations

import select
import socket

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from seamark.bench import drain, wire
from seamark.bench.drain import Drain

fragments = st.lists(
    st.one_of(
        st.sampled_from(
            [
                b"id: ",
                b'"seq":',
                b'"$seq":',
                b'"to_seq":',
                b'"$seq":5,"$ts"',
                b"12@",
                b"7,",
                b"\n",
                b": hb\n\n",
                b"id: 3",
                b'"seq":99',
            ]
        ),
        st.builds(wire.event, st.integers(1, 10**9), st.just(1), st.just(wire.payload())),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.skipif(drain.library() is None, reason="no C compiler here")
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@example(parts=[b"id: ", b"id: ", b"12@"], cut=0)
@given(parts=fragments, cut=st.integers(0, 60))
def test_both_read_loops_agree(parts: list[bytes], cut: int) -> None:
    text = b"".join(parts)[cut:] or b"x"
    compiled = drain.library()
    assert compiled is not None
    ours, theirs = socket.socketpair()
    with select.epoll() as epoll, ours, theirs:
        epoll.register(theirs.fileno(), select.EPOLLIN)
        loop = Drain(compiled, epoll.fileno(), 65_536, bytearray(1 << 16))
        loop.adopt(theirs.fileno(), 0)
        ours.sendall(text)
        assert loop.turn(1.0) == []
        taken = loop.take()
        assert taken.bytes == len(text)
        assert taken.delivered == (wire.last_seq(bytearray(text), len(text)) or 0)
        assert taken.closed == 0
        assert list(taken.latencies) == []


@pytest.mark.skipif(drain.library() is None, reason="no C compiler here")
def test_connections_that_are_not_adopted_are_handed_back_and_closed_ones_told() -> None:
    compiled = drain.library()
    assert compiled is not None
    ours, theirs = socket.socketpair()
    with select.epoll() as epoll, theirs:
        epoll.register(theirs.fileno(), select.EPOLLIN)
        loop = Drain(compiled, epoll.fileno(), 65_536, bytearray(1 << 16))
        ours.sendall(b"x")
        assert loop.turn(1.0) == [(theirs.fileno(), select.EPOLLIN)]
        loop.adopt(theirs.fileno(), 0)
        ours.close()
        loop.turn(1.0)
        loop.turn(1.0)
        assert loop.take().closed == 1


@pytest.mark.skipif(drain.library() is None, reason="no C compiler here")
@pytest.mark.parametrize("frames", [wire.event(1, 1, wire.payload(0)) + wire.event(2, 1, wire.payload(1)), b""])
def test_latency_is_taken_from_the_newest_event_when_asked(frames: bytes) -> None:
    compiled = drain.library()
    assert compiled is not None
    ours, theirs = socket.socketpair()
    of_topics = (
        b'event: record\ndata: {"topic":"t","records":[{"$seq":2,"$ts":1,"data":%b}],"to_seq":2,"head_seq":2}\n\n'
    )
    with select.epoll() as epoll, ours, theirs:
        epoll.register(theirs.fileno(), select.EPOLLIN)
        loop = Drain(compiled, epoll.fileno(), 65_536, bytearray(1 << 16))
        loop.timing = True
        loop.adopt(theirs.fileno(), 0)
        ours.sendall(frames or of_topics % wire.payload(1))
        loop.turn(1.0)
        (took,) = loop.take().latencies
        assert took > 0
