"""A watch over many topics in a real browser, with writers at work and the server restarted under it, in order and by
force: nothing is lost, nothing comes twice, and what was lost or removed is told as an event."""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver import Chrome

from seamark.testing.server import ServerProcess
from tests.browser.browser import until
from tests.browser.page import Event, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOPICS = ("orders", "audit", "notices")
CAP = 50


def free_port() -> int:
    """A page keeps to its origin, so the server has to come back where it was."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, "--port", str(free_port())) as server:
        yield server


class Client:
    """Asks until it is answered, however often the server goes away meanwhile."""

    def __init__(self, base_url: str, key: str = "") -> None:
        self._base_url = base_url
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def call(self, method: str, path: str, body: object = None) -> Any:
        return until(lambda: self._asked(method, path, body), f"{method} {path}")

    def write(self, topic: str, key: str, *data: object) -> Any:
        body = {"records": [{"data": one} for one in data], "idempotency_key": key}
        return self.call("POST", f"/topics/{topic}", body)

    def _asked(self, method: str, path: str, body: object) -> Any:
        try:
            url = f"{self._base_url}/v0{path}"
            answer = httpx.request(method, url, json=body, headers=self._headers, timeout=10)
        except httpx.TransportError:
            return None
        if answer.status_code == 503:
            return None
        assert answer.is_success, answer.text
        return answer.json()


class Writers:
    """A thread for each topic. `acknowledged` is what the server said it has: topic to seq to data."""

    def __init__(self, base_url: str) -> None:
        self.acknowledged: dict[str, dict[int, Any]] = {topic: {} for topic in TOPICS}
        self._base_url = base_url
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(topic,)) for topic in TOPICS]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _write(self, topic: str) -> None:
        client = Client(self._base_url)
        number = 0
        while not self._enough.wait(0.01):
            batch = [{"topic": topic, "number": number + step} for step in range(number % 4 + 1)]
            receipt = client.write(topic, f"{topic}-{number}", *batch)
            self.acknowledged[topic].update(zip(receipt["seqs"], batch, strict=True))
            number += len(batch)


class Ledger:
    """Follows every topic through the events of a page, and says when a step does not fit the one before."""

    def __init__(self, events: list[Event]) -> None:
        self.place: dict[str, int] = defaultdict(int)
        self.records: dict[str, dict[int, Any]] = defaultdict(dict)
        self.lost: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        self.deleted: dict[str, int] = {}
        self.farewells = 0
        for event in events:
            assert event.id, "every event is a place to come back to"
            self.follow(event)

    def follow(self, event: Event) -> None:
        data = event.data
        topic = data.get("topic", "")
        if event.kind == "record":
            assert data["from_seq"] == self.place[topic]
            for record in data["records"]:
                assert self.place[topic] < record["$seq"] <= data["to_seq"]
                self.place[topic] = record["$seq"]
                self.records[topic][record["$seq"]] = record["data"]
            self.place[topic] = data["to_seq"]
        elif event.kind == "tombstone":
            assert data["gap_from"] == self.place[topic] + 1
            self.lost[topic].append((data["reason"], data["gap_from"], data["gap_to"]))
            self.place[topic] = data["gap_to"]
        elif event.kind == "caught-up":
            assert data["head_seq"] == self.place[topic]
        elif event.kind == "topic-deleted":
            self.deleted[topic] = data["head_seq"]
        else:
            assert (event.kind, data["code"], data["error"]) == ("error", 503, "shutting_down")
            self.farewells += 1


def restarted(server: ServerProcess) -> None:
    server.restart()


def killed(server: ServerProcess) -> None:
    server.kill()
    server.start()


def told(page: Page, kind: str, topic: str) -> Callable[[], bool]:
    return lambda: any(event.kind == kind and event.data["topic"] == topic for event in page.told())


def reached(page: Page, heads: dict[str, int]) -> Callable[[], bool]:
    return lambda: all(Ledger(page.told()).place[topic] >= head for topic, head in heads.items())


def test_nothing_is_lost_and_nothing_comes_twice(server: ServerProcess, chromium: Chrome) -> None:
    client = Client(server.base_url)
    for topic in (*TOPICS, "doomed"):
        client.call("PUT", f"/topics/{topic}", {"durability": "fsync"})
    client.call("PUT", "/topics/capped", {"durability": "fsync", "cap_records": CAP})
    client.write("capped", "before", *range(3 * CAP))
    client.write("doomed", "first", "still here")
    made = client.call("POST", "/watch", {"topics": {topic: {} for topic in (*TOPICS, "capped", "doomed")}})
    page = Page(chromium, server.base_url)
    page.listen(made["stream_url"])
    with Writers(server.base_url) as writers:
        until(told(page, "record", "doomed"), "history")
        for end in (restarted, killed, restarted, killed):
            until(partial(page.has, page.count() + 20), "live records")
            opened = page.opened
            end(server)
            until(partial(page.opened_since, opened), "the browser's own reconnection")
            marks = {topic: max(seqs) for topic, seqs in writers.acknowledged.items()}
            until(reached(page, marks), "what was written meanwhile")
        assert client.call("DELETE", "/topics/doomed")["deleted"]
        until(told(page, "topic-deleted", "doomed"), "the end of a topic")
    heads = {topic: client.call("GET", f"/topics/{topic}")["head_seq"] for topic in TOPICS}
    until(reached(page, heads), "the last records")

    ledger = Ledger(page.told())
    for topic in TOPICS:
        assert ledger.records[topic] == writers.acknowledged[topic]
        assert sorted(ledger.records[topic]) == list(range(1, heads[topic] + 1))
        assert ledger.lost[topic] == []
    assert ledger.lost["capped"] == [("from_seq_too_old", 1, 2 * CAP)]
    assert list(ledger.records["capped"].values()) == list(range(2 * CAP, 3 * CAP))
    assert ledger.records["doomed"] == {1: "still here"}
    assert ledger.deleted == {"doomed": 1}
    assert ledger.farewells == 2  # of the two that ended in order
    assert not page.closed


def test_what_is_evicted_while_nobody_listens_is_a_tombstone(server: ServerProcess, chromium: Chrome) -> None:
    client = Client(server.base_url)
    client.call("PUT", "/topics/capped", {"cap_records": CAP})
    client.write("capped", "a", *range(10))
    made = client.call("POST", "/watch", {"topics": {"capped": {}}})
    page = Page(chromium, server.base_url)
    page.listen(made["stream_url"])
    until(reached(page, {"capped": 10}), "what was there")
    page.close()
    client.write("capped", "b", *range(10, 100))
    page.listen(made["stream_url"])
    until(reached(page, {"capped": 100}), "what came meanwhile")
    ledger = Ledger(page.told())
    assert [(first, last) for _, first, last in ledger.lost["capped"]] == [(11, 100 - CAP)]
    assert list(ledger.records["capped"].values()) == [*range(10), *range(100 - CAP, 100)]


def test_a_browser_shows_its_key_in_the_url(tmp_path: Path, chromium: Chrome) -> None:
    with ServerProcess(tmp_path, environment={"SEAMARK_API_KEYS": "mine,other"}) as server:
        client = Client(server.base_url, "mine")
        client.write("orders", "a", 1)
        url = client.call("POST", "/watch", {"topics": {"orders": {}}})["stream_url"]
        page = Page(chromium, server.base_url)
        for refused in (url, f"{url}?token=other"):
            page.listen(refused)
            until(lambda: page.closed, "a refusal, which a browser takes for the end")
        assert page.told() == []
        page.listen(f"{url}?token=mine")
        until(reached(page, {"orders": 1}), "the record")
