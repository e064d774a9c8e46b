"""What stands between a stranger and a surface, and in which order: the key, its room, its scopes, its prefixes, the path,
the size of the body. Over raw sockets, for routes of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from seamark.access.inflight import InFlight
from seamark.access.keys import NOBODY, parse_keys
from seamark.access.principal import Principal
from seamark.errors import SeamarkError
from seamark.http.realm import Realm
from seamark.wire.exchange import ANY_KEY, Exchange, Headers, Route
from tests.http.rig import Answer, Client, Running, request

pytestmark = pytest.mark.slow  # processes of their own

KEYS = parse_keys("all,reader:read,mine::mine-,both:r+w:mine-", place="test")
BODY_MAX = 1_000


def own(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    assert isinstance(error, SeamarkError)
    return error.status, msgspec.json.encode({"own": error.code}), ()


def name_of(raw_path: str) -> str | None:
    parts = raw_path.split("/")
    return parts[3] if len(parts) > 3 else None


def authenticate(headers: Headers, query: bytes, route: Route) -> Principal:
    return KEYS.authenticate(headers, query, in_query=route.key_in_query) if route.action else NOBODY


def echo(exchange: Exchange) -> None:
    exchange.respond(200, exchange.principal.name.encode())


class Held:
    """Requests that are not answered until the test says so."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def hold(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)

    def stream(self, exchange: Exchange) -> None:
        pipe = exchange.stream(headers=())
        pipe.owner = self

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def gone(self) -> None: ...

    def rows(self) -> list[Route]:
        return [
            row
            for kind, hot in (("hot", True), ("cold", False))
            for row in (
                Route("POST", f"/v0/{kind}/{{name}}", echo, "", "write", own, BODY_MAX, hot, named="name"),
                Route("GET", f"/v0/{kind}/{{name}}", echo, "", "read+write", own, 0, hot, named="name", key_in_query=True),
                Route("GET", f"/v0/{kind}", echo, "", "read", own, 0, hot),
                Route("DELETE", f"/v0/{kind}", echo, "", ANY_KEY, own, 0, hot),
                Route("GET", f"/v0/open-{kind}", echo, "", "", own, 0, hot),
                Route("GET", f"/v0/{kind}/{{name}}/hold", self.hold, "", "read", own, 0, hot),
                Route("GET", f"/v0/{kind}/{{name}}/stream", self.stream, "", "read", own, 0, hot),
            )
        ]  # fmt: skip


@pytest.fixture(params=["hot", "cold"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def server(held: Held, start: Callable[..., Running]) -> Running:
    front = {"authenticate": authenticate, "inflight": InFlight(2), "realms": [Realm("/v0", own, name_of)]}
    return start(extra=held.rows(), front=front)


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with server.client() as client:
        yield client


def asked(client: Client, method: str, path: str, key: str = "", body: int = 0) -> tuple[int, str]:
    lines = [f"Authorization: Bearer {key}"] if key else []
    client.send(request(method, path, f"Content-Length: {body}", *lines), b"x" * min(body, BODY_MAX))
    return told(client.answer(head_only=method == "HEAD"))


def told(answer: Answer) -> tuple[int, str]:
    """The status and the code in the surface's own words."""
    assert "www-authenticate" not in answer.headers
    return answer.status, msgspec.json.decode(answer.body)["own"] if answer.status >= 400 and answer.body else ""


HUGE = 100_000_000


@pytest.mark.parametrize(
    ("method", "path", "key", "body", "expected"),
    [
        ("POST", "/v0/{kind}/mine-1", "mine", 10, (200, "")),
        ("POST", "/v0/{kind}/mine-1", "", HUGE, (401, "unauthenticated")),
        ("POST", "/v0/{kind}/mine-1", "wrong", 10, (401, "unauthenticated")),
        ("POST", "/v0/{kind}/mine-1", "reader", HUGE, (403, "forbidden")),
        ("POST", "/v0/{kind}/theirs", "mine", HUGE, (403, "forbidden")),
        ("POST", "/v0/{kind}/%6Dine-1", "mine", 10, (200, "")),  # prefixes are held against the decoded name
        ("POST", "/v0/{kind}/mine-1", "mine", HUGE, (413, "body_too_large")),
        ("GET", "/v0/{kind}/mine-1", "both", 0, (200, "")),
        ("GET", "/v0/{kind}/mine-1", "reader", 0, (403, "forbidden")),  # also needs write
        ("GET", "/v0/{kind}", "reader", 0, (200, "")),
        ("DELETE", "/v0/{kind}", "reader", 0, (200, "")),
        ("DELETE", "/v0/{kind}", "", 0, (401, "unauthenticated")),
        ("GET", "/v0/open-{kind}", "", 0, (200, "")),
        ("POST", "/v0/open-{kind}", "", 0, (405, "method_not_allowed")),
        ("GET", "/v0/nowhere", "", 0, (401, "unauthenticated")),
        ("GET", "/v0", "", 0, (401, "unauthenticated")),
        ("GET", "/v0/nowhere", "all", 0, (404, "route_not_found")),
        ("GET", "/v0/", "all", 0, (404, "route_not_found")),
        ("POST", "/v0/nowhere", "all", HUGE, (404, "route_not_found")),
        ("POST", "/v0/nowhere", "reader", HUGE, (403, "forbidden")),
        ("POST", "/v0/nowhere", "", HUGE, (401, "unauthenticated")),
        ("PUT", "/v0/{kind}", "both", 0, (403, "forbidden")),
        ("PUT", "/v0/{kind}", "all", 0, (405, "method_not_allowed")),
        ("PATCH", "/v0/{kind}", "", 0, (401, "unauthenticated")),
        ("PATCH", "/v0/{kind}", "reader", 0, (405, "method_not_allowed")),
        ("OPTIONS", "/v0/{kind}", "reader", 0, (405, "method_not_allowed")),
        ("PROPFIND", "/v0/{kind}", "reader", 0, (405, "method_not_allowed")),
        ("GET", "/v0/x/theirs/nowhere", "mine", 0, (403, "forbidden")),
        ("GET", "/v0/x/mine-1/nowhere", "mine", 0, (404, "route_not_found")),
        ("GET", "/v0/{kind}/%zz", "", 0, (401, "unauthenticated")),
        ("GET", "/v0/{kind}/%zz", "all", 0, (400, "bad_request")),
        ("HEAD", "/v0/nowhere", "", 0, (401, "")),
    ],
)  # fmt: skip
def test_the_order_of_checks(  # noqa: PLR0917
    client: Client, kind: str, method: str, path: str, key: str, body: int, expected: tuple[int, str]
) -> None:
    assert asked(client, method, path.format(kind=kind), key, body) == expected


def test_outside_a_realm_nothing_is_there_for_anybody(client: Client) -> None:
    assert client.get("/v0x").status == 404
    assert client.get("/nowhere").status == 404


def test_a_key_in_the_query_opens_only_what_allows_it(client: Client, kind: str) -> None:
    assert asked(client, "GET", f"/v0/{kind}/mine-1?a=b&token=both") == (200, "")
    assert asked(client, "POST", f"/v0/{kind}/mine-1?token=both", body=1) == (401, "unauthenticated")
    assert asked(client, "GET", f"/v0/{kind}?token=both") == (401, "unauthenticated")
    assert asked(client, "GET", f"/v0/{kind}/mine-1?token=both", "wrong") == (401, "unauthenticated")


def test_a_body_that_grows_beyond_its_bound_is_refused_in_the_surface_s_words(client: Client, kind: str) -> None:
    client.send(request("POST", f"/v0/{kind}/a", "Transfer-Encoding: chunked", "Authorization: Bearer all"))
    client.send(b"%x\r\n%b\r\n" % (BODY_MAX + 1, b"x" * (BODY_MAX + 1)))
    assert told(client.answer()) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("method", "target", "line", "expected"),
    [
        ("GET", "/v0/hot", "Expect: wonders", (417, "bad_request")),
        ("POST", "/v0/hot", "Transfer-Encoding: gzip", (501, "bad_request")),
        ("BREW", "/v0/hot?a=b", "X: y", (400, "bad_request")),
        ("get", "/v0", "X: y", (400, "bad_request")),
        ("GET", "/v0/caf\u00e9", "X: y", (400, "bad_request")),
        ("GET", "/v0/a\x00b", "X: y", (400, "bad_request")),
    ],
)
def test_what_the_server_itself_refuses_is_in_the_surface_s_words(
    client: Client, method: str, target: str, line: str, expected: tuple[int, str]
) -> None:
    client.send(request(method, target, line))
    assert told(client.answer()) == expected


def test_what_names_no_path_is_refused_in_nobody_s_words(client: Client) -> None:
    client.send(b"/v0/hot /v0/hot\r\n\r\n")
    assert list(msgspec.json.decode(client.answer().body)) == ["error", "request_id"]


def test_a_key_has_only_so_many_requests_in_flight(server: Running, held: Held, kind: str) -> None:
    path = f"/v0/{kind}/a"
    with server.client() as one, server.client() as two, server.client() as three:
        for client in (one, two):
            client.send(request("GET", f"{path}/hold", "Authorization: Bearer all"))
        server.until(lambda: len(held.exchanges) == 2)
        assert asked(three, "GET", f"/v0/{kind}", "all") == (429, "busy")
        assert asked(three, "PUT", "/v0/nowhere", "all") == (429, "busy")
        assert asked(three, "GET", f"/v0/{kind}", "wrong") == (401, "unauthenticated")
        assert asked(three, "GET", f"/v0/{kind}", "reader") == (200, "")  # another key has its own room
        server.call(lambda: held.exchanges[0].respond(200, b""))
        assert one.answer().status == 200
        assert asked(three, "GET", f"/v0/{kind}", "all") == (200, "")
        server.call(lambda: held.exchanges[1].respond(200, b""))


def test_streams_and_refused_requests_hold_no_room(server: Running, kind: str) -> None:
    clients = [server.client() for _ in range(4)]
    for client in clients:
        client.send(request("GET", f"/v0/{kind}/a/stream", "Authorization: Bearer all"))
        assert client.head().status == 200
    with server.client() as refused:
        for _ in range(4):
            assert asked(refused, "POST", f"/v0/{kind}/a", "reader") == (403, "forbidden")
    for client in clients:
        client.socket.close()
    server.until(lambda: server.front.inflight.count(KEYS.authenticate([(b"authorization", b"Bearer all")]).name) == 0)


def test_a_client_that_leaves_gives_its_room_back(server: Running, held: Held) -> None:
    name = KEYS.authenticate([(b"authorization", b"Bearer all")]).name
    with server.client() as client:
        client.send(request("GET", "/v0/hot/a/hold", "Authorization: Bearer all"))
        server.until(lambda: server.front.inflight.count(name) == 1)
    server.until(lambda: server.front.inflight.count(name) == 0)
    server.call(lambda: held.exchanges[0].respond(200, b""))  # what comes too late is counted once
    assert server.call(lambda: server.front.inflight.count(name)) == 0
