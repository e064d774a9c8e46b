"""What a topic is after its server stopped, or was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from seamark.testing.server import ServerProcess
from tests.topics.test_routes import put, write
from tests.topics.test_writes import diff

pytestmark = pytest.mark.slow  # processes of their own


def facts(client: httpx.Client, name: str) -> dict[str, Any]:
    state: dict[str, Any] = client.get(f"/v0/topics/{name}", params={"touch": "false"}).json()
    del state["performance"]
    return state


@pytest.mark.parametrize("durability", ["disk", "fsync"])
def test_everything_is_as_it_was(tmp_path: Path, durability: str) -> None:
    config = {"durability": durability, "cap_records": 4, "priority": 7, "idempotency_window_ms": 3_600_000}
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url) as client:
            put(client, "t", **config)
            write(client, "t", 1, 2, 3, 4, 5, 6, node="n")
            client.post("/v0/topics/t/delete", json={"before_seq": 5})
            first = write(client, "t", "keyed", idempotency_key="k")
            before, page = facts(client, "t"), diff(client, "t")
        server.restart()
        with httpx.Client(base_url=server.base_url) as client:
            assert facts(client, "t") == {**before, "last_read_ts": None}
            again = diff(client, "t")
            assert {**again, "performance": 0} == {**page, "performance": 0}
            assert again["tombstone"]["gap_to"] == 2
            repeated = write(client, "t", "keyed", idempotency_key="k")
            assert (repeated["deduped"], repeated["seqs"]) == (True, first["seqs"])
            assert write(client, "t", 8)["seqs"] == [8]


def test_a_killed_server_has_lost_nothing_that_was_to_be_durable(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url) as client:
            put(client, "t", durable=True)
            write(client, "t", "a", "b", node="n")
            client.post("/v0/topics/t/delete", json={"before_seq": 2})
            before = facts(client, "t")
        server.kill()
        server.start()
        with httpx.Client(base_url=server.base_url) as client:
            assert facts(client, "t") == before
            assert [record["data"] for record in diff(client, "t")["records"]] == ["b"]
            assert write(client, "t", "c")["seqs"] == [3]


def test_records_of_class_ephemeral_go_and_their_topic_stays(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url) as client:
            put(client, "t", durability="ephemeral", ttl_ms=86_400_000)
            assert write(client, "t", 1, 2)["performance"]["fsync_ms"] == 0
        server.restart()
        with httpx.Client(base_url=server.base_url) as client:
            state = facts(client, "t")
            assert (state["config"]["durability"], state["config"]["ttl_ms"], state["count"]) == (
                "ephemeral",
                86_400_000,
                0,
            )
            page = diff(client, "t")
            assert (page["records"], page["caught_up"]) == ([], True)
            assert page["tombstone"]["reason"] == "mixed"
            assert write(client, "t", 3)["first_seq"] > 2
