"""The plug-in `ecpds`, over real connections to servers that stand in for ECPDS."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from seamark.access.user import User
from seamark.clock import ManualClock
from seamark.errors import BadConfig, Forbidden, Unreachable
from seamark.kinds import Secret
from seamark.notify.ecpds import Ecpds, open_gate
from seamark.notify.gates import GROUP, installed, open_gates
from seamark.notify.measures import SERIES
from seamark.notify.settings import read_options
from seamark.telemetry.metrics import Metrics
from seamark.testing.server import ServerProcess
from tests.access.auth_o_tron import token_of
from tests.access.tokens import SECRET
from tests.notify.file import loaded, written

pytestmark = pytest.mark.slow  # clients and servers that wait for one another

SCHEMA = {
    "diss": {
        "topic": {"base": "diss", "key_order": ["destination", "step"]},
        "identifier": {
            "destination": {"type": "StringHandler", "required": True},
            "step": {"type": "IntHandler", "required": False},
        },
        "auth": {"required": True, "plugins": ["ecpds"], "write_roles": {"ocean": ["*"]}},
    }
}
AUTH = {"enabled": True, "mode": "trusted_proxy", "jwt_secret": SECRET, "admin_roles": {"ocean": ["admin"]}}


class Server:
    """One ECPDS."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}
        self.success = "yes"
        self.status = 200
        self.body: bytes | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.asked: list[tuple[str, str]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                shown = ""
                while (header := (await reader.readline()).decode().strip()) != "":
                    if header.lower().startswith("authorization: "):
                        shown = header[15:]
                target = urlsplit(line.decode().split(" ")[1])
                user = parse_qs(target.query)["id"][0]
                self.asked.append((user, shown))
                assert target.path == "/ecpds/v1/destination/list"
                await self.open.wait()
                body = json.dumps({"destinationList": self.rows.get(user, []), "success": self.success}).encode()
                body = body if self.body is None else self.body
                writer.write(b"HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n\r\n%b" % (self.status, len(body), body))
                await writer.drain()
        finally:
            writer.close()


def listed(*names: str, **more: object) -> list[Any]:
    return [{"name": name, "active": True, "id": 7, **more} for name in names]


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()


def content(*urls: str, **more: Any) -> dict[str, Any]:
    section = {"username": "aviso", "password": "p:w", "match_key": "destination", "servers": list(urls), **more}
    return {"auth": AUTH, "notification_schema": SCHEMA, "ecpds": {k: v for k, v in section.items() if v is not None}}


class Asking:
    """The gate, and what it counted."""

    def __init__(self, place: Path, document: dict[str, Any]) -> None:
        settings = loaded(place, document)
        self.clock, self.metrics = ManualClock(), Metrics(SERIES)
        schema = read_options(settings).schema
        diss = schema.get("diss")
        assert diss is not None
        self.event = diss
        gates = open_gates(settings=settings, schema=schema, clock=self.clock, metrics=self.metrics)
        self.gate = gates["ecpds"]
        assert isinstance(self.gate, Ecpds)

    async def may(self, destination: str, *, user: str = "alice") -> bool:
        """Whether; anything but a clear no is raised."""
        return await self.values({"destination": destination, "step": "*"}, user=user)

    async def values(self, values: Mapping[str, str], *, user: str = "alice") -> bool:
        try:
            await self.gate.release(User(name=user), self.event, values)
        except Forbidden:
            return False
        return True

    def counted(self, name: str, *labels: str) -> float:
        return self.metrics.counter(f"aviso_ecpds_{name}_total", *labels).value


@asynccontextmanager
async def asking(place: Path, *servers: Server, **more: Any) -> AsyncIterator[Asking]:
    one = Asking(place, content(*(server.url for server in servers), **more))
    try:
        yield one
    finally:
        await one.gate.close()


async def test_only_active_destinations_of_the_user_and_the_account_of_the_file(tmp_path: Path) -> None:
    async with serving() as server, asking(tmp_path, server) as ask:
        odd = "a&b=c é"
        server.rows = {
            "alice": [*listed("EC1", "FR1"), *listed("OLD", active=False), *listed("ODD", active="true")],
            odd: listed("X"),
        }
        assert [await ask.may(name) for name in ("EC1", "FR1", "OLD", "ODD", "ec1", "")] == [True, True, *[False] * 4]
        assert not await ask.may("EC1", user="bob")
        assert await ask.may("X", user=odd)
        account = "Basic " + base64.b64encode(b"aviso:p:w").decode()
        assert server.asked == [("alice", account), ("bob", account), (odd, account)]
        assert ask.counted("access_decisions", "allow") == 3
        assert ask.counted("access_decisions", "deny_destination") == 5
        assert ask.counted("fetch", "success") == 3


async def test_what_can_be_counted_is_there_before_anything_happens(tmp_path: Path) -> None:
    async with serving() as server, asking(tmp_path, server) as ask:
        text = ask.metrics.text()
    for outcome in (b"allow", b"deny_destination", b"deny_match_key_missing", b"unavailable"):
        assert b'aviso_ecpds_access_decisions_total{outcome="%b"} 0.0' % outcome in text
    for outcome in (b"success", b"http_401", b"http_403", b"http_5xx", b"invalid_response", b"unreachable"):
        assert b'aviso_ecpds_fetch_total{outcome="%b"} 0.0' % outcome in text


async def test_a_request_without_one_destination_is_refused_unasked(tmp_path: Path) -> None:
    async with serving() as server, asking(tmp_path, server) as ask:
        server.rows = {"alice": listed("*")}
        assert not await ask.may("*")
        assert not await ask.values({"step": "1"})
        assert server.asked == []
        assert ask.counted("access_decisions", "deny_match_key_missing") == 2


async def test_rows_without_a_name_are_passed_over_and_the_field_can_be_another(tmp_path: Path) -> None:
    async with serving() as server, asking(tmp_path, server, target_field="id") as ask:
        server.rows = {
            "alice": [{"active": True}, {"id": 5, "active": True}, {"id": "EC1", "name": "x", "active": True}]
        }
        assert await ask.may("EC1")
        assert not await ask.may("x")
        assert not await ask.may("5")


async def test_the_union_of_all_servers_and_all_must_answer(tmp_path: Path) -> None:
    async with serving() as one, serving() as other, asking(tmp_path, one, other) as ask:
        one.rows, other.rows = {"alice": listed("A")}, {"alice": listed("B")}
        assert [await ask.may(name) for name in "ABC"] == [True, True, False]
        other.status = 500
        with pytest.raises(Unreachable):
            await ask.may("A", user="bob")
        assert ask.counted("fetch", "http_5xx") == 1
        assert ask.counted("access_decisions", "unavailable") == 1


async def test_one_of_several_will_do_where_the_file_says_so(tmp_path: Path) -> None:
    async with (
        serving() as one,
        serving() as other,
        asking(tmp_path, one, other, partial_outage_policy="any_success") as ask,
    ):
        one.rows, other.status = {"alice": listed("A")}, 503
        assert await ask.may("A")
        assert not await ask.may("B")
        one.status = 401
        with pytest.raises(Unreachable):
            await ask.may("A", user="bob")


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"success": "no"}, "invalid_response"),
        ({"success": "YES"}, "invalid_response"),
        ({"body": b"{}"}, "invalid_response"),
        ({"body": b'{"destinationList":[7],"success":"yes"}'}, "invalid_response"),
        ({"body": b"\xff"}, "invalid_response"),
        ({"status": 401}, "http_401"),
        ({"status": 403}, "http_403"),
        ({"status": 404}, "invalid_response"),
        ({"status": 302}, "invalid_response"),
        ({"status": 502}, "http_5xx"),
    ],
)
async def test_what_is_no_answer_is_no_denial(tmp_path: Path, change: dict[str, Any], outcome: str) -> None:
    async with serving() as server, asking(tmp_path, server) as ask:
        server.rows = {"alice": listed("A")}
        for name, value in change.items():
            setattr(server, name, value)
        with pytest.raises(Unreachable):
            await ask.may("A")
        assert ask.counted("fetch", outcome) == 1
        server.status, server.success, server.body = 200, "yes", None
        assert await ask.may("A")  # failures are not kept


async def test_nobody_answers(tmp_path: Path) -> None:
    async with serving() as server, asking(tmp_path, server, request_timeout_seconds=1) as ask:
        server.open.clear()
        with pytest.raises(Unreachable):
            await ask.may("A")
        server.open.set()
    async with asking(tmp_path, server) as ask:  # it is gone
        with pytest.raises(Unreachable):
            await ask.may("A")
        assert ask.counted("fetch", "unreachable") == 1


async def test_a_list_is_asked_for_once_and_believed_for_five_minutes(tmp_path: Path) -> None:
    async with serving() as server, asking(tmp_path, server) as ask:
        server.rows = {"alice": listed("A")}
        server.open.clear()
        waiting = [asyncio.ensure_future(ask.may("A")) for _ in range(20)]
        await asyncio.sleep(0.01)
        server.open.set()
        assert all(await asyncio.gather(*waiting))
        server.rows = {}
        ask.clock.advance(299)
        assert await ask.may("A")
        assert len(server.asked) == 1
        ask.clock.advance(2)
        assert not await ask.may("A")
        assert len(server.asked) == 2
        assert (ask.counted("cache_hits"), ask.counted("cache_misses")) == (1, 21)
        assert b"aviso_ecpds_cache_size 1.0" in ask.metrics.text()


@pytest.mark.parametrize(
    ("more", "name", "says"),
    [
        ({"username": None}, "ecpds.username", "it is missing"),
        ({"password": None}, "ecpds.password", "it is missing"),
        ({"match_key": None}, "ecpds.match_key", "it is missing"),
        ({"match_key": "nobody"}, "ecpds.match_key", "required in every event type"),
        ({"match_key": "step"}, "ecpds.match_key", "required in every event type"),
        ({"servers": None}, "ecpds.servers", "a list of texts"),
        ({"servers": "https://a"}, "ecpds.servers", "a list of texts"),
        ({"servers": []}, "ecpds.servers", "at least one"),
        ({"servers": ["http://ecpds.example"]}, "ecpds.servers", "https:// addresses"),
        ({"servers": ["https://a?x=1"]}, "ecpds.servers", "without a query"),
        ({"servers": ["ecpds.example"]}, "ecpds.servers", "https:// addresses"),
        ({"cache_ttl_seconds": 0}, "ecpds.cache_ttl_seconds", "1 or more"),
        ({"partial_outage_policy": "hope"}, "ecpds.partial_outage_policy", "strict or any_success"),
    ],
)
def test_what_stops_a_start(tmp_path: Path, more: dict[str, Any], name: str, says: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Asking(tmp_path, content("https://ecpds.example", **more))
    assert says in str(caught.value)
    assert caught.value.fields["name"] == name
    assert str(tmp_path) in caught.value.fields["place"]
    assert "p:w" not in str(caught.value)


def test_the_plug_in_is_an_entry_point_and_opened_only_where_it_is_named(tmp_path: Path) -> None:
    assert GROUP == "seamark.notify.gates"
    assert "ecpds" in installed()
    settings = loaded(tmp_path, {"ecpds": {"servers": ["nonsense"]}})
    metrics = Metrics(SERIES)
    schema = read_options(settings).schema
    assert open_gates(settings=settings, schema=schema, clock=ManualClock(), metrics=metrics) == {}
    with pytest.raises(BadConfig, match=r"ecpds\.username"):
        open_gate(settings=settings, schema=schema, clock=ManualClock(), metrics=metrics)
    unknown = {"notification_schema": {"diss": {**SCHEMA["diss"], "auth": {"required": True, "plugins": ["odd"]}}}}
    with pytest.raises(BadConfig, match=r"names something unknown; accepted: .*ecpds"):
        read_options(loaded(tmp_path, unknown | {"auth": AUTH}))


async def test_watch_and_replay_ask_it_and_notification_does_not(tmp_path: Path) -> None:
    async with serving() as server:
        server.rows = {"alice": listed("EC1")}
        document = content(server.url)
        process = ServerProcess(tmp_path, "--config", str(written(tmp_path, document)), engine="memory")
        await asyncio.to_thread(process.start)
        try:
            once = httpx.Limits(max_keepalive_connections=0)
            async with httpx.AsyncClient(base_url=process.base_url, timeout=30, trust_env=False, limits=once) as client:

                async def ask(path: str, name: str, **identifier: object) -> int:
                    body = {"event_type": "diss", "identifier": identifier}
                    body |= {"from_id": "1"} if path == "replay" else {}
                    headers = {"Authorization": f"Bearer {token_of(name)}"}
                    async with client.stream("POST", f"/api/v1/{path}", json=body, headers=headers) as answer:
                        return answer.status_code

                assert await ask("notification", "alice", destination="FR1", step=1) == 200
                assert server.asked == []
                assert await ask("replay", "alice", destination="EC1") == 200
                assert await ask("watch", "alice", destination="EC1") == 200
                for path in ("watch", "replay"):
                    assert await ask(path, "alice", destination="FR1") == 403
                    assert await ask(path, "dave", destination="EC1") == 403
                    assert await ask(path, "alice") == 400  # the field is required, which is told first
                    assert await ask(path, "carol", destination="FR1") == 200  # an admin
                    server.status = 500
                    assert await ask(path, "erin", destination="EC1") == 503
                    server.status = 200
                assert [name for name, _ in server.asked] == ["alice", "dave", "erin", "erin"]
        finally:
            await asyncio.to_thread(process.kill)


def test_the_password_shows_nowhere(tmp_path: Path) -> None:
    settings = loaded(tmp_path, content("https://ecpds.example"))
    assert settings.contract["ecpds.password"] == Secret("p:w")
    assert "p:w" not in repr(settings.contract)
