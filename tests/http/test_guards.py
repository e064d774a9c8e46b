"""What is refused before a route sees it, over raw sockets: a clear 4xx or 5xx, then the end of the connection."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seamark import limits
from seamark.http.guards import Guarded, Refused, origin_form
from seamark.http.plane import Patience
from tests.http.rig import BODY_MAX, Client, Running, code, request

pytestmark = pytest.mark.slow  # servers, and patience that has to end

BAD = {
    "no host": (b"GET /hot/echo/a HTTP/1.1\r\n\r\n", 400, "host_required"),
    "two hosts": (b"GET /hot/echo/a HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "host_required"),
    "two hosts in 1.0": (b"GET /hot/echo/a HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, "host_required"),
    "host with a path": (b"GET /hot/echo/a HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "host_invalid"),
    "host list": (b"GET /hot/echo/a HTTP/1.1\r\nHost: a, b\r\n\r\n", 400, "host_invalid"),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed_request"),
    "text": (b"hello there\r\n\r\n", 400, "malformed_request"),
    "unknown method": (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_request"),
    "lower-case method": (b"get / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_request"),
    "bare lf": (b"GET /hot/echo/a HTTP/1.1\nHost: a\n\n", 400, "malformed_request"),
    "bare lf in headers": (b"GET /hot/echo/a HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "malformed_request"),
    "bare lf without version (llhttp 877)": (b"GET /hot/echo/a\nHost: a\r\n\r\n", 505, "version_unknown"),
    "bare lf without version or headers": (b"GET /hot/echo/a\n\n", 400, "malformed_request"),
    "bare cr": (b"GET /hot/echo/a HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400, "malformed_request"),
    "no version": (b"GET /hot/echo/a\r\n\r\n", 505, "version_unknown"),
    "http/2.0": (b"GET /hot/echo/a HTTP/2.0\r\nHost: a\r\n\r\n", 505, "version_unknown"),
    "http/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "malformed_request"),
    "folded header": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, "malformed_request"),
    "folded empty header": (b"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n b\r\n\r\n", 400, "malformed_request"),
    "space before colon": (b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", 400, "malformed_request"),
    "nul in a value": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 400, "malformed_request"),
    "nul in a name": (b"GET / HTTP/1.1\r\nHost: a\r\nX\x00: a\r\n\r\n", 400, "malformed_request"),
    "nul in the target": (b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_request"),
    "space in the target": (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_request"),
    "raw utf-8 target": ("GET /é HTTP/1.1\r\nHost: a\r\n\r\n".encode(), 400, "malformed_request"),
    "relative target": (b"GET hot/echo/a HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_request"),
    "fragment": (b"GET /hot/echo/a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target_invalid"),
    "other scheme": (b"GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target_invalid"),
    "asterisk get": (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "target_invalid"),
    "connect": (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501, "not_a_proxy"),
    "length and chunked": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "malformed_request",
    ),
    "chunked and length": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        400,
        "malformed_request",
    ),
    "two lengths": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        400,
        "malformed_request",
    ),
    "length list": (b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", 400, "malformed_request"),
    "signed length": (b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400, "malformed_request"),
    "huge length": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % 10**30,
        400,
        "malformed_request",
    ),
    "other coding": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        501,
        "transfer_coding_unknown",
    ),
    "two codings": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
        "transfer_coding_unknown",
    ),
    "chunked twice": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "malformed_request",
    ),
    "chunked in 1.0": (
        b"POST /hot/body HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "framing_invalid",
    ),
    "bad chunk size": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n",
        400,
        "malformed_request",
    ),
    "bare lf after a chunk size": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        400,
        "malformed_request",
    ),
    "unknown expectation": (
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\nContent-Length: 3\r\n\r\nabc",
        417,
        "expectation_unknown",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_requests_get_a_clear_answer_and_the_end(client: Client, case: str) -> None:
    data, status, expected = BAD[case]
    client.send(data)
    answer = client.answer()
    assert (answer.status, code(answer)) == (status, expected)
    assert answer.headers["connection"] == "close"
    assert client.ended()


def test_a_refusal_waits_for_the_answers_before_it(client: Client) -> None:
    client.send(request("POST", "/hot/later?40", "Content-Length: 0") + b"garbage\r\n\r\n")
    assert client.answer().status == 201
    assert client.answer().status == 400
    assert client.ended()


@pytest.mark.parametrize("prefix", ["/hot", "/cold"])
def test_nothing_after_a_refusal_is_served(client: Client, server: Running, prefix: str) -> None:
    server.routes.seen.clear()
    smuggled = request("POST", f"{prefix}/later?0", "Content-Length: 0")
    client.send(b"POST /hot/body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled)
    assert client.answer().status == 501
    assert client.ended()
    assert server.routes.seen == []


def test_absolute_targets_are_served(client: Client) -> None:
    assert client.get("http://example.org:80/hot/echo/a?q").status == 200
    assert client.get("http://example.org/cold/echo/a").status == 200
    assert client.get("http://example.org?q").status == 404


def test_long_targets_are_refused_while_they_arrive(server: Running) -> None:
    for ended in (b" HTTP/1.1\r\nHost: a\r\n\r\n", b""):
        with server.client() as client:
            client.send(b"GET /hot/echo/" + b"a" * (limits.TARGET_BYTES_MAX + 50_000) + ended)
            answer = client.answer()
            assert (answer.status, code(answer)) == (414, "target_too_long")
            assert client.ended()


def test_large_heads_are_refused_while_they_arrive(server: Running) -> None:
    lines = [f"X-{number}: a" for number in range(limits.HEADER_COUNT_MAX + 1)]
    one = "X-Long: " + "a" * limits.HEADER_BYTES_MAX
    unfinished = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200_000
    for data in (request("GET", "/", *lines), request("GET", "/", one), unfinished):
        with server.client() as client:
            client.send(data)
            answer = client.answer()
            assert (answer.status, code(answer)) == (431, "headers_too_large")
            assert client.ended()


def test_heads_within_their_bounds_are_served(client: Client) -> None:
    lines = [f"X-{number}: {'a' * 200}" for number in range(limits.HEADER_COUNT_MAX - 1)]
    assert client.get("/hot/echo/a", *lines).status == 200
    assert client.get("/cold/echo/a", *lines).status == 200
    assert client.get("/hot/echo/a?" + "q" * (limits.TARGET_BYTES_MAX - 100)).status == 200


def test_too_many_trailers_are_refused(client: Client) -> None:
    client.send(request("POST", "/hot/body", "Transfer-Encoding: chunked"), b"1\r\na\r\n0\r\n")
    client.send(b"".join(b"X-%d: a\r\n" % number for number in range(limits.HEADER_COUNT_MAX + 1)), b"\r\n")
    assert client.answer().status == 431


def test_endless_chunk_extensions_are_refused(client: Client) -> None:
    client.send(request("POST", "/hot/body", "Transfer-Encoding: chunked"), b"1;" + b"x" * 200_000)
    assert client.answer().status == 400
    assert client.ended()


@pytest.mark.parametrize("prefix", ["/hot", "/cold"])
def test_a_declared_body_beyond_its_bound_is_refused_at_once(client: Client, prefix: str) -> None:
    client.send(request("POST", f"{prefix}/body", f"Content-Length: {BODY_MAX + 1}"))
    answer = client.answer()
    assert (answer.status, code(answer)) == (413, "body_too_large")
    assert client.ended()


@pytest.mark.parametrize("prefix", ["/hot", "/cold"])
def test_the_client_reads_the_refusal_although_it_is_still_sending(client: Client, prefix: str) -> None:
    body = b"x" * (2 * limits.MIB)
    client.send(request("POST", f"{prefix}/body", f"Content-Length: {len(body)}"), body)
    assert client.answer().status == 413


@pytest.mark.parametrize("prefix", ["/hot", "/cold"])
def test_a_chunked_body_is_refused_when_it_passes_its_bound(client: Client, prefix: str) -> None:
    client.send(request("POST", f"{prefix}/body", "Transfer-Encoding: chunked"))
    part = b"%x\r\n%b\r\n" % (10_000, b"x" * 10_000)
    for _ in range(BODY_MAX // 10_000 + 1):
        client.send(part)
    answer = client.answer()
    assert (answer.status, code(answer)) == (413, "body_too_large")
    assert client.ended()


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/cold/echo/a", 405)])
def test_a_large_body_for_no_route_is_not_read(client: Client, path: str, status: int) -> None:
    client.send(request("POST", path, f"Content-Length: {limits.BODY_BYTES_UNROUTED_MAX + 1}"))
    answer = client.answer()
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert client.ended()


# -- time
IMPATIENT = Patience(
    keep_alive_seconds=0.3,
    header_seconds=0.3,
    body_grace_seconds=0.3,
    body_bytes_per_second=100,
    write_stall_seconds=0.3,
    linger_seconds=0.2,
    round_seconds=0.05,
)


@pytest.fixture
def impatient(start: Callable[..., Running]) -> Running:
    return start(patience=IMPATIENT)


def drip(client: Client, data: bytes, seconds: float) -> None:
    """Send a byte now and then until it is refused or all is sent."""
    for byte in data:
        try:
            client.send(bytes([byte]))
        except OSError:
            return
        time.sleep(seconds)


def test_a_silent_connection_is_closed(impatient: Running) -> None:
    with impatient.client() as client:
        assert client.ended()


def test_an_idle_connection_is_closed_even_if_it_sends_line_ends(impatient: Running) -> None:
    with impatient.client() as client:
        assert client.get("/hot/echo/a").status == 200
        drip(client, b"\r\n" * 8, 0.1)
        assert client.ended()


def test_slow_headers_are_refused(impatient: Running) -> None:
    with impatient.client() as client:
        drip(client, b"GET /hot/e", 0.06)
        answer = client.answer()
        assert (answer.status, code(answer)) == (408, "headers_too_slow")
        assert client.ended()


@pytest.mark.parametrize("prefix", ["/hot", "/cold"])
def test_slow_bodies_are_refused(impatient: Running, prefix: str) -> None:
    with impatient.client() as client:
        client.send(request("POST", f"{prefix}/body", "Content-Length: 50"))
        drip(client, b"x" * 10, 0.06)
        answer = client.answer()
        assert (answer.status, code(answer)) == (408, "body_too_slow")
        assert client.ended()


def test_waiting_for_an_answer_costs_no_patience(impatient: Running) -> None:
    with impatient.client() as client:
        for prefix in ("/hot", "/cold"):
            client.send(request("POST", f"{prefix}/later?600", "Content-Length: 0"))
            assert client.answer().status == 201


def test_a_client_that_never_reads_its_answer_is_cut(impatient: Running) -> None:
    for prefix in ("/hot", "/cold"):
        with impatient.client() as client:
            client.send(request("GET", f"{prefix}/big?20000000"))
            impatient.until(lambda: impatient.plane.open == 1)
            impatient.until(lambda: impatient.plane.open == 0)


def test_a_slow_reader_that_goes_on_reading_is_not_cut(start: Callable[..., Running]) -> None:
    """It takes longer than the server's patience, which is for standing still."""
    server = start(patience=replace(IMPATIENT, write_stall_seconds=1.0))
    with server.client() as client:
        client.send(request("GET", "/hot/big?20000000", "Connection: close"))
        assert client.head().headers["content-length"] == "20000000"
        for _ in range(80):
            client.read(250_000)
            time.sleep(0.02)
        assert client.ended()


def test_a_client_that_goes_on_sending_after_a_refusal_is_cut(impatient: Running) -> None:
    with impatient.client() as client:
        client.send(b"garbage\r\n\r\n")
        assert client.answer().status == 400
        drip(client, b"x" * 20, 0.05)
        impatient.until(lambda: impatient.plane.open == 0)


# -- numbers
def test_connections_beyond_the_cap_get_a_503_and_others_stay(start: Callable[..., Running]) -> None:
    server = start(patience=Patience(connections_max=3))
    clients = [server.client() for _ in range(3)]
    for client in clients:
        assert client.get("/hot/echo/a").status == 200
    with server.client() as extra:
        answer = extra.answer()
        assert (answer.status, code(answer)) == (503, "too_many_connections")
        assert extra.ended()
    clients.pop().socket.close()
    server.until(lambda: server.plane.open == 2)
    with server.client() as again:
        assert again.get("/hot/echo/a").status == 200
    for client in clients:
        assert client.get("/hot/echo/a").status == 200
        client.socket.close()


def test_a_flood_of_connections_beyond_the_cap_is_cut(start: Callable[..., Running]) -> None:
    server = start(patience=Patience(connections_max=1))
    clients = [server.client() for _ in range(limits.CONNECTIONS_REFUSED_MAX + 50)]
    said = [client.all() for client in clients[1:]]
    assert said.count(b"") >= 40
    assert sum(b" 503 " in text for text in said) >= limits.CONNECTIONS_REFUSED_MAX - 10
    assert clients[0].get("/hot/echo/a").status == 200
    for client in clients:
        client.socket.close()


# -- pure
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([(b"host", b"a"), (b"expect", b"100-continue"), (b"content-length", b"3")]), max_size=4)
)
def test_only_requests_with_one_host_pass(headers: list[tuple[bytes, bytes]]) -> None:
    guarded = Guarded()
    for name, value in headers:
        guarded.see(name, value)
    hosts = headers.count((b"host", b"a"))
    if hosts == 1:
        guarded.judge("1.1")
    else:
        with pytest.raises(Refused):
            guarded.judge("1.1")


@given(st.binary(max_size=30))
def test_any_target_becomes_a_path_or_is_refused(target: bytes) -> None:
    if target.startswith(b"/"):
        return
    try:
        path = origin_form(b"GET", target)
    except Refused:
        return
    assert path.startswith(b"/")
    assert b"#" not in path


PIECES = st.sampled_from(
    [
        request("GET", "/hot/echo/a"),
        request("POST", "/hot/body", "Content-Length: 2") + b"ab",
        b"\r\n",
        b"\x00",
        b"GET ",
        b"Host: a\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"HTTP/1.1\r\n",
        b"\n",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES | st.binary(max_size=20), max_size=12))
def test_pipelined_garbage_never_breaks_the_server(server: Running, pieces: list[bytes]) -> None:
    """Whatever is sent, what comes back is a row of whole answers, and the server goes on."""
    with server.client() as client:
        client.send(b"".join(pieces))
        client.socket.shutdown(socket.SHUT_WR)
        answers = list(client.answers())
        assert {answer.status for answer in answers} <= {200, 400, 404, 405, 413, 431, 501, 505}
        assert all(answer.status == 200 for answer in answers[:-1])  # a refusal is the last word
    with server.client() as client:
        assert client.get("/hot/echo/a").status == 200
