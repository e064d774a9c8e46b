"""Health, readiness and metrics of the surface, asked over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import seamark
from seamark import limits
from tests.topics.rig import TopicsRig

KEYS = {"SEAMARK_API_KEYS": "all,writer:write,mine:read:mine-"}


@pytest.fixture
async def keyed() -> AsyncIterator[TopicsRig]:
    rig = TopicsRig(KEYS)
    yield rig
    await rig.close()


async def series(rig: TopicsRig, key: str = "") -> dict[tuple[str, str], float]:
    """What a scraper sees: (name, values of its labels) to value."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = await rig.client.get("/v0/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.text)
    return {(one.name, ",".join(one.labels.values())): one.value for family in families for one in family.samples}


async def as_json(rig: TopicsRig) -> Any:
    answer = await rig.client.get("/v0/metrics", headers={"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


@pytest.mark.parametrize("path", ["/v0/health", "/healthz"])
async def test_health_says_what_and_for_how_long(rig: TopicsRig, path: str) -> None:
    rig.clock.advance(1.5)
    answer = await rig.client.get(path)
    assert answer.json() == {"status": "ok", "version": seamark.__version__, "uptime_ms": 1_500}


@pytest.mark.parametrize("path", ["/v0/ready", "/readyz"])
async def test_ready_counts_the_topics(rig: TopicsRig, path: str) -> None:
    await rig.write("a", 1)
    await rig.write("b", 1)
    answer = await rig.client.get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "wal_replay_complete": True, "topics": 2})


async def test_who_asks_before_the_topics_are_known_is_told_how_far_it_is(rig: TopicsRig) -> None:
    await asyncio.sleep(0)  # loaded once, by the surface itself
    rig.surface.topics.loaded = False
    answer = await rig.client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    error = answer.json()["error"]
    assert (error["code"], error["detail"]) == ("not_ready", {"replay_progress": 0.0})
    assert (await as_json(rig))["ready"] is False
    await rig.surface.topics.load()
    assert (await rig.client.get("/readyz")).status_code == 200


async def test_a_server_that_goes_down_says_so(rig: TopicsRig) -> None:
    rig.assembly.readiness.draining()
    answer = await rig.client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"]["code"] == "shutting_down"
    assert (await rig.client.get("/healthz")).status_code == 200
    assert (await series(rig))["topics_ready", ""] == 0


async def test_metrics_count_topics_in_all_and_one_by_one(rig: TopicsRig) -> None:
    await rig.call("PUT", "/topics/orders", {"durability": "fsync", "cap_records": 2})
    await rig.call("PUT", "/topics/jobs", {"type": "queue"})
    await rig.write("orders", 1, 2, 3)
    await rig.write("jobs", 1, 2)
    await rig.call("POST", "/topics/jobs/claim", {"node": "n", "max": 1})
    await rig.call("POST", "/watch", {"topics": {"orders": {}}})
    rig.clock.advance(2)
    seen = await series(rig)
    expected = {
        ("topics_topics", ""): 2,
        ("topics_topics_by_class", "fsync"): 1,
        ("topics_topics_by_class", "disk"): 1,
        ("topics_topics_by_class", "memory"): 0,
        ("topics_topics_by_class", "ephemeral"): 0,
        ("topics_routers", ""): 0,
        ("topics_records_live", ""): 4,
        ("topics_queue_topics", ""): 1,
        ("topics_queue_leases_in_flight", ""): 1,
        ("topics_sse_connections", ""): 0,
        ("topics_watch_sessions", ""): 1,
        ("topics_ready", ""): 1,
        ("topics_recovery_progress", ""): 1,
        ("topics_uptime_ms", ""): 2_000,
        ("topics_topic_head_seq", "orders"): 3,
        ("topics_topic_earliest_seq", "orders"): 2,
        ("topics_topic_records_live", "orders"): 2,
        ("topics_topic_bytes_live", "orders"): 2,
        ("topics_topic_queue_ready", "jobs"): 1,
        ("topics_topic_queue_in_flight", "jobs"): 1,
        ("topics_topic_metrics_truncated", ""): 0,
        ("topics_wal_frames_total", ""): 2,
        ("topics_wal_rotations_total", ""): 0,
        ("topics_wal_queue_depth", ""): 0,
        ("topics_wal_submit_full_total", ""): 0,
        ("topics_wal_read_only", ""): 0,
    }
    assert {name: seen.get(name) for name in expected} == expected
    assert seen["topics_wal_batches_total", ""] > 0
    assert ("topics_topic_queue_ready", "orders") not in seen
    bounds = [labels for name, labels in seen if name == "topics_wal_fsync_latency_us_bucket"]
    assert [float(bound) for bound in bounds] == [
        50, 100, 250, 500, 1_000, 5_000, 10_000, 50_000, 100_000, float("inf"),
    ]  # fmt: skip


async def test_metrics_as_json_have_the_keys_of_the_contract(rig: TopicsRig) -> None:
    await rig.write("a", 1)
    told = await as_json(rig)
    log = told.pop("wal")
    rig.clock.advance(0.25)
    assert told == {
        "topics": 1, "topics_ephemeral": 0, "topics_memory": 0, "topics_disk": 1, "topics_fsync": 0, "routers": 0,
        "records_live": 1, "bytes_live": 1, "queue_topics": 0, "queue_leases_in_flight": 0, "sse_connections": 0,
        "watch_sessions": 0, "ready": True, "replay_progress": 1.0, "uptime_ms": 0,
    }  # fmt: skip
    assert set(log) == {
        "fsyncs", "frames", "batches", "bytes_written", "rotations", "queue_depth", "queue_depth_peak",
        "submit_full_total", "read_only", "fsync_count", "fsync_micros_total",
    }  # fmt: skip
    assert (log["frames"], log["read_only"], log["queue_depth_peak"]) == (1, False, 1)


async def test_only_so_many_topics_have_series_of_their_own(rig: TopicsRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOPICS_MEASURED_MAX", 2)
    for name in ("c", "a", "b"):
        await rig.write(name, 1)
    seen = await series(rig)
    assert {labels for name, labels in seen if name == "topics_topic_head_seq"} == {"a", "b"}
    assert seen["topics_topic_metrics_truncated", ""] == 1
    assert seen["topics_topics", ""] == 3


async def test_metrics_need_read_and_name_only_what_may_be_read(keyed: TopicsRig) -> None:
    for name in ("mine-1", "theirs"):
        await keyed.call("POST", f"/topics/{name}", {"records": [{"data": 1}]}, key="all")
    await keyed.call("GET", "/metrics", status=401)
    await keyed.call("GET", "/metrics", key="writer", status=403)
    seen = await series(keyed, "mine")
    assert {labels for name, labels in seen if name == "topics_topic_head_seq"} == {"mine-1"}
    assert seen["topics_topics", ""] == 2


async def test_probes_are_open_unless_they_are_guarded(keyed: TopicsRig) -> None:
    for path in ("/v0/health", "/healthz", "/v0/ready", "/readyz"):
        assert (await keyed.client.get(path)).status_code == 200
    guarded = TopicsRig({**KEYS, "TOPICS_PROBE_AUTH": "1"})
    await asyncio.sleep(0)  # the topics are loaded
    for path in ("/v0/health", "/healthz", "/v0/ready", "/readyz"):
        answer = await guarded.client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
        assert "www-authenticate" not in answer.headers
        headers = {"Authorization": "Bearer writer"}  # any key will do
        assert (await guarded.client.get(path, headers=headers)).status_code == 200
    await guarded.close()
