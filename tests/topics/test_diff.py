"""Reading as a client sees it, on our data plane and as plain ASGI under another server."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx
import pytest

from seamark import limits
from seamark.testing.server import ServerProcess
from tests.topics.test_routes import JSON, put, refusal, write
from tests.topics.test_writes import diff

PATIENCE_MS = 20_000


def seqs(page: dict[str, Any]) -> list[int]:
    return [record["$seq"] for record in page["records"]]


def test_an_answer_in_full(client: httpx.Client, name: str) -> None:
    write(client, name, "a", "b")
    page = diff(client, name)
    assert list(page) == [
        "topic", "records", "next_from_seq", "head_seq", "earliest_seq", "caught_up", "tombstone", "lag", "performance",
    ]  # fmt: skip
    performance = page.pop("performance")
    assert [record.pop("$ts") > 0 for record in page["records"]] == [True, True]
    assert page == {
        "topic": name, "records": [{"$seq": 1, "data": "a"}, {"$seq": 2, "data": "b"}], "next_from_seq": 2,
        "head_seq": 2, "earliest_seq": 1, "caught_up": True, "tombstone": None, "lag": 0,
    }  # fmt: skip
    assert list(performance) == ["server_total_ms", "records_scanned"]
    assert performance["records_scanned"] == 2


def test_an_empty_body_means_all_defaults_and_nothing_is_made(client: httpx.Client, name: str) -> None:
    answer = client.post(f"/v0/topics/{name}/diff")
    assert refusal(answer) == (404, "topic_not_found")
    assert answer.json()["error"]["detail"] == {"topic": name}
    assert client.get(f"/v0/topics/{name}").status_code == 404
    put(client, name)
    page = client.post(f"/v0/topics/{name}/diff").json()
    assert (page["records"], page["next_from_seq"], page["caught_up"], page["lag"]) == ([], 0, True, 0)


def test_pages_chain(client: httpx.Client, name: str) -> None:
    write(client, name, *range(10))
    seen: list[int] = []
    following, caught_up = 0, False
    while not caught_up:
        page = diff(client, name, from_seq=following, limit=3)
        seen += [record["data"] for record in page["records"]]
        following, caught_up = page["next_from_seq"], page["caught_up"]
        assert page["lag"] == 10 - following
    assert seen == list(range(10))


@pytest.mark.parametrize(("limit", "count"), [(0, 256), (1, 1), (300, 300), (1_000, 1_000), (1_001, 1_000), (2**32 - 1, 1_000)])  # fmt: skip
def test_limits_are_moved_into_their_range(client: httpx.Client, name: str, limit: int, count: int) -> None:
    write(client, name, *range(1_200))
    assert len(diff(client, name, limit=limit)["records"]) == count
    assert len(diff(client, name)["records"]) == 256


def test_a_page_is_bounded_in_bytes_but_never_empty(client: httpx.Client, name: str) -> None:
    client.post(f"/v0/topics/{name}", json={"records": [{"data": "x" * 98, "meta": "m" * 98}] * 5})
    for size, count in ((1, 1), (200, 1), (399, 1), (400, 2), (999, 4), (0, 5), (2**64 - 1, 5)):
        assert len(diff(client, name, max_batch_bytes=size)["records"]) == count, size


def test_the_default_bound_in_bytes(client: httpx.Client, name: str) -> None:
    half = "x" * (limits.PAGE_BYTES_DEFAULT // 2 - 2)
    write(client, name, half, half, half)
    assert seqs(diff(client, name)) == [1, 2]
    assert seqs(diff(client, name, max_batch_bytes=2**63)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({}, ["$seq", "$ts", "$node", "data", "meta"]),
        ({"include_tags": True}, ["$seq", "$ts", "$node", "$tag", "data", "meta"]),
        ({"include_meta": False}, ["$seq", "$ts", "$node", "data"]),
        ({"include_meta": False, "include_tags": True}, ["$seq", "$ts", "$node", "$tag", "data"]),
    ],
)
def test_what_a_record_shows(client: httpx.Client, name: str, more: dict[str, Any], keys: list[str]) -> None:
    client.post(f"/v0/topics/{name}", json={"records": [{"meta": 1, "data": 2, "tag": "t", "node": "n"}]})
    assert list(diff(client, name, **more)["records"][0]) == keys


@pytest.mark.parametrize(
    ("node", "left"),
    [
        ("me", [1, 3, 4]),
        (["me"], [1, 3, 4]),
        (["me", "you"], [1, 4]),
        ([], [1, 2, 3, 4]),
        (None, [1, 2, 3, 4]),
        ("ME", [1, 2, 3, 4]),
        ("", [1, 2, 3, 4]),
    ],
)
def test_one_s_own_records_are_passed_over(client: httpx.Client, name: str, node: Any, left: list[int]) -> None:
    records = [{"data": 1}, {"data": 1, "node": "me"}, {"data": 1, "node": "you"}, {"data": 1}]
    client.post(f"/v0/topics/{name}", json={"records": records})
    page = diff(client, name, node=node)
    assert seqs(page) == left
    assert (page["next_from_seq"], page["caught_up"], page["tombstone"]) == (4, True, None)
    assert page["performance"]["records_scanned"] == 4
    put(client, name, dedupe_node=False)
    assert seqs(diff(client, name, node=node)) == [1, 2, 3, 4]


def test_only_own_records(client: httpx.Client, name: str) -> None:
    write(client, name, 1, 2, 3, node="me")
    page = diff(client, name, node="me", limit=1)
    assert (page["records"], page["next_from_seq"], page["caught_up"], page["tombstone"]) == ([], 3, True, None)


def test_more_own_records_than_one_look_passes_over(client: httpx.Client, name: str) -> None:
    for _ in range(3):
        write(client, name, *[1] * limits.RECORDS_PER_APPEND_MAX, node="me")
    write(client, name, "the one", node="you")
    page = diff(client, name, node="me")
    assert [record["data"] for record in page["records"]] == ["the one"]
    assert (page["caught_up"], page["performance"]["records_scanned"]) == (True, 30_001)


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"null", b'{"from_seq":"1"}', b'{"from_seq":-1}', b'{"from_seq":1.0}', b'{"from_seq":true}', b'{"from_seq":null}',
        b'{"from_seq":18446744073709551616}', b'{"limit":4294967296}', b'{"limit":"1"}', b'{"wait_ms":-1}', b'{"wait_ms":4294967296}',
        b'{"max_batch_bytes":-1}', b'{"max_batch_bytes":18446744073709551616}', b'{"node":1}', b'{"node":[1]}', b'{"node":{}}',
        b'{"include_tags":1}', b'{"include_meta":"yes"}', b'{"node":"\xff"}', b'{"from_seq":NaN}',
    ],
)  # fmt: skip
def test_bad_diffs(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v0/topics/never-made/diff", content=body, headers=JSON)
    assert refusal(answer) == (400, "invalid_request")


@pytest.mark.parametrize("from_seq", [6, 2**63, 2**64 - 1])
def test_a_cursor_beyond_the_head(client: httpx.Client, name: str, from_seq: int) -> None:
    write(client, name, 1, 2, 3)
    page = diff(client, name, from_seq=from_seq, wait_ms=PATIENCE_MS)
    assert page["tombstone"] == {
        "gap_from": 1, "gap_to": 3, "reason": "recreated", "missed_estimate": 3, "earliest_seq": 1, "head_seq": 3,
    }  # fmt: skip
    assert (seqs(page), page["next_from_seq"]) == ([1, 2, 3], 3)


# -- waiting


class Asked(threading.Thread):
    """A diff that waits, in the background."""

    def __init__(self, server: ServerProcess, name: str, **more: Any) -> None:
        super().__init__()
        self._url = f"{server.base_url}/v0/topics/{name}/diff"
        self._body = {"wait_ms": PATIENCE_MS, **more}
        self.answer: httpx.Response | None = None
        self.seconds = 0.0
        self.start()

    def run(self) -> None:
        begun = time.monotonic()
        self.answer = httpx.post(self._url, json=self._body, timeout=60)
        self.seconds = time.monotonic() - begun

    def result(self) -> httpx.Response:
        self.join(60)
        assert self.answer is not None
        return self.answer


def parked(asked: Asked) -> None:
    """Long enough to be waiting by now; a test that uses this is right also when it is not yet."""
    asked.join(0.15)
    assert asked.is_alive()


def test_a_diff_waits_for_a_record(client: httpx.Client, server: ServerProcess, name: str) -> None:
    write(client, name, 1)
    asked = Asked(server, name, from_seq=1)
    parked(asked)
    write(client, name, 2)
    page = asked.result().json()
    assert (seqs(page), page["next_from_seq"], page["caught_up"]) == ([2], 2, True)
    assert asked.seconds < PATIENCE_MS / 1_000


def test_a_diff_that_passes_over_what_comes_waits_on(client: httpx.Client, server: ServerProcess, name: str) -> None:
    put(client, name)
    asked = Asked(server, name, node="me")
    parked(asked)
    write(client, name, "mine", node="me")
    write(client, f"{name}-other", "elsewhere")
    parked(asked)
    write(client, name, "yours", node="you")
    page = asked.result().json()
    assert (seqs(page), page["next_from_seq"], page["performance"]["records_scanned"]) == ([2], 2, 2)


def test_patience_ends(client: httpx.Client, name: str) -> None:
    write(client, name, 1, node="me")
    begun = time.monotonic()
    page = diff(client, name, node="me", wait_ms=80)
    assert time.monotonic() - begun >= 0.08
    assert (page["records"], page["next_from_seq"], page["caught_up"]) == ([], 1, True)


def test_what_can_be_said_is_said_at_once(client: httpx.Client, name: str) -> None:
    put(client, name, cap_records=2)
    write(client, name, 1, 2, 3)
    client.post(f"/v0/topics/{name}/delete", json={"before_seq": 99})
    begun = time.monotonic()
    assert diff(client, name, from_seq=0, wait_ms=PATIENCE_MS)["tombstone"]["reason"] == "cap"
    assert time.monotonic() - begun < PATIENCE_MS / 1_000


def test_a_topic_that_goes_takes_its_waiting_readers_along(
    client: httpx.Client, server: ServerProcess, name: str
) -> None:
    put(client, name)
    asked = Asked(server, name)
    parked(asked)
    client.delete(f"/v0/topics/{name}")
    assert refusal(asked.result()) == (404, "topic_not_found")


def test_many_wait_for_the_same(client: httpx.Client, server: ServerProcess, name: str) -> None:
    put(client, name)
    asked = [Asked(server, name) for _ in range(10)]
    parked(asked[0])
    write(client, name, 1)
    assert [seqs(one.result().json()) for one in asked] == [[1]] * 10
