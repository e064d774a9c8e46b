"""Every kind of error in the words of this surface."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seamark import errors
from seamark.errors import SeamarkError
from seamark.topics.problem import topics_problem

FULL = {"stream": "topics:a", "cap_records": 3, "cap_bytes": 0, "head": 9, "earliest": 7}
CASES: list[tuple[Exception, int, str, dict[str, Any] | None]] = [
    (errors.BadInput("x"), 400, "invalid_request", None),
    (errors.BadFilter("x", field="match"), 400, "invalid_request", None),
    (errors.BadRequest("x"), 400, "invalid_request", None),
    (errors.RecordTooLarge("x", bytes=5, max=4), 400, "record_too_large", {"bytes": 5, "max": 4}),
    (errors.BatchTooLarge("x", seqs=5, max=4), 400, "batch_too_large", {"seqs": 5, "max": 4}),
    (errors.BatchTooLarge("x", records=5, max=4), 400, "batch_too_large", {"records": 5, "max": 4}),
    (errors.BodyTooLarge("x", max=4), 413, "payload_too_large", {"max": 4}),
    (errors.UnsupportedMedia("x"), 415, "unsupported_media_type", None),
    (errors.NotAcceptable("x", media="text/event-stream"), 406, "not_acceptable", None),
    (errors.Unauthenticated("x"), 401, "unauthorized", None),
    (errors.Forbidden("x", action="read", resource="a"), 403, "forbidden", None),
    (errors.Forbidden("x", topic="a"), 403, "forbidden", {"topic": "a"}),
    (errors.StreamNotFound("no stream topics:a", stream="topics:a"), 404, "topic_not_found", {"topic": "a"}),
    (errors.RouterNotFound("x", router="r"), 404, "router_not_found", {"router": "r"}),
    (errors.SessionNotFound("x"), 404, "not_found", None),
    (errors.RouteNotFound("x"), 404, "not_found", None),
    (errors.MethodNotAllowed("x", allow=("GET",)), 405, "method_not_allowed", None),
    (
        errors.TopicIncompatible("x", topic="a", existing_type="log", requested_type="queue"),
        409,
        "topic_exists_incompatible",
        {"topic": "a", "existing_type": "log", "requested_type": "queue"},
    ),
    (
        errors.TopicIncompatible("x", topic="a", reason="router_dest_fan_in"),
        409,
        "topic_exists_incompatible",
        {"topic": "a", "reason": "router_dest_fan_in"},
    ),
    (errors.NotEmpty("x", stream="topics:a", count=2), 409, "topic_not_empty", {"topic": "a", "count": 2}),
    (errors.NotAQueue("x", stream="topics:a"), 409, "not_a_queue", {"topic": "a"}),
    (errors.RouterCycle("x", cycle=["a", "b", "a"]), 409, "router_cycle", {"cycle": ["a", "b", "a"]}),
    (
        errors.StreamFull("x", **FULL),
        422,
        "topic_full",
        {"topic": "a", "cap_records": 3, "cap_bytes": 0, "head_seq": 9, "earliest_seq": 7},
    ),
    (errors.QuotaExceeded("x", limit="quota_bytes", max=9), 429, "throttled", {"limit": "max_total_bytes", "max": 9}),
    (errors.QuotaExceeded("x", limit="STREAMS_MAX", max=9), 429, "throttled", {"limit": "max_topics", "max": 9}),
    (errors.Busy("x", limit="max_routers", max=9), 429, "throttled", {"limit": "max_routers", "max": 9}),
    (errors.NotReady("x", replay_progress=0.5), 503, "not_ready", {"replay_progress": 0.5}),
    (errors.ShuttingDown("x"), 503, "shutting_down", None),
    (errors.WriteFailed("disk says /secret", cause="/secret"), 500, "internal", None),
    (errors.Corrupt("x", stream="topics:a", seq=1), 500, "internal", None),
    (ValueError("secret"), 500, "internal", None),
]


@pytest.mark.parametrize(("error", "status", "code", "detail"), CASES, ids=lambda case: type(case).__name__)
def test_the_table(error: Exception, status: int, code: str, detail: dict[str, Any] | None) -> None:
    given, body, headers = topics_problem(error, "id")
    whole = json.loads(body)
    assert set(whole) == {"error"}
    assert (given, whole["error"]["code"], whole["error"].get("detail")) == (status, code, detail)
    assert set(whole["error"]) <= {"code", "message", "detail"}
    assert ("Retry-After" in {name.decode() for name, _ in headers}) == (status in {429, 503})
    assert "secret" not in body.decode()


def kinds(kind: type[SeamarkError]) -> list[type[SeamarkError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in kinds(child))]


def test_every_kind_has_a_word_and_is_said_in_full() -> None:
    for kind in kinds(SeamarkError):
        status, body, _ = topics_problem(kind("x"), "id")
        assert 400 <= status < 600
        assert set(json.loads(body)["error"]) == {"code", "message"}


def test_a_topic_goes_by_its_own_name_whatever_the_log_calls_it() -> None:
    error = errors.StreamNotFound("there is no stream topics:topics:a", stream="topics:topics:a")
    message = json.loads(topics_problem(error, "id")[1])["error"]["message"]
    assert message == "there is no topic topics:a"


def test_when_to_come_back_is_a_whole_number_of_seconds() -> None:
    for fields, seconds in (({}, b"1"), ({"retry_after_seconds": 7}, b"7"), ({"retry_after_seconds": 0}, b"1")):
        assert topics_problem(errors.Busy("x", **fields), "id")[2] == [(b"Retry-After", seconds)]
