"""What bodies that are still arriving may hold, over all connections of a plane."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from seamark import limits
from seamark.http.plane import Patience
from tests.http.rig import BODY_MAX, Client, Running, code, request

PART = limits.PARSE_SLICE_BYTES
assert 4 * PART < BODY_MAX


@pytest.fixture
def crowded(start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> Running:
    """A server with room for six parts."""
    monkeypatch.setattr(limits, "BODIES_BYTES_MAX", 6 * PART)
    return start()


def begin(server: Running, client: Client, parts: int) -> None:
    """Send all but the last part of a body, and wait until the server has it."""
    before = server.plane.body_bytes
    client.send(request("POST", "/hot/body", f"Content-Length: {parts * PART}"), b"x" * ((parts - 1) * PART))
    server.until(lambda: server.plane.body_bytes == before + (parts - 1) * PART)


def test_bodies_beyond_the_room_for_all_are_told_to_come_later(crowded: Running) -> None:
    with crowded.client() as first, crowded.client() as second, crowded.client() as small:
        begin(crowded, first, 4)
        second.send(request("POST", "/hot/body", f"Content-Length: {4 * PART}"), b"x" * (4 * PART))
        answer = second.answer()
        assert (answer.status, code(answer)) == (429, "busy")
        assert answer.headers["retry-after"] == "1"
        assert second.ended()
        assert small.post("/hot/body", b"x" * 100).status == 200
        first.send(b"x" * PART)
        assert first.answer().status == 200
        assert crowded.call(lambda: crowded.plane.body_bytes) == 0


def test_room_is_given_back_however_a_body_ends(crowded: Running) -> None:
    with crowded.client() as gone:
        begin(crowded, gone, 4)
    crowded.until(lambda: crowded.plane.body_bytes == 0)
    with crowded.client() as endless:
        endless.send(request("POST", "/hot/body", "Transfer-Encoding: chunked"))
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 10:
                endless.send(b"%x\r\n%b\r\n" % (PART, b"x" * PART))
        except OSError:
            pass
    crowded.until(lambda: crowded.plane.body_bytes == 0 and crowded.plane.open == 0)
    with crowded.client() as last:
        assert last.post("/hot/body", b"x" * (4 * PART)).status == 200


def test_a_body_that_is_given_up_for_its_slowness_gives_its_room_back(start: Callable[..., Running]) -> None:
    server = start(patience=Patience(body_grace_seconds=0.3, body_bytes_per_second=1e9, round_seconds=0.05))
    with server.client() as slow:
        begin(server, slow, 4)
        assert code(slow.answer()) == "body_too_slow"
        server.until(lambda: server.plane.body_bytes == 0)
