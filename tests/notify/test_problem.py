"""The shapes of errors, to the byte."""

from __future__ import annotations

import json

import pytest

from seamark.errors import (
    BadField,
    BadFilter,
    BodyTooLarge,
    Busy,
    Fault,
    Forbidden,
    MethodNotAllowed,
    NotJson,
    RecordTooLarge,
    RouteNotFound,
    SeamarkError,
    ShuttingDown,
    StreamFull,
    StreamNotFound,
    Unauthenticated,
    UnknownEventType,
    UnknownField,
    WriteFailed,
    WrongShape,
)
from seamark.notify.problem import Endpoint, admin_body, admin_problem, request_problem

N, W, R = Endpoint.NOTIFICATION, Endpoint.WATCH, Endpoint.REPLAY


def test_shape_a() -> None:
    error = BadField("outer", field="x", details="inner")
    assert request_problem(N, error, "id") == (
        400,
        b'{"code":"INVALID_NOTIFICATION_REQUEST","details":"inner","error":"Invalid Notification Request","message":"outer",'
        b'"request_id":"id"}',
        (),
    )


@pytest.mark.parametrize(
    ("endpoint", "error", "code", "label"),
    [
        (N, NotJson("m"), "INVALID_JSON", "Invalid Notification Request"),
        (W, UnknownField("m", field="x"), "UNKNOWN_FIELD", "Invalid Watch Request"),
        (R, WrongShape("m"), "INVALID_REQUEST_SHAPE", "Invalid Replay Request"),
        (W, BadField("m"), "INVALID_WATCH_REQUEST", "Invalid Watch Request"),
        (R, BadFilter("m"), "INVALID_REPLAY_REQUEST", "Invalid Replay Request"),
        (N, RecordTooLarge("m"), "INVALID_NOTIFICATION_REQUEST", "Invalid Notification Request"),
    ],
)
def test_whose_fault_it_is(endpoint: Endpoint, error: SeamarkError, code: str, label: str) -> None:
    status, body, headers = request_problem(endpoint, error, "id")
    assert (status, headers) == (400, ())
    assert json.loads(body) == {"code": code, "details": "m", "error": label, "message": "m", "request_id": "id"}


@pytest.mark.parametrize("error", [Fault("m"), WriteFailed("m"), StreamFull("m")])
def test_what_could_not_be_stored(error: SeamarkError) -> None:
    status, body, _ = request_problem(N, error, "id")
    assert status == 500
    assert json.loads(body)["code"] == "NOTIFICATION_STORAGE_FAILED"
    assert json.loads(body)["error"] == "Notification Storage Failed"


def test_shape_b() -> None:
    assert request_problem(W, Fault("m", topic="polygon.*"), "id") == (
        500,
        b'{"code":"SSE_STREAM_INITIALIZATION_FAILED","details":"m","error":"SSE stream creation failed","message":"m",'
        b'"request_id":"id","topic":"polygon.*"}',
        (),
    )


def test_shape_c() -> None:
    error = Unauthenticated("Authentication is required for this stream", schemes=("Bearer", "Basic"))
    status, body, headers = request_problem(W, error, "id")
    assert status == 401
    assert body == (
        b'{"code":"UNAUTHORIZED","error":"unauthorized","message":"Authentication is required for this stream","request_id":"id"}'
    )
    assert headers == [(b"WWW-Authenticate", b"Bearer"), (b"WWW-Authenticate", b"Basic")]
    status, body, headers = request_problem(N, Forbidden("no"), "id")
    assert (status, headers) == (403, ())
    assert body == b'{"code":"FORBIDDEN","error":"forbidden","message":"no","request_id":"id"}'
    for refusal in (ShuttingDown("m"), Busy("m", retry_after_seconds=5)):
        status, body, headers = request_problem(R, refusal, "id")
        assert status == 503
        assert body == b'{"code":"SERVICE_UNAVAILABLE","error":"service_unavailable","message":"m","request_id":"id"}'
        assert headers == [(b"Retry-After", b"%d" % refusal.fields.get("retry_after_seconds", 1))]


def test_what_nobody_expected_says_nothing_about_itself() -> None:
    for answer in (request_problem(N, ValueError("secret"), "id"), admin_problem(ValueError("secret"), "id")):
        assert answer[0] == 500
        assert b"secret" not in answer[1]
    assert json.loads(request_problem(W, ValueError("x"), "id")[1])["code"] == "INTERNAL_ERROR"


def test_shape_d() -> None:
    error = UnknownEventType("unknown event type 'X'", event_type="X", configured=["mars", "diss"])
    assert request_problem(N, error, "id") == (
        400,
        b'{"code":"UNKNOWN_EVENT_TYPE","configured_event_types":["diss","mars"],"error":"unknown_event_type",'
        b'"message":"unknown event type \'X\'","request_id":"id"}',
        (),
    )


def test_shape_e() -> None:
    assert admin_problem(StreamNotFound("Notification not found"), "id") == (
        404,
        b'{"success":false,"message":"Notification not found","request_id":"id"}',
        (),
    )
    assert admin_body(True, "Notification deleted", "id", notification_id="mars@42") == (
        b'{"success":true,"message":"Notification deleted","notification_id":"mars@42","request_id":"id"}'
    )
    for error, status in ((BadField("m"), 400), (WriteFailed("m"), 503), (Fault("m"), 500), (StreamFull("m"), 500)):
        assert admin_problem(error, "id")[0] == status
    assert json.loads(admin_problem(Unauthenticated("m"), "id")[1])["code"] == "UNAUTHORIZED"


@pytest.mark.parametrize(
    ("error", "status"), [(BodyTooLarge("too large"), 413), (RouteNotFound("x"), 404), (MethodNotAllowed("x"), 405)]
)
def test_shape_g(error: SeamarkError, status: int) -> None:
    for answer in (request_problem(N, error, "id"), admin_problem(error, "id")):
        assert answer[0] == status
        assert not answer[1].startswith(b"{")
        assert answer[2] == ((b"Content-Type", b"text/plain; charset=utf-8"),)
    assert request_problem(N, RouteNotFound("x"), "id")[1] == b""
    assert admin_problem(NotJson("x"), "id")[:2] == (400, b"x")
