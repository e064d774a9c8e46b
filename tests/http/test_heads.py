"""The second time a head comes, its bytes are not parsed again; nobody may be able to tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import Unauthenticated
from seamark.http.heads import Head, Heads
from seamark.http.ordered import Phase
from seamark.http.routing import Match
from seamark.wire.exchange import Exchange, Headers, Route
from seamark.wire.problem import plain_problem
from tests.http.rig import BODY_MAX, Answer, Running, Someone, request

HEAD = b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"


def handler(exchange: Exchange) -> None:
    raise AssertionError("never run")


def head(length: int) -> Head:
    route = Route("POST", "/hot/body", handler, "", "write", plain_problem, 100, hot=True)
    return Head(Match(route, {}, "/hot/body"), "POST", b"", [(b"host", b"a")], length)


def test_a_known_head_is_found_with_exactly_its_body() -> None:
    heads = Heads()
    assert heads.find(HEAD + b"12345") is None
    heads.learn(HEAD + b"12345", head(5))
    assert heads.find(HEAD + b"abcde") is not None
    for other in (HEAD, HEAD + b"1234", HEAD + b"123456", HEAD + b"12345" + HEAD, HEAD.lower() + b"12345", b"", b"x"):
        assert heads.find(other) is None


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"GET / HTTP/1.1"]), max_size=12), st.integers(0, 5))
def test_what_is_learned_ends_where_the_head_ends(parts: list[bytes], length: int) -> None:
    """Whatever is taken for one request, a head is only ever kept up to its first empty line."""
    heads = Heads()
    data = b"".join(parts)
    heads.learn(data, head(length))
    for known in heads._known:
        assert known.endswith(b"\r\n\r\n")
        assert known.count(b"\r\n\r\n") == 1
        assert len(known) + length == len(data)


def test_long_heads_are_not_kept_and_the_many_are_forgotten() -> None:
    heads = Heads()
    heads.learn(b"GET /%b HTTP/1.1\r\n\r\n" % (b"x" * limits.HEAD_CACHE_BYTES), head(0))
    assert len(heads) == 0
    for number in range(limits.HEAD_CACHE_MAX + 1):
        heads.learn(b"GET /%d HTTP/1.1\r\n\r\n" % number, head(0))
    assert len(heads) == 1


def known(server: Running) -> int:
    return server.call(lambda: len(server.plane.heads))


def whole(method: str, path: str, body: bytes = b"", *lines: str) -> bytes:
    """A request as one piece, which is how it has to come to be learned."""
    length = [f"Content-Length: {len(body)}"] if body else []
    return request(method, path, *length, *lines) + body


def said(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """An answer without what is different every time."""
    kept = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}
    return answer.status, kept, answer.body.replace(answer.headers["x-request-id"].encode(), b"ID")


REQUESTS = (
    whole("POST", "/hot/body", b"12345"),
    whole("POST", "/hot/later?3", b"12345"),
    whole("POST", "/hot/coroutine?1", b"boom"),
    whole("GET", "/hot/echo/a%20b?q=1", b"", "X-Thing: one"),
    whole("GET", "/hot/echo/a%20b?q=1", b"", "X-Thing: two", "Authorization: me"),
    whole("HEAD", "/hot/echo/a"),
    whole("GET", "/hot/echo/a", b"", "Authorization: bad"),
    whole("GET", "/hot/missing"),
    whole("GET", "/hot/boom"),
    whole("GET", "/hot/nothing"),
    whole("GET", "/cold/echo/a"),
)


@pytest.mark.parametrize("sent", REQUESTS)
def test_the_answer_does_not_tell_whether_the_head_was_known(server: Running, sent: bytes) -> None:
    heads = sent.startswith(b"HEAD")
    told = []
    for _ in range(2):
        with server.client() as client:
            for _ in range(3):
                client.send(sent)
                told.append(said(client.answer(head_only=heads)))
            client.send(sent[:-1])  # not all of it
            server.until(lambda: any(one.phase not in (Phase.FRESH, Phase.IDLE) for one in server.plane.connections))
            client.send(sent[-1:] + sent + sent)  # and more than one
            told += [said(client.answer(head_only=heads)) for _ in range(3)]
    assert len(told) == 12
    assert all(one == told[0] for one in told)


def test_hot_heads_are_learned_and_others_are_not(start: Callable[..., Running]) -> None:
    server = start()
    with server.client() as client:
        client.send(whole("GET", "/hot/echo/secret"))
        assert client.answer().status == 200
        assert known(server) == 0  # its connection might have no other
        for count, sent in enumerate((whole("POST", "/hot/body", b"1"), whole("POST", "/hot/body", b"12")), start=1):
            for _ in range(2):
                client.send(sent)
                assert client.answer().status == 200
            assert known(server) == count
        for sent in (
            whole("GET", "/cold/echo/a"),
            request("POST", "/hot/body", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n",
            request("POST", "/hot/body", "Content-Length: 1", "Expect: 100-continue") + b"x",
            b"GET /hot/echo/a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            whole("GET", "/hot/echo/a", b"", "Connection: close"),
        ):
            client.send(sent)
            while client.answer().status == 100:
                pass
        assert client.ended()
        assert known(server) == 2


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /hot/body HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\n\r\nx",
        b"POST /hot/body HTTP/1.1\r\nHost: a b\r\nContent-Length: 1\r\n\r\nx",
        b"POST /hot/body HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        whole("POST", "/hot/body", b"x" * (BODY_MAX + 1)),
    ],
)
def test_what_is_refused_is_refused_again(server: Running, sent: bytes) -> None:
    before = known(server)
    for _ in range(3):
        with server.client() as client:
            client.send(sent)
            assert client.answer().status in (400, 413)
            assert client.ended()
    assert known(server) == before


def test_who_asks_is_looked_at_every_time(start: Callable[..., Running]) -> None:
    server = start()
    sent = whole("GET", "/hot/echo/a", b"", "Authorization: me")
    with server.client() as client:
        for _ in range(2):
            client.send(sent)
            assert client.answer().status == 200

        def revoke(headers: Headers, query: bytes, route: Route) -> Someone:
            raise Unauthenticated("no longer")

        server.call(lambda: setattr(server.front, "authenticate", revoke))
        client.send(sent)
        assert client.answer().status == 401
