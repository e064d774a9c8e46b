from __future__ import annotations

import json

from seamark.errors import Busy, StreamNotFound, WriteFailed
from seamark.wire.problem import plain_problem


def test_fields_become_detail() -> None:
    status, body, headers = plain_problem(StreamNotFound("no stream 'a'", stream="a"), "id-1")
    assert status == 404
    assert json.loads(body) == {
        "error": {"code": "stream_not_found", "message": "no stream 'a'", "detail": {"stream": "a"}},
        "request_id": "id-1",
    }
    assert headers == []


def test_refusals_say_when_to_come_back() -> None:
    assert plain_problem(Busy("full", retry_after_seconds=7), "x")[2] == [(b"Retry-After", b"7")]
    assert plain_problem(WriteFailed("disk full"), "x")[2] == [(b"Retry-After", b"1")]


def test_strangers_say_nothing_about_themselves() -> None:
    status, body, _ = plain_problem(KeyError("secret"), "id-2")
    assert status == 500
    assert b"secret" not in body
    assert json.loads(body)["error"]["code"] == "internal"
