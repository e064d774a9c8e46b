"""A stream goes by the client's name for it, whatever the log calls it."""

from __future__ import annotations

import json

from seamark.errors import HeadConflict, StreamNotFound
from seamark.raw.problem import raw_problem
from seamark.wire.problem import plain_problem


def test_the_log_s_name_is_translated() -> None:
    status, body, _ = raw_problem(HeadConflict("raw:raw:a is at 3", stream="raw:raw:a", expected=2, head=3), "id")
    error = json.loads(body)["error"]
    assert (status, error["code"], error["message"]) == (409, "head_conflict", "raw:a is at 3")
    assert error["detail"] == {"stream": "raw:a", "expected": 2, "head": 3}


def test_everything_else_is_plain() -> None:
    for error in (ValueError("raw:a"), StreamNotFound("there is no stream x", stream="x"), StreamNotFound("raw:a")):
        assert raw_problem(error, "id") == plain_problem(error, "id")
