from __future__ import annotations

import structlog

from seamark.errors import Missing, StreamNotFound
from seamark.http.access_log import AccessLog
from seamark.http.front import Front
from seamark.http.realm import Realm
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange, Headers, Route
from seamark.wire.problem import plain_problem
from tests.http.rig import authenticate


def nothing(exchange: Exchange) -> None:
    exchange.respond(204, b"")


def own(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    return 418, b"mine", ()


def broken(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    raise RuntimeError("the envelope itself is broken")


ROUTES = [
    Route("GET", "/own/a", nothing, "", "", own, 10),
    Route("GET", "/broken", nothing, "", "", broken, 10),
    Route("GET", "/vast", nothing, "", "", own, 10**12),
]


def front(**options: object) -> Front:
    return Front(ROUTES, authenticate=authenticate, metrics=Metrics(), **options)  # type: ignore[arg-type]


def test_the_route_words_its_errors() -> None:
    assert front().problem(ROUTES[0], StreamNotFound("x"), "r") == (418, b"mine", ())


def test_an_envelope_that_breaks_is_logged_and_replaced() -> None:
    with structlog.testing.capture_logs() as lines:
        status, body, _ = front().problem(ROUTES[1], StreamNotFound("gone"), "r")
    assert (status, b"stream_not_found" in body) == (404, True)
    assert [line["event"] for line in lines] == ["http.request_failed"]


def test_a_surprise_is_logged_with_its_id_and_only_there() -> None:
    with structlog.testing.capture_logs() as lines:
        status, body, _ = front().stray_problem("/nowhere", ValueError("secret"), "r-1")
        front().problem(ROUTES[0], ValueError("secret"), "r-2")
    assert (status, b"secret" in body) == (500, False)
    assert [line["request_id"] for line in lines] == ["r-2"]


def test_unknown_paths_are_worded_by_their_owner() -> None:
    prefixed = front(realms=[Realm("/v0", own), Realm("/v0/deep", plain_problem)])
    missing = Missing("nothing here")
    assert prefixed.stray_problem("/own/a", missing, "r")[0] == 418
    assert prefixed.stray_problem("/v0/x", missing, "r")[0] == 418
    assert prefixed.stray_problem("/v0/deep/x", missing, "r")[0] == 404
    assert prefixed.stray_problem("/else", missing, "r")[0] == 404
    assert prefixed.stray_problem("/v0else", missing, "r")[0] == 404


def test_what_the_server_refuses_by_itself_is_worded_by_the_owner_of_the_path() -> None:
    def text(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
        return 400, b"no", ((b"Content-Type", b"text/plain"),)

    one = front(realms=[Realm("/v0", text)])
    assert one.refused("/v0/x", 400, "malformed_request", "no HTTP", "r") == (
        b"no",
        ((b"Content-Type", b"text/plain"),),
    )
    body, headers = one.refused("/else", 400, "malformed_request", "no HTTP", "r")
    assert (body, headers) == (b'{"error":{"code":"malformed_request","message":"no HTTP"},"request_id":"r"}', ())


def test_no_body_bound_is_beyond_the_server_s() -> None:
    assert front().body_bytes_max(ROUTES[0]) == 10
    assert front().body_bytes_max(ROUTES[2]) < 10**12
    assert front().body_bytes_max(None) > 0


def test_methods_that_nobody_serves_share_one_label() -> None:
    one = front()
    for method in ("PROPFIND", "SEARCH"):
        one.answered(one.tally("(none)"), method, 404, 0.1, request_id="r", path="/")
    assert b'method="other",route="(none)",status="404"} 2.0' in one.metrics.text()


def test_the_access_log_is_asked_when_there_is_one() -> None:
    one = front(access_log=AccessLog())
    with structlog.testing.capture_logs() as lines:
        one.answered(one.tally("/own/a"), "GET", 200, 0.1, request_id="r", path="/own/a")
    assert [(line["path"], line["status"]) for line in lines] == [("/own/a", 200)]
