from __future__ import annotations

from collections.abc import Callable

import msgspec

import seamark
from seamark.http.health import Readiness, openapi_route
from seamark.http.openapi import Info
from seamark.wire.exchange import Route
from tests.http.rig import Client, Running


def test_health_tells_the_version_and_the_age(client: Client) -> None:
    answer = client.get("/health")
    facts = msgspec.json.decode(answer.body)
    assert (answer.status, facts["status"], facts["version"]) == (200, "ok", seamark.__version__)
    assert facts["uptime_seconds"] >= 0
    assert answer.headers["cache-control"] == "no-store"


def test_readiness_tells_the_truth(client: Client, server: Running) -> None:
    assert client.get("/ready").status == 200
    trouble: list[str] = []
    server.call(lambda: server.readiness.add(lambda: trouble[0] if trouble else None))
    assert client.get("/ready").body == b'{"status":"ready","backend_connected":true}'
    trouble.append("the store takes no writes")
    answer = client.get("/ready")
    assert answer.status == 503
    assert msgspec.json.decode(answer.body) == {
        "status": "not_ready",
        "backend_connected": False,
        "reasons": ["the store takes no writes"],
    }
    trouble.clear()
    assert client.get("/ready").status == 200


def test_a_server_is_not_ready_before_its_start_and_after_its_stop_was_asked_for() -> None:
    readiness = Readiness([lambda: None])
    assert readiness.reasons() == ["starting"]
    readiness.started()
    assert readiness.reasons() == []
    readiness.draining()
    assert readiness.reasons() == ["draining"]


def test_metrics_are_prometheus_text(client: Client) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"# TYPE seamark_http_connections gauge" in answer.body


def test_the_openapi_document_holds_the_whole_table(start: Callable[..., Running]) -> None:
    table: list[Route] = []
    own = openapi_route(lambda: table, Info(title="T", version="1"))
    server = start(extra=[own])
    table.extend(server.front.table.routes)
    with server.client() as client:
        document = msgspec.json.decode(client.get("/openapi.json").body)
    assert {"/openapi.json", "/health", "/ready", "/metrics", "/hot/echo/{name}"} <= set(document["paths"])
