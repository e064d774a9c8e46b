"""Publishing, refusing and discovering over HTTP: shapes, codes, and what is told first."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from seamark.access.keys import NOBODY
from seamark.access.user import User
from seamark.errors import Corrupt, Forbidden, NotReady, Unauthenticated
from seamark.log.protocol import StreamState
from seamark.log.settings import Discard, StreamSettings
from seamark.notify.eventtype import EventType
from seamark.notify.gate import OpenGate
from seamark.notify.surface import NotifySurface
from seamark.wire.exchange import Exchange
from tests.notify.rig import POLYGON, SEVEN, NotifyRig, options, running

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LABELS = {"notification": "Notification", "watch": "Watch", "replay": "Replay"}
ENDPOINTS = sorted(LABELS)
PLACE = {"time": "1200", "polygon": POLYGON}


def check(answer: httpx.Response, status: int, /, **facts: object) -> dict[str, Any]:
    """An error as JSON: keys sorted, compact, with the id of the header."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body: dict[str, Any] = answer.json()
    assert answer.text == json.dumps(body, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    assert body["request_id"] == answer.headers["x-request-id"]
    assert UUID.fullmatch(body["request_id"])
    assert {key: body[key] for key in facts} == facts
    return body


async def test_the_server_makes_the_request_id(each: NotifyRig) -> None:
    given = {"X-Request-ID": "mine"}
    for path in ("/health", "/api/v1/schema", "/nowhere", "/api/v1/notification"):
        answer = await each.client.get(path, headers=given)
        assert UUID.fullmatch(answer.headers["x-request-id"])


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"", "INVALID_JSON", "JSON parsing failed: "),
        (b"{", "INVALID_JSON", "JSON parsing failed: "),
        (b'{"event_type":"mars","identifier":{}} x', "INVALID_JSON", "JSON parsing failed: "),
        (b'{"event_type":"mars","identifier":{"a":NaN}}', "INVALID_JSON", "JSON parsing failed: "),
        (b'{"event_type":"mars","identifier":{"a":"\xff"}}', "INVALID_JSON", "JSON parsing failed: "),
        (b'{"extra":1}', "UNKNOWN_FIELD", "Request contains unknown fields: "),
        (b'{"event_type":"mars"}', "INVALID_REQUEST_SHAPE", "Request deserialization failed: "),
        (b"[]", "INVALID_REQUEST_SHAPE", "Request deserialization failed: "),
        (b'{"event_type":"mars","identifier":{},"from_id":1}', "INVALID_REQUEST_SHAPE", "Request deserialization"),
    ],
)
async def test_what_cannot_be_read(rig: NotifyRig, endpoint: str, body: bytes, code: str, says: str) -> None:
    answer = await rig.ask(endpoint, body)
    found = check(answer, 400, code=code, error=f"Invalid {LABELS[endpoint]} Request")
    assert found["message"].startswith(says)
    assert found["details"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_unknown_event_type(each: NotifyRig, endpoint: str) -> None:
    answer = await each.ask(endpoint, {"event_type": "nope", "identifier": {}})
    body = check(
        answer,
        400,
        code="UNKNOWN_EVENT_TYPE",
        error="unknown_event_type",
        message="unknown event type 'nope'",
        configured_event_types=["fires", "keyed", "mars", "observations", "test_polygon"],
    )
    assert "details" not in body


@pytest.mark.parametrize(
    ("event_type", "identifier", "payload", "says"),
    [
        ("mars", {**SEVEN, "step": "abc"}, 1, "Field 'step' must be a valid integer, got: 'abc'"),
        ("mars", {**SEVEN, "extra": 1}, 1, "Unknown field 'extra' provided for notify operation"),
        ("mars", {"class": "od"}, 1, "Required field 'expver' missing for notify operation"),
        ("mars", SEVEN, None, "Payload is required for notify operation based on schema configuration"),
        (
            "mars",
            {**SEVEN, "step": {"gte": 5}},
            1,
            "Field 'step' constraint object is not supported for notify operation",
        ),
        ("mars", {**SEVEN, "step": None}, 1, "Field 'step' cannot be null"),
        (
            "test_polygon",
            {**PLACE, "date": "20250706", "point": "1,1"},
            1,
            "identifier.point is only supported for watch and replay",
        ),
    ],
)
async def test_notifications_that_are_not_in_order(
    rig: NotifyRig, event_type: str, identifier: object, payload: object, says: str
) -> None:
    body = {"event_type": event_type, "identifier": identifier, "payload": payload}
    answer = await rig.ask("notification", body)
    check(answer, 400, code="INVALID_NOTIFICATION_REQUEST", message=says)
    assert (await rig.replay("mars", identifier={"class": "od"}, from_id="1")).names.count("replay") == 0


async def test_the_innermost_cause_is_told_too(rig: NotifyRig) -> None:
    body = {"event_type": "mars", "identifier": {**SEVEN, "step": "abc"}, "payload": 1}
    check(await rig.ask("notification", body), 400, details="invalid digit found in string")


@pytest.mark.parametrize("endpoint", ["watch", "replay"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"identifier": {"time": "1200", "polygon": POLYGON, "point": "1,1"}}, "Cannot specify both identifier.polygon and"),
        ({"identifier": {**PLACE, "polygon": "(1,2"}}, "field 'polygon' must be a valid polygon"),
        ({"from_id": ""}, "from_id cannot be empty"),
        ({"from_id": "test_polygon@5"}, "from_id must be a valid positive integer"),
        ({"from_date": "2025-01-15"}, "from_date must be a valid datetime/timestamp"),
        ({"from_id": "x", "from_date": "y"}, "from_id must be a valid positive integer"),
        ({"from_id": "1", "from_date": "1740509903"}, "Cannot specify both from_id and from_date."),
        ({"identifier": {"polygon": POLYGON}}, "Required field 'time' missing for {}"),
        ({"identifier": {**PLACE, "time": {"eq": 1}}}, "Field 'time' does not support constraint filters"),
    ],
)  # fmt: skip
async def test_reading_that_is_not_in_order(rig: NotifyRig, endpoint: str, more: Any, says: str) -> None:
    body = {"event_type": "test_polygon", "identifier": PLACE, **({"from_id": "1"} if "identifier" in more else {})}
    answer = await rig.ask(endpoint, {**body, **more})
    found = check(answer, 400, code=f"INVALID_{endpoint.upper()}_REQUEST")
    assert says.format(endpoint) in found["message"]


async def test_starts_and_ends_that_only_a_replay_has(rig: NotifyRig) -> None:
    def body(**more: str) -> dict[str, object]:
        return {"event_type": "test_polygon", "identifier": PLACE, **more}

    neither = check(await rig.ask("replay", body()), 400, code="INVALID_REPLAY_REQUEST")
    assert neither["message"].startswith("Replay endpoint requires either from_id or from_date parameter")
    backwards = check(await rig.ask("replay", body(from_id="5", to_id="4")), 400)
    assert backwards["message"] == "to_id (4) must not be lower than from_id (5)"
    watch = check(await rig.ask("watch", body(to_id="4")), 400)
    assert watch["message"] == "to_id and to_date are only supported for the replay endpoint, not /watch"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_body_beyond_its_bound_is_refused_without_json(each: NotifyRig, endpoint: str) -> None:
    answer = await each.client.post(f"/api/v1/{endpoint}", content=b" " * 262_145)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert UUID.fullmatch(answer.headers["x-request-id"])
    assert not answer.text.startswith("{")
    assert (await each.client.post(f"/api/v1/{endpoint}", content=b" " * 262_144)).status_code == 400


async def test_a_body_where_none_is_needed_is_not_looked_at(each: NotifyRig) -> None:
    await each.notify()
    for method, path in (
        ("GET", "/api/v1/schema"),
        ("GET", "/api/v1/schema/mars"),
        ("DELETE", "/api/v1/admin/notification/test_polygon@1"),
        ("DELETE", "/api/v1/admin/wipe/all"),
    ):
        answer = await each.client.request(method, path, content=b"{nonsense", headers={"Content-Type": "text/plain"})
        assert answer.status_code == 200, path


async def test_a_wrong_method(each: NotifyRig) -> None:
    for path in ("/api/v1/notification", "/api/v1/watch", "/api/v1/admin/wipe/all"):
        answer = await each.client.get(path)
        assert answer.status_code == 405
        assert not answer.text.startswith("{")
    answer = await each.client.post("/api/v1/schema/mars", content=b"{}")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "text/plain; charset=utf-8")


@pytest.mark.parametrize("environment", [{}, {"SEAMARK_API_KEYS": "boss"}], ids=["open", "keys"])
async def test_what_is_not_there_is_answered_without_words(environment: dict[str, str]) -> None:
    async with running(environment=environment) as rig:
        for method, path in (
            ("GET", "/api/v1"),
            ("GET", "/api/v1/"),
            ("GET", "/api/v1/nope"),
            ("POST", "/api/v1/watch/"),
            ("GET", "/api/v1/schema/"),
            ("GET", "/api/v1/schema/mars/"),
            ("DELETE", "/api/v1/admin/notification/"),
            ("DELETE", "/api/v1/admin"),
        ):
            answer = await rig.client.request(method, path, headers={"Authorization": "Bearer wrong"})
            assert (answer.status_code, answer.text) == (404, ""), path
            assert UUID.fullmatch(answer.headers["x-request-id"])


async def test_the_media_type_of_a_request_is_not_looked_at(rig: NotifyRig) -> None:
    body = {"event_type": "test_polygon", "identifier": {**PLACE, "date": "20250706"}}
    for media in ("text/plain", "application/x-www-form-urlencoded"):
        answer = await rig.client.post(
            "/api/v1/notification", content=json.dumps(body), headers={"Content-Type": media}
        )
        assert answer.status_code == 200


async def test_a_store_that_takes_nothing(rig: NotifyRig) -> None:
    body = {"event_type": "test_polygon", "identifier": {**PLACE, "date": "20250706"}}
    full = StreamSettings(cap_bytes=1, discard=Discard.REJECT)
    await rig.log.configure("notify:polygon", full)
    answer = await rig.ask("notification", body)
    check(answer, 500, code="NOTIFICATION_STORAGE_FAILED", error="Notification Storage Failed")
    await rig.assembly.drain()
    answer = await rig.ask("watch", body)
    check(answer, 503, code="SERVICE_UNAVAILABLE", error="service_unavailable")


async def test_a_log_that_cannot_say_where_a_stream_stands(rig: NotifyRig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def damaged(name: str) -> StreamState:
        raise Corrupt("a stored value changed", stream=name)

    monkeypatch.setattr(rig.log, "state", damaged)
    answer = await rig.ask("watch", {"event_type": "test_polygon", "identifier": PLACE})
    check(
        answer,
        500,
        code="SSE_STREAM_INITIALIZATION_FAILED",
        error="SSE stream creation failed",
        details="a stored value changed",
        message="a stored value changed",
        topic="polygon.*.1200",
    )


async def test_a_subject_that_the_log_does_not_take_is_the_clients_mistake() -> None:
    async with running(options(None)) as rig:
        answer = await rig.ask("notification", {"event_type": "storm", "identifier": {"a": "x" * 5_000}})
        check(answer, 400, code="INVALID_NOTIFICATION_REQUEST")


async def test_without_a_schema_anything_goes_and_is_delivered() -> None:
    async with running(options(None)) as rig:
        await rig.notify("storm", region="north", n=1, payload={"wind": 31})
        async with rig.watch("storm", identifier={"n": "*", "region": "north"}, from_id="1") as watching:
            await watching.until("replay_completed")
            await rig.notify("storm", region="south", n=2)
            await rig.notify("storm", region="north", n=3)
            await watching.until("storm@3")
        assert '"identifier":{"n":"1","region":"north"},"payload":{"wind":31}' in watching.text
        assert "storm@2" not in watching.text
        said = await rig.replay("unheard.of", identifier={}, from_id="1")
        assert said.names == ["replay-control", "replay-control", "connection-closing"]
        async with rig.watch("named first by a watch", identifier={}) as watching:
            await watching.until("heartbeat")
            await rig.notify("named first by a watch")
            await watching.until("@1")


async def test_to_replay_is_to_read() -> None:
    """Whoever may only read cannot fill the store with streams of names that nobody else ever heard."""
    async with running(options(None)) as rig:
        said = await rig.replay("unheard of", identifier={}, from_id="7", to_id="9")
        assert said.names == ["replay-control", "replay-control", "connection-closing"]
        assert '"end_sequence":0,"from_date":null,"from_sequence":7,' in said.text
        assert "replay_completed" in said.frames[1][1]
        assert await rig.log.streams(prefix="notify:") == []
        metrics = (await rig.client.get("/metrics")).text
        assert 'aviso_sse_connections_total{event_type="generic",route="/api/v1/replay"} 1.0' in metrics


async def test_a_schema_that_is_not_strict_takes_other_types_too() -> None:
    async with running(options(strict=False)) as rig:
        await rig.notify("storm", n=1)
        assert (await rig.replay("storm", identifier={"n": 1}, from_id="0")).names.count("replay") == 1
    async with running(options(None, strict=True)) as rig:
        answer = await rig.ask("watch", {"event_type": "storm", "identifier": {}})
        check(answer, 400, code="UNKNOWN_EVENT_TYPE", configured_event_types=[])


async def test_the_base_of_an_event_type_is_no_way_around_its_schema_and_its_roles() -> None:
    async with running(options(strict=False)) as rig:
        await rig.notify()
        for endpoint in ENDPOINTS:
            body = {"event_type": "polygon", "identifier": {"a": "*", "b": "*"}, "from_id": "1"}
            check(await rig.ask(endpoint, body), 400, code="UNKNOWN_EVENT_TYPE", message="unknown event type 'polygon'")
        await rig.notify("Polygon", n=1)  # another name


# -- discovery


async def test_discovery(each: NotifyRig) -> None:
    everything = (await each.client.get("/api/v1/schema")).json()
    assert (everything["status"], everything["total_schemas"]) == ("success", 5)
    assert everything["schema"]["mars"]["payload"] == {"required": True}
    one = await each.client.get("/api/v1/schema/mars")
    assert one.json() == {"event_type": "mars", "schema": everything["schema"]["mars"], "status": "success"}
    missing = await each.client.get("/api/v1/schema/nope")
    check(missing, 404, status="error", message="Event type 'nope' not found")
    assert (await each.client.get("/api/v1/schema/%zz")).status_code == 400


# -- who may


async def test_keys_come_first_and_prefixes_are_event_types() -> None:
    keys = {"SEAMARK_API_KEYS": "boss,reader:read,tenant:rw:test_"}
    async with running(environment=keys) as rig:

        async def status(path: str, key: str, body: object) -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            answer = await rig.client.post(f"/api/v1/{path}", json=body, headers=headers)
            if answer.status_code == 401:
                check(answer, 401, code="UNAUTHORIZED", error="unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"
            if answer.status_code == 403:
                check(answer, 403, code="FORBIDDEN", error="forbidden")
            return answer.status_code

        good = {"event_type": "test_polygon", "identifier": {**PLACE, "date": "20250706"}}
        assert await status("notification", "", good) == 401
        assert await status("notification", "wrong", good) == 401
        assert await status("notification", "reader", good) == 403
        assert await status("notification", "tenant", good) == 200
        assert await status("notification", "tenant", {"event_type": "mars", "identifier": {}}) == 403
        assert await status("replay", "tenant", {"event_type": "mars", "identifier": {}}) == 403
        assert await status("replay", "reader", {"event_type": "mars", "identifier": {}}) == 400
        assert (await rig.client.get("/api/v1/schema")).status_code == 200
        assert (await rig.client.delete("/api/v1/admin/wipe/all")).status_code == 401
        answer = await rig.client.delete("/api/v1/admin/wipe/all", headers={"Authorization": "Bearer tenant"})
        check(answer, 403, code="FORBIDDEN")
        answer = await rig.client.delete("/api/v1/admin/wipe/all", headers={"Authorization": "Bearer boss"})
        assert answer.json()["success"] is True


class StrictGate(OpenGate):
    """Knows one user by the name that they bring; writes down what it is asked."""

    decides = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def identify(self, exchange: Exchange) -> None:
        self.asked.append("identify")
        name = (exchange.header(b"authorization") or b"").decode()
        if name == "wrong":
            raise Unauthenticated("Invalid or expired token", schemes=("Bearer", "Basic"))
        if name == "unreachable":
            raise NotReady("auth service is not there")
        exchange.principal = User(name=name) if name else NOBODY

    async def reader(self, exchange: Exchange, event: EventType | None) -> None:
        self._stream(exchange, "reader")

    async def writer(self, exchange: Exchange, event: EventType | None) -> None:
        self._stream(exchange, "writer")

    async def admin(self, exchange: Exchange) -> None:
        self.asked.append("admin")
        await self.identify(exchange)
        if exchange.principal is NOBODY:
            raise Unauthenticated("Authorization header is required")

    async def release(self, exchange: Exchange, event: EventType | None, values: Mapping[str, str]) -> None:
        self.asked.append(f"release {values['time']}")
        if exchange.principal.name == "elsewhere":
            raise Forbidden("not your destination")

    def _stream(self, exchange: Exchange, word: str) -> None:
        self.asked.append(word)
        if exchange.principal is NOBODY:
            raise Unauthenticated("Authentication is required for this stream")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> StrictGate:
    """The gate of every server that this test makes."""
    gate = StrictGate()
    made = NotifySurface.__init__

    def guarded(self: NotifySurface, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **{**named, "gate": gate})

    monkeypatch.setattr(NotifySurface, "__init__", guarded)
    return gate


async def test_the_order_of_checks_where_callers_are_known(gate: StrictGate) -> None:
    async with running() as rig:

        async def ask(path: str, user: str, body: object) -> httpx.Response:
            gate.asked.clear()
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return await rig.client.post(
                f"/api/v1/{path}", content=content, headers={"Authorization": user} if user else {}
            )

        good = {"event_type": "test_polygon", "identifier": {**PLACE, "date": "20250706"}}
        bad_field = {"event_type": "test_polygon", "identifier": {**PLACE, "date": "no"}}
        for path in ENDPOINTS:
            wrong = await ask(path, "wrong", b"{")  # wrong credentials before a body that cannot be read
            assert wrong.headers.get_list("www-authenticate") == ["Bearer", "Basic"]
            check(wrong, 401, code="UNAUTHORIZED", message="Invalid or expired token")
            check(await ask(path, "unreachable", b"{"), 503, code="SERVICE_UNAVAILABLE")
            check(await ask(path, "", b"{"), 400, code="INVALID_JSON")  # which comes before none at all
            check(await ask(path, "", {"event_type": "nope", "identifier": {}}), 400, code="UNKNOWN_EVENT_TYPE")
            check(await ask(path, "", bad_field), 401, code="UNAUTHORIZED")  # and these before a wrong field
            check(await ask(path, "ann", bad_field), 400, code=f"INVALID_{path.upper()}_REQUEST")
        point = {"event_type": "test_polygon", "identifier": {**PLACE, "point": "1,1"}}
        check(await ask("notification", "", point), 400, code="INVALID_NOTIFICATION_REQUEST")
        check(await ask("watch", "", point), 401)
        assert (await ask("notification", "ann", good)).status_code == 200
        assert gate.asked == ["identify", "writer"]
        assert (await ask("replay", "ann", {**good, "from_id": "1"})).status_code == 200
        assert gate.asked == ["identify", "reader", "release 1200"]
        check(await ask("replay", "elsewhere", {**good, "from_id": "1"}), 403, code="FORBIDDEN")
        check(await ask("replay", "elsewhere", good), 400, code="INVALID_REPLAY_REQUEST")
        assert (await rig.client.get("/api/v1/schema", headers={"Authorization": "wrong"})).status_code == 200
        check(await rig.client.delete("/api/v1/admin/wipe/all"), 401, message="Authorization header is required")
        check(await rig.client.delete("/api/v1/admin/notification/x"), 401)
        answer = await rig.client.delete("/api/v1/admin/wipe/all", headers={"Authorization": "ann"})
        assert answer.json()["success"] is True
        body = {"event_type": "test_polygon", "identifier": PLACE}
        async with rig.client.stream("POST", "/api/v1/watch", json=body, headers={"Authorization": "ann"}):
            text = (await rig.client.get("/metrics")).text
            assert 'aviso_sse_unique_users_active{route="/api/v1/watch"} 1.0' in text
