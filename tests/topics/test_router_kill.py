"""kill -9 while routers copy: what is acknowledged in the source is in every dest behind it, once, in order."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from seamark.testing.server import ServerProcess

pytestmark = pytest.mark.slow

KILLS = 5
SEED = 20260603


class Writer(threading.Thread):
    """Writes numbers in small batches until the server is gone."""

    def __init__(self, base_url: str, first: int) -> None:
        super().__init__()
        self.acknowledged: list[int] = []
        self.enough = threading.Event()
        self._base_url = base_url
        self._next = first

    def run(self) -> None:
        with httpx.Client(base_url=self._base_url, timeout=10) as client:
            while True:
                batch = [*range(self._next, self._next + self._next % 7 + 1)]
                self._next += len(batch)
                records = [{"data": number, "tag": "even" if number % 2 == 0 else "odd"} for number in batch]
                try:
                    answer = client.post("/v0/topics/a", json={"records": records})
                except httpx.HTTPError:
                    return
                if answer.is_success:
                    self.acknowledged += batch
                    if len(self.acknowledged) > 20:
                        self.enough.set()


def content(client: httpx.Client, topic: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    page: dict[str, Any] = {"caught_up": False, "next_from_seq": 0}
    while not page["caught_up"]:
        answer = client.post(f"/v0/topics/{topic}/diff", json={"from_seq": page["next_from_seq"], "limit": 1_000})
        page = answer.raise_for_status().json()
        assert page["tombstone"] is None
        records += page["records"]
    return records


def test_nothing_is_missing_and_nothing_is_there_twice(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    acknowledged: list[int] = []
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url) as client:
            for topic in "abcd":
                client.put(f"/v0/topics/{topic}", json={"durable": True}).raise_for_status()
            for name, body in {
                "all": {"source": "a", "dest": "b"},
                "chain": {"source": "b", "dest": "c", "guarantee": "exactly_once"},
                "even": {"source": "a", "dest": "d", "filter": "even"},
            }.items():
                client.put(f"/v0/routers/{name}", json=body).raise_for_status()
        for life in range(KILLS):
            writer = Writer(server.base_url, first=1_000_000 * life + 1)
            writer.start()
            assert writer.enough.wait(30)
            threading.Event().wait(chance.random() * 0.1)
            server.kill()
            writer.join()
            acknowledged += writer.acknowledged
            server.start()
        with httpx.Client(base_url=server.base_url, timeout=30) as client:
            numbers = {topic: [record["data"] for record in content(client, topic)] for topic in "abcd"}
            stamps = [record["meta"]["_topics_router"]["source_seq"] for record in content(client, "c")]
            totals = {
                name: client.get(f"/v0/routers/{name}").json()["forwarded_total"] for name in ("all", "chain", "even")
            }
    assert len(acknowledged) == len(set(acknowledged))
    assert set(acknowledged) <= set(numbers["a"])
    assert numbers["b"] == numbers["c"] == numbers["a"]
    assert numbers["d"] == [number for number in numbers["a"] if number % 2 == 0]
    assert stamps == [*range(1, len(numbers["a"]) + 1)]
    assert totals == {"all": len(numbers["b"]), "chain": len(numbers["c"]), "even": len(numbers["d"])}
