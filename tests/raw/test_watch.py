"""Watching a raw stream: history, live, gaps, filters and resuming, over real connections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from seamark.stream.sse import Event, Parser


class Watcher:
    """Reads one event stream an event at a time."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.last_id = ""
        self._events = self._read()

    def next(self) -> tuple[str, Any]:
        return next(self._events)

    def until(self, name: str) -> list[tuple[str, Any]]:
        """Everything up to and including the next event of that name."""
        events = [self.next()]
        while events[-1][0] != name:
            events.append(self.next())
        return events

    def _read(self) -> Iterator[tuple[str, Any]]:
        parser = Parser()
        for chunk in self.response.iter_raw():
            for event in parser.feed(chunk):
                assert isinstance(event, Event)
                self.last_id = event.id or self.last_id
                yield event.event, json.loads(event.data)


@contextmanager
def watch(client: httpx.Client, name: str, last_id: str = "", **query: str | int) -> Iterator[Watcher]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with client.stream("GET", f"/raw/{name}/watch", params=query, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield Watcher(response)


def append(client: httpx.Client, name: str, *data: object) -> None:
    assert client.post(f"/raw/{name}", json={"records": [{"data": item} for item in data]}).is_success


def seqs(events: list[tuple[str, Any]]) -> list[int]:
    return [body["seq"] for kind, body in events if kind == "record"]


def test_history_then_live(client: httpx.Client, name: str) -> None:
    append(client, name, 1, 2)
    with watch(client, name, after=0) as watcher:
        events = watcher.until("caught-up")
        assert seqs(events) == [1, 2]
        assert events[-1] == ("caught-up", {"head": 2})
        append(client, name, 3)
        kind, body = watcher.next()
        assert (kind, body["seq"], body["data"]) == ("record", 3, 3)


def test_what_cannot_be_a_watch_is_refused_by_name(client: httpx.Client, name: str) -> None:
    append(client, name, 1)
    path = f"/raw/{name}/watch"
    answer = client.get(path, headers=[("Last-Event-ID", "1"), ("Last-Event-ID", "2")])
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "Last-Event-ID is given twice")
    for text, says in (
        ("{", "filter is not JSON"),
        ("[]", "filter: Expected `object`"),
        ("[" * 300, "filter nests deeper"),
    ):
        answer = client.get(path, params={"filter": text})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith(says)


def test_without_a_place_only_news(client: httpx.Client, name: str) -> None:
    append(client, name, 1, 2)
    with watch(client, name) as watcher:
        watcher.until("caught-up")
        append(client, name, 3)
        assert watcher.next()[1]["seq"] == 3


def test_resume_is_exact(client: httpx.Client, name: str) -> None:
    append(client, name, *range(5))
    with watch(client, name, after=0) as watcher:
        assert [watcher.next()[1]["seq"] for _ in range(2)] == [1, 2]
        place = watcher.last_id
    append(client, name, "later")
    with watch(client, name, place, after=0) as watcher:
        assert seqs(watcher.until("caught-up")) == [3, 4, 5, 6]


def test_a_gap_comes_first(client: httpx.Client, name: str) -> None:
    client.put(f"/raw/{name}", json={"cap_records": 2})
    append(client, name, *range(5))
    with watch(client, name, after=1) as watcher:
        events = watcher.until("caught-up")
        assert events[0] == ("gap", {"first": 2, "last": 3, "loss": "cap", "earliest": 4, "head": 5})
        assert seqs(events) == [4, 5]


def test_a_new_instance_is_recognised(client: httpx.Client, name: str) -> None:
    append(client, name, 1)
    with watch(client, name, after=0) as watcher:
        watcher.until("caught-up")
        place = watcher.last_id
        client.delete(f"/raw/{name}")
        assert watcher.until("closing")[-2:] == [
            ("dropped", {"stream": name, "head": 1}),
            ("closing", {"reason": "dropped"}),
        ]
    append(client, name, "a", "b", "c")
    with watch(client, name, place) as watcher:
        events = watcher.until("caught-up")
        assert events[0][0] == "gap"
        assert events[0][1]["loss"] == "recreated"
        assert seqs(events) == [1, 2, 3]


def test_filters(client: httpx.Client, name: str) -> None:
    records = [{"data": n, "subject": ["sev", str(n)], "node": "even" if n % 2 == 0 else "odd"} for n in range(10)]
    client.post(f"/raw/{name}", json={"records": records})
    wanted = json.dumps({"subject": ["sev", {"gte": 5}], "exclude_nodes": ["odd"]})
    with watch(client, name, after=0, filter=wanted) as watcher:
        assert [body["data"] for kind, body in watcher.until("caught-up") if kind == "record"] == [6, 8]
        client.post(f"/raw/{name}", json={"records": records})
        assert [watcher.next()[1]["data"] for _ in range(2)] == [6, 8]


def test_lines_of_pretty_payloads_stay_one_event(client: httpx.Client, name: str) -> None:
    client.post(f"/raw/{name}", content=b'{"records":[{"data":{\r\n  "a": 1,\n  "b": "x\\ny"\n}}]}')
    with watch(client, name, after=0) as watcher:
        assert watcher.next()[1]["data"] == {"a": 1, "b": "x\ny"}


def test_junk_ids_are_refused(client: httpx.Client, name: str) -> None:
    append(client, name, 1)
    for junk in ("x", "1@", "-1", "1" * 30):
        answer = client.get(f"/raw/{name}/watch", headers={"Last-Event-ID": junk})
        assert answer.status_code == 400
