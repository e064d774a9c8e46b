"""The OpenAPI document against what is really asked and answered: nothing in a body that it does not know, everywhere of the
type that it says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest_asyncio

from tests.topics.rig import TopicsRig
from tests.topics.viewing import frames_of, settle, watch

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "null": (type(None),),
}  # fmt: skip
STREAMS = {("get", "/v0/watch/{wid}"), ("get", "/v0/topics/{topic}/work")}


def misfit(value: Any, schema: dict[str, Any], at: str = "") -> str | None:
    """Where a value is not what a schema says, or more."""
    if "anyOf" in schema:
        found = [misfit(value, one, at) for one in schema["anyOf"]]
        return None if None in found else found[0]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(type(value) in KINDS[kind] for kind in kinds):
        return f"{at}: {value!r} is no {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at}: {value!r}"
    if isinstance(value, dict) and kinds:
        members, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, inside in value.items():
            if name not in members and others is None:
                return f"{at}.{name} is not documented"
            wrong = misfit(inside, members.get(name, others), f"{at}.{name}")
            if wrong:
                return wrong
        missing = set(schema.get("required", ())) - set(value)
        return f"{at} has no {missing}" if missing else None
    items = enumerate(value) if isinstance(value, list) and kinds else ()
    return next((wrong for place, one in items if (wrong := misfit(one, schema["items"], f"{at}[{place}]"))), None)


class Caller:
    """Calls the rig, and holds every question and answer against the document. `seen` are the operations that were done."""

    def __init__(self, rig: TopicsRig, paths: dict[str, Any]) -> None:
        self.rig = rig
        self.paths = paths
        self.seen: set[tuple[str, str, int]] = set()

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        route = re.sub(
            r"^/v0/topics/[^/?]+", "/v0/topics/{topic}", re.sub(r"^/v0/routers/[^/?]+", "/v0/routers/{router}", path)
        )
        route = route.partition("?")[0]
        operation = self.paths[route][method.lower()]
        answer = await self.rig.client.request(method, path, json=body, headers=headers)
        if body is not None and answer.is_success:
            asked = operation["requestBody"]["content"]["application/json"]
            assert misfit(body, asked["schema"]) is None
            assert misfit(asked["example"], asked["schema"]) is None
        responses = operation["responses"]
        said = responses.get(str(answer.status_code), responses["default"])["content"]["application/json"]
        assert misfit(answer.json(), said["schema"]) is None
        assert misfit(said["example"], said["schema"]) is None
        self.seen.add((method.lower(), route, answer.status_code))
        return answer.json()


@pytest_asyncio.fixture
async def call(rig: TopicsRig) -> AsyncIterator[Caller]:
    yield Caller(rig, (await rig.client.get("/openapi.json")).json()["paths"])


async def life(call: Caller) -> None:
    """Every route of the surface, with as much in each body as there can be."""
    record = {"data": {"a": [1, None]}, "tag": "t", "node": "n", "meta": {"k": 1}}
    config = {"cap_records": 3, "priority": 7, "dead_letter": "dead", "durability": "fsync"}
    await call("PUT", "/v0/topics/o", config)
    await call("PUT", "/v0/topics/o", config)
    await call("GET", "/v0/topics/o")
    await call("POST", "/v0/topics/made", {"records": [{"data": None, "meta": [1]}], "create": True, "config": config})
    written = {"records": [record] * 6, "node": "m", "idempotency_key": "k", "disable_backpressure": True}
    await call("POST", "/v0/topics/o", written)
    await call("POST", "/v0/topics/o?return_seqs=false", written)
    asked = {"from_seq": 0, "limit": 5, "node": ["x"], "include_tags": True, "wait_ms": 1, "max_batch_bytes": 9}
    assert (await call("POST", "/v0/topics/o/diff", asked))["tombstone"]
    assert (await call("POST", "/v0/topics/o/diff"))["records"]
    await call("POST", "/v0/topics/o/diff", {"from_seq": 6, "node": "x"})
    await call("POST", "/v0/topics/o/delete", {"before_seq": 5, "match": ["tag", "Glob", "*"]})
    assert (await call("GET", "/v0/topics?page_size=1"))["next_cursor"]
    await call(
        "POST",
        "/v0/watch",
        {"topics": {"o": {"from_seq": 4}, "made": {"tail": True}}, "node": ["x"], "consistency": "strong"},
    )
    await call(
        "PUT", "/v0/routers/r1", {"source": "o", "dest": "d", "filter": ["tag", "Eq", "t"], "guarantee": "exactly_once"}
    )
    await call("PUT", "/v0/routers/r2", {"source": "o", "dest": "d", "filter": "t*"})
    await call("PUT", "/v0/routers/r2", {"source": "o", "dest": "d"})
    await call("GET", "/v0/routers/r1")
    assert (await call("GET", "/v0/routers?page_size=1"))["next_cursor"]
    await call("PUT", "/v0/topics/q", {"type": "queue"})
    await call("POST", "/v0/topics/q", {"records": [record, {"data": 1}]})
    claimed = (await call("POST", "/v0/topics/q/claim", {"node": "n", "max": 2, "lease_ms": 500}))["claimed"]
    held = {"node": "n", "seqs": [1, 9], "lease_ids": [claimed[0]["lease_id"], ""]}
    await call("POST", "/v0/topics/q/extend", {**held, "lease_ms": 900})
    await call("POST", "/v0/topics/q/nack", {**held, "delay_ms": 5})
    await call("POST", "/v0/topics/q/ack", {"node": "n", "seqs": [2]})
    await call("GET", "/v0/topics/q")
    await call("DELETE", "/v0/routers/r2")
    assert (await call("DELETE", "/v0/topics/o?if_empty=false"))["routers_removed"]
    for path in ("/v0/health", "/healthz", "/v0/ready", "/readyz"):
        await call("GET", path)
    await call("GET", "/v0/metrics", accept="application/json")


async def wrongs(call: Caller) -> None:
    """Errors with facts and without, and a server that is not ready any more."""
    await call("PUT", "/v0/topics/q", {"type": "log"})
    await call("PUT", "/v0/topics/-bad")
    await call("GET", "/v0/topics/none")
    await call("GET", "/v0/routers/none")
    call.rig.assembly.readiness.draining()
    await call("GET", "/v0/ready")


async def test_bodies_are_as_the_document_says(call: Caller) -> None:
    await life(call)
    await wrongs(call)
    own = {
        (method, path)
        for path in call.paths
        if path.startswith(("/v0", "/healthz", "/readyz"))
        for method in call.paths[path]
    }
    answered = {(method, path) for method, path, status in call.seen if status < 400}
    assert own - answered == STREAMS
    assert {status for _, _, status in call.seen} == {200, 201, 400, 404, 409, 503}


async def test_every_body_and_answer_has_its_members(call: Caller) -> None:
    for path, methods in call.paths.items():
        for method, operation in methods.items():
            if not path.startswith("/v0/"):
                continue
            bodies = [operation["requestBody"]] if "requestBody" in operation else []
            for part in [*bodies, *operation["responses"].values()]:
                for media, row in part["content"].items():
                    assert row["schema"].get("properties") or media.startswith("text/"), (method, path)
            error = operation["responses"]["default"]["content"]["application/json"]["schema"]["properties"]
            assert list(error) == ["error"]
            assert set(error["error"]["properties"]) == {"code", "message", "detail"}


async def test_the_streams_that_are_shown_are_as_streams_are(call: Caller, rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/orders", {"cap_records": 1})
    await rig.write("orders", *range(2), node="node-B")
    viewer = await watch(rig, "orders")
    await rig.call("DELETE", "/topics/orders")
    await settle()
    shown = call.paths["/v0/watch/{wid}"]["get"]["responses"]["200"]["content"]["text/event-stream"]["example"]
    assert shown.startswith("retry: 2000\n\n")
    frames = [frame for frame in frames_of(shown.encode()) if frame.event != "hb"]
    assert [(frame.event, list(frame.body), list(frame.place)) for frame in frames] == [
        (frame.event, list(frame.body), list(frame.place)) for frame in viewer.frames
    ]
    work = call.paths["/v0/topics/{topic}/work"]["get"]["responses"]["200"]["content"]["text/event-stream"]["example"]
    retry, job, heartbeat, end = work.split("\n\n")
    assert (retry, heartbeat, end) == ("retry: 2000", ": hb", "")
    place, event, data = job.split("\n")
    assert (place, event) == ("id: 1", "event: job")
    assert list(msgspec.json.decode(data.removeprefix("data: "))) == [
        "topic", "$seq", "lease_id", "deadline", "$ts", "$tag", "deliveries", "data", "meta",
    ]  # fmt: skip


async def test_a_body_s_defaults_are_those_it_is_read_with(call: Caller) -> None:
    watch = call.paths["/v0/watch"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert watch["required"] == ["topics"]
    assert {name: row["default"] for name, row in watch["properties"].items() if row.get("default") is not None} == {
        "limit": 256, "max_batch_bytes": 262_144, "heartbeat_ms": 15_000, "include_meta": True, "include_tags": False,
        "include_data": True, "consistency": "eventual",
    }  # fmt: skip
    assert watch["properties"]["topics"]["additionalProperties"]["properties"]["from_seq"] == {
        "type": "integer", "minimum": 0, "default": 0,
    }  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(watch)) == watch
