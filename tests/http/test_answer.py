from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import ManualClock
from seamark.http import answer
from seamark.http.answer import HttpDate

MARKS = b"X-Request-ID: r\r\nDate: d\r\n"


def parsed(data: bytes, method: str = "GET") -> tuple[h11.Response, bytes]:
    """An independent parser's opinion."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    response = connection.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data
    return response, body


@given(st.integers(200, 599), st.binary(max_size=300))
def test_whole_answers_parse(status: int, body: bytes) -> None:
    data = answer.whole(status, body, media=b"text/plain", marks=MARKS, extra=b"X-A: b\r\n")
    response, received = parsed(data)
    assert response.status_code == status
    headers = dict(response.headers)
    assert headers[b"x-a"] == b"b"
    if status in answer.BODILESS:
        assert received == b""
        assert b"content-length" not in headers
    else:
        assert received == body
        assert headers[b"content-type"] == b"text/plain"


def test_head_answers_tell_the_length_without_the_body() -> None:
    data = answer.whole(200, b"12345", media=b"", marks=MARKS, head_only=True)
    response, body = parsed(data, "HEAD")
    assert (dict(response.headers)[b"content-length"], body) == (b"5", b"")
    assert b"content-type" not in dict(response.headers)


def test_a_header_cannot_split_the_answer() -> None:
    for name, value in ((b"X", b"a\r\nB: c"), (b"X", b"a\nb"), (b"X\r\nY", b"a")):
        with pytest.raises(ValueError, match="line break"):
            answer.header_lines([(name, value)])


def test_the_date_is_made_once_a_second() -> None:
    clock = ManualClock(now_ns=0)
    date = HttpDate(clock)
    first = date()
    assert first == b"Thu, 01 Jan 1970 00:00:00 GMT"
    clock.advance(0.9)
    assert date() is first
    clock.advance(0.1)
    assert date() == b"Thu, 01 Jan 1970 00:00:01 GMT"
