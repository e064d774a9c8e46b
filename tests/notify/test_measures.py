"""The contract's metrics: their names, and what is counted under them."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seamark.notify.measures import SERIES, Measures, mirror_http
from seamark.telemetry.metrics import METRICS, SECONDS, Metrics
from tests.notify.rig import PLACE_BODY, NotifyRig

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scraped(rig: NotifyRig) -> Samples:
    text = (await rig.client.get("/metrics")).text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def at(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"aviso_{name}", tuple(sorted(labels.items()))]


def test_rows_are_named_as_prometheus_wants_them() -> None:
    names = [row.name for row in SERIES]
    assert len(names) == len(set(names))
    assert not set(names) & {row.name for row in METRICS}
    for row in SERIES:
        assert re.fullmatch(r"aviso_[a-z_]+", row.name)
        assert row.name.endswith("_total") == (row.kind == "counter")
        assert bool(row.buckets) == (row.kind == "histogram")
        assert row.help.endswith(".")


async def test_bounded_series_are_there_before_anything_happens(rig: NotifyRig) -> None:
    samples = await scraped(rig)
    for event_type in ("test_polygon", "generic", "unknown"):
        for status in ("success", "error", "rejected"):
            assert at(samples, "notifications_total", event_type=event_type, status=status) == 0
        for route in ("/api/v1/watch", "/api/v1/replay"):
            assert at(samples, "sse_connections_active", route=route, event_type=event_type) == 0
            assert at(samples, "sse_events_sent_total", route=route, event_type=event_type) == 0
    for operation in ("publish", "get_batch", "wipe_stream", "wipe_all", "delete_message"):
        for outcome in ("ok", "error"):
            labels = {"backend": "embedded", "operation": operation, "outcome": outcome}
            assert at(samples, "backend_operations_total", **labels) == 0
    for method in ("GET", "POST", "DELETE"):
        assert at(samples, "http_requests_in_flight", method=method) == 0


async def test_notifications_by_what_became_of_them(rig: NotifyRig) -> None:
    await rig.notify()
    await rig.ask("notification", b"{")
    await rig.ask("notification", {"event_type": "nope", "identifier": {}})
    await rig.ask("notification", {"event_type": "mars", "identifier": {}})
    await rig.ask("notification", {"event_type": "mars", "identifier": {"point": "1,1"}})
    samples = await scraped(rig)
    assert at(samples, "notifications_total", event_type="test_polygon", status="success") == 1
    assert at(samples, "notifications_total", event_type="unknown", status="rejected") == 2
    assert at(samples, "notifications_total", event_type="mars", status="rejected") == 2
    assert at(samples, "http_requests_in_flight", method="POST") == 0
    publish = {"backend": "embedded", "operation": "publish", "outcome": "ok"}
    assert at(samples, "backend_operations_total", **publish) == 1
    assert at(samples, "backend_operation_duration_seconds_count", **publish) == 1


async def test_streams(rig: NotifyRig) -> None:
    watch = {"route": "/api/v1/watch", "event_type": "test_polygon"}
    async with rig.watch() as first, rig.watch() as second:
        await first.until("heartbeat")
        await second.until("heartbeat")
        await rig.notify()
        await first.until("@1")
        samples = await scraped(rig)
        assert at(samples, "sse_connections_active", **watch) == 2
        assert at(samples, "sse_events_sent_total", **watch) == 2
        rig.pass_time(3_600)
        await first.to_the_end()
        await second.to_the_end()
    await rig.replay(from_id="1")
    samples = await scraped(rig)
    assert at(samples, "sse_connections_active", **watch) == 0
    assert at(samples, "sse_connections_total", **watch) == 2
    assert at(samples, "sse_stream_errors_total", **watch) == 0
    assert at(samples, "sse_connection_duration_seconds_sum", route="/api/v1/watch") == 7_200
    replay = {"route": "/api/v1/replay", "event_type": "test_polygon"}
    assert at(samples, "sse_events_sent_total", **replay) == 1
    assert at(samples, "sse_unique_users_active", route="/api/v1/watch") == 0  # nobody has a name


async def test_requests_by_route(rig: NotifyRig) -> None:
    await rig.ask("notification", PLACE_BODY)
    await rig.client.get("/api/v1/schema/mars")
    await rig.client.get("/nowhere")
    await rig.client.get("/health")
    await rig.client.get("/ready")
    samples = await scraped(rig)
    for route in ("/health", "/ready"):
        assert at(samples, "http_requests_total", route=route, method="GET", status_code="200") == 1
    post = {"route": "/api/v1/notification", "method": "POST"}
    assert at(samples, "http_requests_total", **post, status_code="200") == 1
    assert at(samples, "http_request_duration_seconds_count", **post) == 1
    schema = {"route": "/api/v1/schema/{event_type}", "method": "GET"}
    assert at(samples, "http_requests_total", **schema, status_code="200") == 1
    assert at(samples, "http_requests_total", route="unmatched", method="GET", status_code="404") == 1
    assert not [key for key in samples if key[0] == "aviso_http_requests_total" and ("route", "/metrics") in key[1]]


@pytest.mark.parametrize("seconds", [0.0004, 0.005, 0.0051, 0.3, 10.0, 99.0])
def test_coarser_buckets_hold_the_same(seconds: float) -> None:
    metrics = Metrics((*METRICS, *SERIES))
    metrics.histogram("seamark_http_request_seconds", "/x").observe(seconds)
    mirror_http(metrics, {"/x": "GET"})
    coarse = metrics.histogram("aviso_http_request_duration_seconds", "/x", "GET")
    assert set(coarse.bounds) <= set(SECONDS)
    expected = next((place for place, bound in enumerate(coarse.bounds) if seconds <= bound), len(coarse.bounds))
    assert [place for place, count in enumerate(coarse.counts) if count] == [expected]
    assert coarse.sum == seconds


def test_the_version_is_told() -> None:
    metrics = Metrics((*METRICS, *SERIES))
    Measures(metrics, (), backend="memory", version="9.9")
    assert b'aviso_build_info{version="9.9"} 1.0' in metrics.text()
