"""Requests and answers on one connection: what is served, in which order, and how connections go on or end."""

from __future__ import annotations

import hashlib
import re
import socket
import time
from collections.abc import Callable

import msgspec
import pytest

from seamark import limits
from tests.http.rig import BODY_MAX, Client, Running, code, request

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
PREFIXES = pytest.mark.parametrize("prefix", ["/hot", "/cold"])


@PREFIXES
def test_a_request_is_answered_with_everything_it_said(client: Client, prefix: str) -> None:
    answer = client.get(f"{prefix}/echo/a%20b%2Fc?x=%20y", "X-Thing: one", "Authorization: me")
    assert answer.status == 200
    assert msgspec.json.decode(answer.body) == {
        "method": "GET",
        "path": f"{prefix}/echo/a b/c",
        "params": {"name": "a b/c"},
        "query": "x=%20y",
        "x": "one",
        "who": "me",
        "request_id": answer.headers["x-request-id"],
    }


@PREFIXES
def test_every_answer_carries_a_fresh_id_a_date_and_its_length(client: Client, prefix: str) -> None:
    mine = "11111111-1111-4111-8111-111111111111"
    paths = (f"{prefix}/echo/a", f"{prefix}/boom", f"{prefix}/missing", "/nowhere", f"{prefix}/nothing", "/health")
    ids = []
    for path in paths:
        answer = client.get(path, f"X-Request-ID: {mine}")
        assert UUID4.fullmatch(answer.headers["x-request-id"])
        assert answer.headers["date"].endswith(" GMT")
        assert ("content-length" in answer.headers) == (answer.status != 204)
        ids.append(answer.headers["x-request-id"])
    assert len(set(ids)) == len(paths)
    assert mine not in ids


@PREFIXES
@pytest.mark.parametrize("size", [0, 1, 20_000, BODY_MAX])
def test_bodies_arrive_whole(client: Client, prefix: str, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    answer = client.post(f"{prefix}/body", body)
    assert msgspec.json.decode(answer.body) == {"bytes": size, "sha256": hashlib.sha256(body).hexdigest()}


@PREFIXES
def test_a_connection_goes_on_after_a_large_body(client: Client, prefix: str) -> None:
    """Uvicorn stops reading at 64 KiB, and reads on when the app asks for more or has answered."""
    for _ in range(3):
        client.send(request("POST", f"{prefix}/body", f"Content-Length: {BODY_MAX}"))
        time.sleep(0.05)  # the app waits for the body, which then comes at once
        client.send(bytes(BODY_MAX))
        assert msgspec.json.decode(client.answer().body)["bytes"] == BODY_MAX
        assert client.get(f"{prefix}/echo/a").status == 200


@PREFIXES
def test_chunked_bodies_arrive_whole_and_trailers_are_no_headers(client: Client, prefix: str) -> None:
    client.send(
        request("POST", f"{prefix}/body", "Transfer-Encoding: chunked"),
        b"3;note=1\r\nabc\r\n",
        b"2\r\nde\r\n0\r\nX-Thing: evil\r\nAuthorization: bad\r\n\r\n",
    )
    assert msgspec.json.decode(client.answer().body)["sha256"] == hashlib.sha256(b"abcde").hexdigest()
    assert msgspec.json.decode(client.get(f"{prefix}/echo/a").body)["x"] == ""


@PREFIXES
def test_a_request_may_come_one_byte_at_a_time(client: Client, prefix: str) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in request("POST", f"{prefix}/body", "Content-Length: 3") + b"abc":
        client.send(bytes([byte]))
    assert msgspec.json.decode(client.answer().body)["bytes"] == 3


@PREFIXES
def test_head_has_the_headers_of_get_and_no_body(client: Client, prefix: str) -> None:
    assert client.get(f"{prefix}/big?500").headers["content-length"] == "500"
    answer = client.get(f"{prefix}/big?500", method="HEAD")
    assert (answer.status, answer.headers["content-length"]) == (200, "500")
    assert client.get(f"{prefix}/echo/next").status == 200  # nothing was left on the connection


@PREFIXES
def test_answers_come_in_the_order_of_their_requests(client: Client, prefix: str) -> None:
    """The first takes longest; those behind it must wait."""
    delays = (80, 10, 0, 40, 5)
    client.send(*(request("POST", f"{prefix}/later?{ms}", "Content-Length: 1") + b"b" for ms in delays))
    assert [client.answer().body for _ in delays] == [b"%d:b" % ms for ms in delays]


def test_hot_and_asgi_answers_keep_their_order_together(client: Client) -> None:
    sent = []
    for number, prefix in enumerate(["/hot", "/cold", "/hot", "/cold", "/cold", "/hot", "/hot"]):
        body = b"%d" % number
        ms = (30, 0, 10)[number % 3]
        sent.append(request("POST", f"{prefix}/later?{ms}", f"Content-Length: {len(body)}") + body)
    client.send(b"".join(sent))
    assert [client.answer().body.partition(b":")[2] for _ in sent] == [b"%d" % number for number in range(len(sent))]


def test_a_read_waits_for_the_write_before_it(client: Client, server: Running) -> None:
    server.routes.seen.clear()
    client.send(request("POST", "/hot/later?50", "Content-Length: 0") + request("GET", "/hot/echo/a"))
    assert client.answer().status == 201
    assert msgspec.json.decode(client.answer().body)["path"] == "/hot/echo/a"


def test_pipelined_requests_beyond_the_bound_wait_and_none_is_lost(client: Client, server: Running) -> None:
    count = 5 * limits.PIPELINE_MAX
    server.routes.seen.clear()
    client.send(request("POST", "/hot/later?40", "Content-Length: 0") * count)
    server.until(lambda: server.routes.seen)
    assert server.call(lambda: len(server.routes.seen)) <= 2 * limits.PIPELINE_MAX
    assert [client.answer().status for _ in range(count)] == [201] * count
    assert len(server.routes.seen) == count


def test_answers_that_nobody_reads_stop_further_work(client: Client, server: Running) -> None:
    """A client that asks and never reads must not fill the server's memory with answers."""
    count, size = 300, 90_000
    client.send(request("GET", f"/hot/big?{size}") * count)
    time.sleep(0.3)
    buffered = server.call(lambda: max(c.transport.get_write_buffer_size() for c in server.plane.connections))
    assert buffered < 40 * size
    assert all(len(client.answer().body) == size for _ in range(count))


@PREFIXES
def test_a_coroutine_route_answers_and_its_failure_is_a_500(client: Client, prefix: str) -> None:
    assert client.post(f"{prefix}/coroutine?5", b"hi").body == b"hi"
    answer = client.post(f"{prefix}/coroutine?5", b"boom")
    assert (answer.status, code(answer)) == (500, "internal")
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body


@PREFIXES
def test_errors_are_answered_by_the_route(client: Client, prefix: str) -> None:
    answer = client.get(f"{prefix}/missing")
    assert (answer.status, code(answer)) == (404, "stream_not_found")
    answer = client.get(f"{prefix}/boom")
    assert (answer.status, code(answer)) == (500, "internal")
    assert b"secret" not in answer.body
    answer = client.get(f"{prefix}/busy")
    assert (answer.status, code(answer), answer.headers["retry-after"]) == (429, "busy", "7")


@PREFIXES
def test_who_may_not_come_in_is_told_so_and_may_ask_again(client: Client, prefix: str) -> None:
    answer = client.post(f"{prefix}/body", b"x" * 1_000, "Authorization: bad")
    assert (answer.status, code(answer), answer.headers["www-authenticate"]) == (401, "unauthenticated", "Bearer")
    answer = client.get(f"{prefix}/echo/a", "Authorization: poor")
    assert (answer.status, code(answer)) == (403, "forbidden")
    assert client.get(f"{prefix}/echo/a").status == 200


@PREFIXES
def test_wrong_paths_and_methods(client: Client, prefix: str) -> None:
    answer = client.get("/nowhere")
    assert (answer.status, code(answer)) == (404, "route_not_found")
    assert client.get(f"{prefix}/echo/a/").status == 404
    assert client.get(f"{prefix}/echo/a%zz").status == 400
    assert client.get(f"{prefix}/echo/a%ff").status == 400
    answer = client.get(f"{prefix}/echo/a", "Content-Length: 0", method="DELETE")
    assert (answer.status, code(answer)) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    answer = client.get(f"{prefix}/body", method="OPTIONS")
    assert (answer.status, answer.headers["allow"]) == (204, "POST, OPTIONS")


@PREFIXES
def test_connection_close_is_honoured(client: Client, prefix: str) -> None:
    answer = client.get(f"{prefix}/echo/a", "Connection: close")
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert client.ended()


@PREFIXES
def test_what_comes_after_connection_close_is_not_served(client: Client, server: Running, prefix: str) -> None:
    server.routes.seen.clear()
    first = request("POST", f"{prefix}/later?1", "Content-Length: 0", "Connection: close")
    client.send(first + request("POST", f"{prefix}/later?2", "Content-Length: 0"))
    assert client.answer().status == 201
    assert client.ended()
    assert server.routes.seen == ["1"]


def test_http_1_0_closes_unless_asked_not_to(server: Running) -> None:
    with server.client() as client:
        client.send(b"GET /hot/echo/a HTTP/1.0\r\n\r\n")
        assert client.answer().headers["connection"] == "close"
        assert client.ended()
    with server.client() as client:
        for _ in range(2):
            client.send(b"GET /hot/echo/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert client.answer().headers["connection"] == "keep-alive"


def test_a_client_that_stops_speaking_still_gets_its_answers(client: Client) -> None:
    client.send(request("POST", "/hot/later?50", "Content-Length: 1") + b"x")
    client.socket.shutdown(socket.SHUT_WR)
    assert client.answer().body == b"50:x"
    assert client.ended()


@PREFIXES
def test_a_client_that_leaves_early_disturbs_nobody(server: Running, prefix: str) -> None:
    server.routes.finished.clear()
    with server.client() as client:
        client.send(request("POST", f"{prefix}/coroutine?30", "Content-Length: 1") + b"x")
        time.sleep(0.01)
    if prefix == "/hot":
        server.until(lambda: server.routes.finished)  # what was begun is finished
    with server.client() as client:
        assert client.get(f"{prefix}/echo/a").status == 200


@PREFIXES
def test_100_continue_comes_before_the_body_is_sent(client: Client, prefix: str) -> None:
    client.send(request("POST", f"{prefix}/body", "Expect: 100-Continue", "Content-Length: 3"))
    assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
    client.send(b"abc")
    assert msgspec.json.decode(client.answer().body)["bytes"] == 3


def test_100_continue_keeps_its_place_behind_earlier_answers(client: Client) -> None:
    client.send(
        request("POST", "/hot/later?50", "Content-Length: 0")
        + request("POST", "/hot/body", "Expect: 100-continue", "Content-Length: 3")
    )
    assert client.answer().status == 201
    assert client.answer().status == 100
    client.send(b"abc")
    assert msgspec.json.decode(client.answer().body)["bytes"] == 3


def test_a_final_answer_instead_of_100_continue(client: Client) -> None:
    client.send(request("POST", "/hot/body", "Expect: 100-continue", "Content-Length: 3", "Authorization: bad"))
    assert client.answer().status == 401
    assert client.ended()


def test_options_for_the_server_as_a_whole(client: Client) -> None:
    answer = client.get("*", method="OPTIONS")
    assert answer.status == 204


@PREFIXES
def test_upgrades_are_ignored_or_refused(server: Running, prefix: str) -> None:
    with server.client() as client:
        answer = client.get(f"{prefix}/echo/a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA==")
        assert answer.status == 200
        assert client.ended()
    with server.client() as client:
        answer = client.post(f"{prefix}/body", b"abc", "Connection: Upgrade", "Upgrade: h2c")
        assert (answer.status, code(answer)) == (400, "upgrade_with_body")


def test_requests_are_counted_by_route_method_and_status(start: Callable[..., Running]) -> None:
    server = start()
    with server.client() as client:
        for path in ("/hot/echo/a", "/hot/echo/b", "/cold/echo/a", "/hot/missing", "/nowhere", "/else"):
            client.get(path)
        text = client.get("/metrics").body.decode()
    assert 'seamark_http_requests_total{method="GET",route="/hot/echo/{name}",status="200"} 2.0' in text
    assert 'seamark_http_requests_total{method="GET",route="/cold/echo/{name}",status="200"} 1.0' in text
    assert 'seamark_http_requests_total{method="GET",route="/hot/missing",status="404"} 1.0' in text
    assert 'seamark_http_requests_total{method="GET",route="(none)",status="404"} 2.0' in text
    assert "seamark_http_connections 1.0" in text
