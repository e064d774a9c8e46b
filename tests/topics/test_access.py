"""Who may do what, bounds over all topics, and what hangs onto a topic: in this process, with keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from seamark.errors import NotEmpty, QuotaExceeded, WriteFailed
from seamark.log.protocol import Append, StreamState
from seamark.log.record import Draft
from seamark.topics.model import TopicConfig
from tests.topics.rig import TopicsRig

KEYS = {
    "SEAMARK_API_KEYS": "boss,reader:read,writer:write,deleter:delete,tenant:rw+admin+delete:t1-,plain:rw+delete:t1-",
    "SEAMARK_MAX_TOPICS": "3",
    "SEAMARK_QUOTA_BYTES": "1000",
    "SEAMARK_MAX_BODY_BYTES": "4000",
}
ONE = {"records": [{"data": 1}]}


@pytest_asyncio.fixture
async def guarded() -> AsyncIterator[TopicsRig]:
    rig = TopicsRig(KEYS)
    await asyncio.sleep(0)
    yield rig
    await rig.close()


def code(answer: Any) -> str:
    word: str = answer["error"]["code"]
    return word


@pytest.mark.parametrize(
    ("method", "path", "body", "scope"),
    [
        ("GET", "/topics", None, "reader"),
        ("GET", "/topics/t1-a", None, "reader"),
        ("POST", "/topics/t1-a/diff", {}, "reader"),
        ("POST", "/topics/t1-a", ONE, "writer"),
        ("POST", "/topics/t1-a/delete", {"before_seq": 1}, "deleter"),
        ("DELETE", "/topics/t1-a", None, "deleter"),
        ("PUT", "/topics/t1-a", {}, ""),
    ],
)
async def test_scopes(guarded: TopicsRig, method: str, path: str, body: object, scope: str) -> None:
    await guarded.call("PUT", "/topics/t1-a", {}, key="boss")
    assert code(await guarded.call(method, path, body, status=401)) == "unauthorized"
    assert code(await guarded.call(method, path, body, key="wrong", status=401)) == "unauthorized"
    for key in ("reader", "writer", "deleter"):
        if key != scope:
            assert code(await guarded.call(method, path, body, key=key, status=403)) == "forbidden"
    await guarded.call(method, path, body, key=scope or "boss")


async def test_prefixes(guarded: TopicsRig) -> None:
    for name in ("t1-a", "other"):
        await guarded.call("PUT", f"/topics/{name}", {}, key="boss")
    for method, path, body in (
        ("GET", "/topics/other", None), ("POST", "/topics/other", ONE), ("POST", "/topics/other/diff", {}),
        ("POST", "/topics/other/delete", {}), ("DELETE", "/topics/other", None), ("PUT", "/topics/other", {}),
        ("POST", "/topics/nothing", "not even a body"),
    ):  # fmt: skip
        assert code(await guarded.call(method, path, body, key="tenant", status=403)) == "forbidden"
    listed = await guarded.call("GET", "/topics", key="tenant")
    assert [topic["topic"] for topic in listed["topics"]] == ["t1-a"]
    assert (await guarded.call("GET", "/topics/t1%2Da", key="tenant"))["topic"] == "t1-a"


async def test_what_a_key_may_not_see_does_not_shorten_its_pages(rig: TopicsRig) -> None:
    for name in ("a", "b", "c", "d", "e"):
        await rig.write(name, 1)
    states, more = await rig.surface.topics.page("", "", 2, lambda name: name in {"b", "d", "e"})
    assert ([state.name for state in states], more) == (["topics:b", "topics:d"], True)
    states, more = await rig.surface.topics.page("", "d", 2, lambda name: name in {"b", "d", "e"})
    assert ([state.name for state in states], more) == (["topics:e"], False)


async def test_a_configuration_in_a_write_wants_an_admin_where_it_makes_a_topic(guarded: TopicsRig) -> None:
    configured = {**ONE, "config": {"cap_records": 9}}
    assert code(await guarded.call("POST", "/topics/t1-a", configured, key="plain", status=403)) == "forbidden"
    nothing: dict[str, object] = {"records": [], "config": {}}
    assert code(await guarded.call("POST", "/topics/t1-a", nothing, key="plain", status=403)) == "forbidden"
    await guarded.call("POST", "/topics/t1-a", configured, key="tenant", status=201)
    await guarded.call("POST", "/topics/t1-a", configured, key="plain", status=200)
    assert (await guarded.call("GET", "/topics/t1-a", key="tenant"))["config"]["cap_records"] == 9


async def test_so_many_topics_and_no_more(guarded: TopicsRig) -> None:
    await guarded.call("POST", "/topics/a", ONE, key="boss")
    await guarded.call("PUT", "/topics/b", {}, key="boss")
    await guarded.call("POST", "/topics/c", ONE, key="boss")
    for method, body in (("PUT", {}), ("POST", ONE), ("POST", {**ONE, "config": {}})):
        error = (await guarded.call(method, "/topics/d", body, key="boss", status=429))["error"]
        assert (error["code"], error["detail"]) == ("throttled", {"limit": "max_topics", "max": 3})
        await guarded.call(method, "/topics/c", body, key="boss", status=200)
    assert code(await guarded.call("POST", "/topics/d", {**ONE, "create": False}, key="boss", status=404))
    await guarded.call("DELETE", "/topics/b", key="boss")
    await guarded.call("POST", "/topics/d", ONE, key="boss", status=201)


async def test_topics_from_before_count(rig: TopicsRig) -> None:
    for number in range(5):
        await rig.call("PUT", f"/topics/t{number}")
    topics = type(rig.surface.topics)(rig.log, rig.clock, topics_max=5)
    assert not topics.full
    await topics.load()
    assert topics.full
    topics.check_room(0)
    await rig.call("DELETE", "/topics/t0")
    topics.check_room(1)
    with pytest.raises(QuotaExceeded):
        topics.check_room(2)
    topics.close()


async def test_so_many_bytes_and_no_more(guarded: TopicsRig) -> None:
    most = {"records": [{"data": "x" * 598}]}
    await guarded.call("POST", "/topics/a", most, key="boss")
    error = (await guarded.call("POST", "/topics/b", most, key="boss", status=429))["error"]
    assert (error["code"], error["detail"]) == ("throttled", {"limit": "max_total_bytes", "max": 1000})
    await guarded.call("GET", "/topics/b", key="boss", status=404)
    await guarded.call("POST", "/topics/a/delete", {"before_seq": 2}, key="boss")
    await guarded.call("POST", "/topics/b", most, key="boss")
    await guarded.call("DELETE", "/topics/b", key="boss")
    await guarded.call("POST", "/topics/c", most, key="boss")


async def test_room_is_asked_for_with_a_word_when_to_come_back(guarded: TopicsRig) -> None:
    for name in "abc":
        await guarded.call("PUT", f"/topics/{name}", {}, key="boss")
    answer = await guarded.client.put("/v0/topics/d", headers={"Authorization": "Bearer boss"})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


async def test_a_body_beyond_the_limit(guarded: TopicsRig) -> None:
    for path in ("a", "a/diff", "a/delete"):
        body = {"records": [{"data": "x" * 4000}]}
        assert code(await guarded.call("POST", f"/topics/{path}", body, key="boss", status=413)) == "payload_too_large"


async def test_routers_go_with_their_topic(rig: TopicsRig) -> None:
    asked: list[str] = []

    async def removal(name: str) -> list[str]:
        asked.append(name)
        return ["b->c", "a->b"]

    rig.surface.topics.on_removal = removal
    await rig.call("DELETE", "/topics/t")
    await rig.write("t", 1)
    await rig.call("DELETE", "/topics/t?if_empty=true", status=409)
    assert asked == []
    assert (await rig.call("DELETE", "/topics/t"))["routers_removed"] == ["a->b", "b->c"]
    assert asked == ["t"]


async def test_a_topic_that_is_fed_is_brought_up_to_date_before_it_is_read(rig: TopicsRig) -> None:
    topics = rig.surface.topics
    await rig.write("dest", 0)
    asked: list[str] = []

    async def catch_up(name: str) -> None:
        asked.append(name)
        await rig.write(name, len(asked))

    topics.derived, topics.before_read = {"dest"}.__contains__, catch_up
    assert [record["data"] for record in (await rig.diff("dest"))["records"]] == [0, 1]
    assert (await rig.state("dest"))["head_seq"] == 3
    assert [record["data"] for record in (await rig.diff("dest", 2, node="me"))["records"]] == [2, 3]
    await rig.write("t", 1)
    await rig.diff("t")
    await rig.state("t")
    assert asked == ["dest"] * 3


async def test_a_queue_says_how_its_jobs_stand(rig: TopicsRig) -> None:
    async def facts(state: StreamState) -> dict[str, int]:
        return {"ready": state.count, "in_flight": 7, "dead_lettered": 8}

    rig.surface.topics.queue_facts = facts
    await rig.write("q", 1, 2, config={"type": "queue"})
    assert (await rig.state("q"))["queue"] == {"ready": 2, "in_flight": 7, "dead_lettered": 8}
    await rig.write("t", 1)
    assert "queue" not in await rig.state("t")


async def test_making_sure_of_a_topic(rig: TopicsRig) -> None:
    topics = rig.surface.topics
    assert await topics.ensure("t", TopicConfig(cap_records=3)) is True
    assert await topics.ensure("t", TopicConfig(cap_records=9)) is False
    assert (await rig.state("t"))["config"]["cap_records"] == 3


async def test_priority_follows_attention(rig: TopicsRig) -> None:
    await rig.write("t", 1)

    async def priority() -> int:
        value: int = (await rig.state("t"))["effective_priority"]
        return value

    assert await priority() == 0
    assert (await rig.call("GET", "/topics/t"))["effective_priority"] == 500
    for seconds, left in ((30, 250), (30, 125), (15, 88), (224, 0), (1, 0)):
        rig.clock.advance(seconds)
        assert await priority() == left
    await rig.diff("t")
    assert await priority() == 500
    for config, given in (({"priority": 9_999}, 1000), ({"priority": -9_999}, -1000), ({"priority": 0}, 0), ({"auto_priority": False}, 0)):  # fmt: skip
        await rig.call("PUT", "/topics/t", config)
        assert await priority() == given
        listed = (await rig.call("GET", "/topics"))["topics"]
        assert [topic["effective_priority"] for topic in listed] == [given]


async def test_times_of_reading_and_writing(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/t")
    now_ms = rig.clock.now_ns() // 1_000_000
    assert [(await rig.state("t"))[key] for key in ("last_write_ts", "last_read_ts")] == [None, None]
    await rig.write("t", 1)
    rig.clock.advance(1)
    assert (await rig.call("GET", "/topics"))["topics"][0]["effective_priority"] == 0
    assert (await rig.state("t"))["last_read_ts"] is None
    await rig.call("GET", "/topics?touch=true")
    assert [(await rig.state("t"))[key] for key in ("last_write_ts", "last_read_ts")] == [now_ms, now_ms + 1_000]
    rig.clock.advance(1)
    assert (await rig.call("GET", "/topics/t"))["last_read_ts"] == now_ms + 2_000
    rig.clock.advance(1)
    await rig.call("GET", "/topics/t?touch=0")
    assert (await rig.state("t"))["last_read_ts"] == now_ms + 2_000
    await rig.call("DELETE", "/topics/t")
    await rig.call("PUT", "/topics/t")
    assert (await rig.state("t"))["last_read_ts"] is None


async def test_a_key_is_forgotten_after_its_window(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/t", {"idempotency_window_ms": 1_000})
    assert (await rig.write("t", 1, idempotency_key="k"))["seqs"] == [1]
    rig.clock.advance(1)
    assert (await rig.write("t", 1, idempotency_key="k"))["deduped"] is True
    rig.clock.advance(0.001)
    assert (await rig.write("t", 1, idempotency_key="k"))["seqs"] == [2]


async def test_a_store_that_fails_is_our_fault_and_says_no_more(
    rig: TopicsRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        rig.log.writer, "submit", lambda append, done: done(WriteFailed("no space on /var/x", cause="/var/x"))
    )
    error = (await rig.call("POST", "/topics/t", ONE, status=500))["error"]
    assert error["code"] == "internal"
    assert "/var" not in error["message"]


async def test_a_log_that_only_answers_later_is_served_as_well(rig: TopicsRig) -> None:
    rig.surface.topics.reads = None
    configured = {**ONE, "config": {"cap_records": 2}}
    assert (await rig.call("POST", "/topics/t", configured, status=201))["created"] is True
    await rig.call("POST", "/topics/t", configured, status=200)
    await rig.write("t", 2, node="me")
    page = await rig.diff("t", node="me")
    assert ([record["$seq"] for record in page["records"]], page["tombstone"]["gap_to"]) == ([2], 1)
    asked = asyncio.ensure_future(rig.diff("t", 3, wait_ms=20_000))
    await asyncio.sleep(0.01)
    await rig.write("t", 4)
    assert [record["$seq"] for record in (await asked)["records"]] == [4]
    await rig.call("POST", "/topics/nothing/diff", {"wait_ms": 20_000}, status=404)
    assert len(rig.surface.topics.waiting) == 0


async def test_what_was_accepted_before_the_removal_is_not_lost_to_it(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/t")
    receipts: list[object] = []
    rig.log.writer.submit(Append(stream="topics:t", drafts=[Draft(b"1")]), receipts.append)
    with pytest.raises(NotEmpty):
        await rig.surface.topics.remove("t", if_empty=True)
    assert (await rig.state("t"))["count"] == len(receipts) == 1


async def test_a_stop_answers_whoever_waits(rig: TopicsRig) -> None:
    await rig.write("t", 1)
    asked = [asyncio.ensure_future(rig.diff("t", 1, wait_ms=20_000)) for _ in range(3)]
    await asyncio.sleep(0.01)
    await rig.assembly.drain()
    assert [page["next_from_seq"] for page in await asyncio.gather(*asked)] == [1, 1, 1]
    assert (await rig.diff("t", 1, wait_ms=20_000))["records"] == []
