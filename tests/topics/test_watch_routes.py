"""Making watch sessions, and who may open their streams: what is answered before any stream is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from seamark.limits import LEGS_PER_SESSION_MAX, WATCH_SESSION_SECONDS
from seamark.topics.sessions import Wanted
from tests.topics.rig import TopicsRig

KEYS = {"SEAMARK_API_KEYS": "all,ours:read:ours-|both-,writer:write,others:read:others-"}
U64 = 2**64 - 1


@pytest_asyncio.fixture
async def keyed() -> AsyncIterator[TopicsRig]:
    rig = TopicsRig(KEYS)
    for name in ("ours-a", "others-a", "both-a"):
        await rig.call("PUT", f"/topics/{name}", {}, key="all")
    yield rig
    await rig.close()


async def refusal(rig: TopicsRig, status: int, body: object, path: str = "/watch", **more: Any) -> dict[str, Any]:
    error: dict[str, Any] = (await rig.call("POST", path, body, status=status, **more))["error"]
    assert set(error) <= {"code", "message", "detail"}
    return error


async def wanted(rig: TopicsRig, **options: object) -> Wanted:
    """What a session asks for whose body has these."""
    wid = (await rig.call("POST", "/watch", {"topics": {"o": {}}, **options}))["wid"]
    return rig.surface.watches.sessions.find(wid).wanted


async def test_the_answer(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/o", {"cap_records": 2})
    await rig.write("o", *range(5))
    answer = await rig.call("POST", "/watch", {"topics": {"o": {"from_seq": 1}}, "unknown": 1})
    assert list(answer) == ["wid", "stream_url", "session_ttl_ms", "topics", "performance"]
    assert answer["stream_url"] == f"/v0/watch/{answer['wid']}"
    assert answer["session_ttl_ms"] == 300_000
    assert answer["topics"] == {"o": {"from_seq": 1, "head_seq": 5, "earliest_seq": 4}}
    assert answer["performance"]["server_total_ms"] >= 0


@pytest.mark.parametrize(
    "body",
    [
        None, [], {}, {"topics": {}}, {"topics": []}, {"topics": {"o": None}}, {"topics": {"o": []}},
        {"topics": {"o": {"from_seq": "1"}}}, {"topics": {"o": {"from_seq": -1}}}, {"topics": {"o": {"from_seq": 1.0}}},
        {"topics": {"o": {"from_seq": True}}}, {"topics": {"o": {"from_seq": U64 + 1}}}, {"topics": {"o": {"tail": 1}}},
        {"topics": {"o": {}}, "limit": -1}, {"topics": {"o": {}}, "limit": 2**32}, {"topics": {"o": {}}, "limit": None},
        {"topics": {"o": {}}, "heartbeat_ms": "1"}, {"topics": {"o": {}}, "max_batch_bytes": U64 + 1},
        {"topics": {"o": {}}, "include_meta": 1}, {"topics": {"o": {}}, "consistency": "perfect"},
        {"topics": {"o": {}}, "node": 1}, {"topics": {"o": {}}, "node": [1]},
        {"topics": {f"t{n}": {} for n in range(LEGS_PER_SESSION_MAX + 1)}},
    ],
)  # fmt: skip
async def test_what_is_no_subscription(rig: TopicsRig, body: object) -> None:
    await rig.write("o", 1)
    if body is None:
        answer = await rig.client.post("/v0/watch", content=b"null", headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")
        return
    assert (await refusal(rig, 400, body))["code"] == "invalid_request"


async def test_the_content_type_comes_first(rig: TopicsRig) -> None:
    for headers in ({}, {"Content-Type": "text/plain"}):
        answer = await rig.client.post("/v0/watch", content=b"{", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


async def test_a_body_is_bounded_as_that_of_any_other_call() -> None:
    rig = TopicsRig({"TOPICS_MAX_BODY_BYTES": "1000"})
    await rig.call("PUT", "/topics/o", {})
    error = await refusal(rig, 413, {"topics": {"o": {}}, "more": "x" * 1_000})
    assert (error["code"], error["detail"]) == ("payload_too_large", {"max": 1_000})
    await rig.close()


async def test_as_many_topics_as_there_may_be(rig: TopicsRig) -> None:
    names = [f"t{n}" for n in range(LEGS_PER_SESSION_MAX)]
    for name in names:
        await rig.call("PUT", f"/topics/{name}", {})
    answer = await rig.call("POST", "/watch", {"topics": {name: {} for name in names}})
    assert list(answer["topics"]) == names


async def test_unknown_topics(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    body: dict[str, Any] = {"topics": {"o": {}, "nope": {}, "not a name!": {}}}
    error = await refusal(rig, 404, body)
    assert (error["code"], error["detail"]) == ("topic_not_found", {"topic": "nope"})
    assert list((await rig.call("POST", "/watch?lenient=true", body))["topics"]) == ["o"]
    assert (await refusal(rig, 404, {"topics": {"nope": {}}}, "/watch?lenient=true"))["code"] == "topic_not_found"
    assert (await refusal(rig, 404, body, "/watch?lenient=maybe"))["code"] == "topic_not_found"


async def test_what_is_asked_for_is_moved_into_its_range(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    usual = await wanted(rig)
    assert (usual.records_max, usual.bytes_max, usual.heartbeat_ms) == (256, 262_144, 15_000)
    assert (usual.variant, usual.strong, usual.nodes) == ((True, False, True), False, ())
    none = await wanted(rig, limit=0, max_batch_bytes=0, heartbeat_ms=0, node=None)
    assert (none.records_max, none.bytes_max, none.heartbeat_ms) == (256, 1 << 20, 1_000)
    most = await wanted(rig, limit=2**32 - 1, max_batch_bytes=U64, heartbeat_ms=U64)
    assert (most.records_max, most.bytes_max, most.heartbeat_ms) == (1_000, 8 << 20, 60_000)
    told = await wanted(rig, include_meta=False, include_tags=True, include_data=False, consistency="strong", node="n")
    assert (told.variant, told.strong, told.nodes) == ((False, True, False), True, ("n",))
    assert (await wanted(rig, node=["a", "b"])).nodes == ("a", "b")


async def test_a_start_beyond_64_bit_signed_is_a_start(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    answer = await rig.call("POST", "/watch", {"topics": {"o": {"from_seq": U64}}})
    assert answer["topics"]["o"]["from_seq"] == U64


async def test_sessions_are_bounded_and_given_up_when_idle() -> None:
    rig = TopicsRig({"TOPICS_MAX_WATCH_SESSIONS": "2"})
    await rig.write("o", 1)
    body: dict[str, Any] = {"topics": {"o": {}}}
    for _ in range(2):
        wid = (await rig.call("POST", "/watch", body))["wid"]
    answer = await rig.client.post("/v0/watch", json=body)
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["error"] | {"message": ""} == {
        "code": "throttled", "message": "", "detail": {"limit": "max_watch_sessions", "max": 2},
    }  # fmt: skip
    rig.clock.advance(WATCH_SESSION_SECONDS + 1)
    await refusal(rig, 404, {"topics": {"nope": {}}})  # which also gives up what is idle
    assert len(rig.surface.watches.sessions) == 0
    await rig.call("POST", "/watch", body)
    assert (await rig.call("GET", f"/watch/{wid}", status=404))["error"]["code"] == "not_found"
    await rig.close()


@pytest.mark.parametrize(
    ("key", "body", "status", "detail"),
    [
        ("", {"topics": {"ours-a": {}}}, 401, None),
        ("wrong", {"topics": {"ours-a": {}}}, 401, None),
        ("writer", {"topics": {"ours-a": {}}}, 403, None),
        ("ours", {"topics": {"ours-a": {}, "others-a": {}}}, 403, {"topic": "others-a"}),
        ("ours", {"topics": {"others-unknown": {}}}, 403, {"topic": "others-unknown"}),
        ("ours", {"topics": {"ours-unknown": {}}}, 404, {"topic": "ours-unknown"}),
        ("ours", {"topics": {}}, 400, None),
    ],
)
async def test_who_may_watch_what(
    keyed: TopicsRig, key: str, body: object, status: int, detail: dict[str, str] | None
) -> None:
    error = await refusal(keyed, status, body, key=key)
    assert error.get("detail") == detail


async def test_a_token_in_the_query_makes_no_session(keyed: TopicsRig) -> None:
    await refusal(keyed, 401, {"topics": {"ours-a": {}}}, "/watch?token=all")


async def test_a_stream_is_its_makers(keyed: TopicsRig) -> None:
    wid = (await keyed.call("POST", "/watch", {"topics": {"both-a": {}}}, key="ours"))["wid"]
    for path, key in (
        (wid, ""),
        (wid, "wrong"),
        (wid, "all"),
        (f"{wid}?token=all", ""),
        (f"{wid}?token=wrong&token=ours", ""),  # the first counts
        (f"{wid}?token=ours", "all"),  # the header wins
        (f"{wid}?key=ours", ""),
    ):
        assert (await keyed.call("GET", f"/watch/{path}", key=key, status=401))["error"]["code"] == "unauthorized"
    unknown = await keyed.call("GET", "/watch/wid_AAAAAAAAAAAAAAAAAAAAAA", status=404)
    assert unknown["error"]["code"] == "not_found"
    for path in (wid, f"{wid}?token=%6furs"):
        answer = await keyed.client.head(
            f"/v0/watch/{path}", headers={"Authorization": "Bearer ours"} if path == wid else {}
        )
        assert answer.status_code == 200


async def test_a_key_that_was_given_less_since_reads_less(keyed: TopicsRig, monkeypatch: pytest.MonkeyPatch) -> None:
    wid = (await keyed.call("POST", "/watch", {"topics": {"both-a": {}}}, key="ours"))["wid"]
    keys = keyed.surface._watch_routes._keys
    holder = keys.authenticate([(b"authorization", b"Bearer ours")])
    monkeypatch.setattr(holder, "prefixes", ("ours-",))
    error = (await keyed.call("GET", f"/watch/{wid}", key="ours", status=403))["error"]
    assert error["detail"] == {"topic": "both-a"}


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 404), ("", 404), ("text/event-stream", 404), ("*/*", 404), ("text/*", 404), ("TEXT/Event-Stream", 404),
        ("application/json, text/event-stream;q=0.5", 404), ("application/json", 406), ("text/plain", 406),
        ("text/event-stream;q=0", 406), ("text/event-streams", 406),
    ],
)  # fmt: skip
async def test_only_event_streams_are_served(rig: TopicsRig, accept: str | None, status: int) -> None:
    """Where the client takes one, the next thing to be wrong is the session."""
    del rig.client.headers["accept"]
    headers = {} if accept is None else {"Accept": accept}
    answer = await rig.client.get("/v0/watch/wid_AAAAAAAAAAAAAAAAAAAAAA", headers=headers)
    code = {404: "not_found", 406: "not_acceptable"}[status]
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


async def test_open_streams_are_bounded_by_the_maker() -> None:
    rig = TopicsRig({"TOPICS_MAX_SSE_CONNECTIONS_PER_KEY": "1"})
    await rig.write("o", 1)
    rig.surface.slots.take("anyone")
    wid = (await rig.call("POST", "/watch", {"topics": {"o": {}}}))["wid"]
    answer = await rig.client.get(f"/v0/watch/{wid}")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert answer.json()["error"]["detail"] == {"limit": "max_sse_connections_per_key", "max": 1}
    await rig.close()


async def test_a_look_at_the_headers_opens_nothing(rig: TopicsRig) -> None:
    await rig.write("o", 1)
    wid = (await rig.call("POST", "/watch", {"topics": {"o": {}}}))["wid"]
    answer = await rig.client.head(f"/v0/watch/{wid}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert rig.surface.watches.sessions.find(wid).stream is None
    assert rig.surface.slots.open == 0
