"""Queues as a client sees them, on our data plane and as plain ASGI under another server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from seamark.stream.sse import Event, Parser
from seamark.testing.server import ServerProcess

PATIENCE_SECONDS = 10.0


def make(client: httpx.Client, name: str, *data: object, **config: object) -> None:
    assert client.put(f"/v0/topics/{name}", json={"type": "queue", **config}).is_success
    if data:
        write(client, name, *data)


def write(client: httpx.Client, name: str, *data: object, **more: object) -> None:
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": one, **more} for one in data]})
    assert answer.is_success, answer.text


def call(client: httpx.Client, name: str, verb: str, status: int = 200, **body: object) -> Any:
    answer = client.post(f"/v0/topics/{name}/{verb}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def claim(client: httpx.Client, name: str, node: str = "w", **more: int) -> list[dict[str, Any]]:
    claimed: list[dict[str, Any]] = call(client, name, "claim", node=node, **more)["claimed"]
    return claimed


class Works:
    """Reads one work stream an event at a time."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._events = self._read()

    def next(self) -> tuple[str, Any]:
        event = next(self._events)
        return event.event, json.loads(event.data)

    def seqs(self, count: int) -> list[int]:
        return [self.next()[1]["$seq"] for _ in range(count)]

    def _read(self) -> Iterator[Event]:
        parser = Parser()
        for chunk in self.response.iter_raw():
            for event in parser.feed(chunk):
                assert isinstance(event, Event)
                yield event


@contextmanager
def work(client: httpx.Client, name: str, **query: str | int) -> Iterator[Works]:
    with client.stream("GET", f"/v0/topics/{name}/work", params=query) as response:
        assert response.status_code == 200, response.read()
        yield Works(response)


def eventually(client: httpx.Client, name: str, **wanted: int) -> None:
    """The queue's facts become these."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        facts = client.get(f"/v0/topics/{name}").json()["queue"]
        if all(facts[key] == value for key, value in wanted.items()):
            return
        assert time.monotonic() < deadline, facts
        time.sleep(0.01)


def test_a_job_from_its_claim_to_its_end(client: httpx.Client, name: str) -> None:
    make(client, name)
    payload = '{"z": 1.50,\n "a":[ ]}'
    body = f'{{"records":[{{"data":{payload},"tag":"t","node":"producer","meta":{{"k":1}}}}]}}'
    headers = {"Content-Type": "application/json"}
    assert client.post(f"/v0/topics/{name}", content=body, headers=headers).is_success
    write(client, name, None)
    answer = client.post(f"/v0/topics/{name}/claim", json={"node": "w", "max": 1, "lease_ms": 5_000})
    (job,) = answer.json()["claimed"]
    assert list(job) == ["$seq", "lease_id", "deadline", "$ts", "$tag", "deliveries", "data", "meta"]
    assert payload.replace("\n", " ") in answer.text
    assert job["lease_id"].startswith("lease_")
    assert list(answer.json()) == ["topic", "claimed", "count", "ready", "performance"]
    assert (answer.json()["count"], answer.json()["ready"]) == (1, 1)
    extended = call(client, name, "extend", node="w", seqs=[1, 9], lease_ms=60_000)
    assert list(extended) == ["topic", "extended", "skipped", "deadlines", "performance"]
    assert (extended["extended"], extended["skipped"]) == (1, [9])
    assert extended["deadlines"]["1"] > job["deadline"]
    assert client.get(f"/v0/topics/{name}").json()["queue"] == {"ready": 1, "in_flight": 1, "dead_lettered": 0}
    acked = call(client, name, "ack", node="w", seqs=[1, 2], lease_ids=[job["lease_id"], ""])
    del acked["performance"]
    assert acked == {"topic": name, "acked": 1, "skipped": [2], "ready": 1, "in_flight": 0}
    assert [job["$seq"] for job in claim(client, name, max=5)] == [2]
    nacked = call(client, name, "nack", node="w", seqs=[2, 2])
    del nacked["performance"]
    assert nacked == {"topic": name, "nacked": 1, "skipped": [2], "ready": 1, "in_flight": 0}
    (again,) = claim(client, name)
    assert (again["$seq"], again["deliveries"], again["data"]) == (2, 2, None)
    assert "$tag" not in again
    assert "meta" not in again


def test_reading_a_queue_touches_no_lease(client: httpx.Client, name: str) -> None:
    make(client, name, 1, 2)
    claim(client, name)
    page = client.post(f"/v0/topics/{name}/diff").json()
    assert [record["$seq"] for record in page["records"]] == [1, 2]
    call(client, name, "ack", node="w", seqs=[1])
    page = client.post(f"/v0/topics/{name}/diff").json()
    assert [record["$seq"] for record in page["records"]] == [2]
    assert page["tombstone"] is None


def test_deleting_records_takes_them_from_their_holders(client: httpx.Client, name: str) -> None:
    make(client, name)
    write(client, name, 1, 2, tag="x")
    write(client, name, 3)
    claim(client, name, max=3)
    assert client.post(f"/v0/topics/{name}/delete", json={"match": ["tag", "Eq", "x"]}).json()["deleted"] == 2
    assert client.get(f"/v0/topics/{name}").json()["queue"] == {"ready": 0, "in_flight": 1, "dead_lettered": 0}
    assert call(client, name, "ack", node="w", seqs=[1, 2, 3])["skipped"] == [1, 2]


def test_numbers_beyond_their_range_are_moved_into_it(client: httpx.Client, name: str) -> None:
    make(client, name, *range(1_200))
    assert len(claim(client, name, max=0)) == 1
    jobs = claim(client, name, max=4_000_000_000, lease_ms=2**64 - 1)
    assert len(jobs) == 1_000
    assert jobs[0]["deadline"] - int(time.time() * 1_000) <= 86_400_000
    seqs = [job["$seq"] for job in jobs]
    assert call(client, name, "nack", node="w", seqs=seqs, delay_ms=2**64 - 1)["nacked"] == 1_000


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("claim", {}), ("claim", {"node": ""}), ("claim", {"node": "x" * 129}), ("claim", {"node": 1}), ("claim", {"node": "w", "max": -1}),
        ("claim", {"node": "w", "max": 1.0}), ("claim", {"node": "w", "max": True}), ("claim", {"node": "w", "lease_ms": "1"}),
        ("claim", {"node": "w", "max": 2**32}), ("ack", {"node": "w"}), ("ack", {"seqs": [1]}), ("ack", {"node": "", "seqs": [1]}),
        ("ack", {"node": "w", "seqs": [-1]}), ("ack", {"node": "w", "seqs": [1], "lease_ids": []}), ("ack", {"node": "w", "seqs": [1], "lease_ids": ["x"]}),
        ("ack", {"node": "w", "seqs": [1], "lease_ids": ["lease_xyz"]}), ("ack", {"node": "w", "seqs": [1], "lease_ids": ["lease_"]}),
        ("nack", {"node": "w", "seqs": [1], "delay_ms": -1}), ("nack", {"node": "w", "seqs": [2**64]}), ("extend", {"node": "w", "seqs": [1]}),
        ("extend", {"node": "w", "seqs": [1], "lease_ms": None}),
    ],
)  # fmt: skip
def test_bad_calls(client: httpx.Client, name: str, verb: str, body: dict[str, object]) -> None:
    make(client, name, 1)
    assert call(client, name, verb, 400, **body)["error"]["code"] == "invalid_request"
    assert client.get(f"/v0/topics/{name}").json()["queue"]["in_flight"] == 0


def test_refusals_have_an_order(client: httpx.Client, name: str) -> None:
    path = f"/v0/topics/{name}"
    assert client.post(f"{path}/claim", content=b"{").status_code == 415
    assert client.post(f"{path}/claim").status_code == 415
    assert call(client, name, "claim", 400)["error"]["code"] == "invalid_request"
    for verb, more in (
        ("claim", {}),
        ("ack", {"seqs": [1]}),
        ("nack", {"seqs": []}),
        ("extend", {"seqs": [], "lease_ms": 1}),
    ):
        error = call(client, name, verb, 404, node="w", **more)["error"]
        assert (error["code"], error["detail"]) == ("topic_not_found", {"topic": name})
    many = call(client, name, "ack", 400, node="w", seqs=list(range(1_001)))["error"]
    assert (many["code"], many["detail"]) == ("batch_too_large", {"seqs": 1_001, "max": 1_000})
    write(client, name, 1)  # makes a log
    for verb, more in (
        ("claim", {}),
        ("ack", {"seqs": [1]}),
        ("nack", {"seqs": []}),
        ("extend", {"seqs": [], "lease_ms": 1}),
    ):
        assert call(client, name, verb, 409, node="w", **more)["error"]["code"] == "not_a_queue"


def test_a_work_stream_says_what_it_cannot_do(client: httpx.Client, name: str) -> None:
    path = f"/v0/topics/{name}/work"

    def refused(accept: str = "text/event-stream", **query: str) -> tuple[int, str]:
        answer = client.get(path, params=query, headers={"Accept": accept})
        return answer.status_code, answer.json()["error"]["code"]

    assert refused("application/json") == (406, "not_acceptable")
    assert refused() == (400, "invalid_request")
    assert refused(node="x" * 129) == (400, "invalid_request")
    assert refused(node="w", max="many") == (400, "invalid_request")
    assert refused(node="w") == (404, "topic_not_found")
    write(client, name, 1)
    assert refused(node="w") == (409, "not_a_queue")


def test_work_comes_by_itself(client: httpx.Client, name: str) -> None:
    make(client, name, "first")
    with work(client, name, node="w", max=2, lease_ms=20_000) as works:
        headers = works.response.headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-store", "no")
        kind, job = works.next()
        assert (kind, job["topic"], job["data"]) == ("job", name, "first")
        write(client, name, "second", "third")
        assert works.seqs(1) == [2]
        call(client, name, "ack", node="w", seqs=[1], lease_ids=[job["lease_id"]])
        assert works.seqs(1) == [3]
        eventually(client, name, ready=0, in_flight=2)
    eventually(client, name, ready=2, in_flight=0)  # the connection is gone, and its leases with it


def test_a_topic_that_goes_ends_its_work_streams(client: httpx.Client, name: str) -> None:
    make(client, name)
    with work(client, name, node="w") as works:
        client.delete(f"/v0/topics/{name}")
        kind, body = works.next()
        assert (kind, body["code"]) == ("error", 409)


def test_asking_for_the_head_of_a_work_stream_claims_nothing(client: httpx.Client, name: str) -> None:
    make(client, name, 1)
    answer = client.head(f"/v0/topics/{name}/work", params={"node": "w"})
    assert answer.status_code == 200
    assert client.get(f"/v0/topics/{name}").json()["queue"]["in_flight"] == 0


def test_many_workers_never_hold_the_same_job(server: ServerProcess, client: httpx.Client, name: str) -> None:
    make(client, name, *range(120))

    def worker(node: str) -> list[int]:
        done: list[int] = []
        with httpx.Client(base_url=server.base_url, timeout=30) as own:
            while jobs := claim(own, name, node, max=4):
                seqs = [job["$seq"] for job in jobs]
                ids = [job["lease_id"] for job in jobs]
                assert call(own, name, "ack", node=node, seqs=seqs, lease_ids=ids)["skipped"] == []
                done += seqs
        return done

    with ThreadPoolExecutor(6) as pool:
        done = [seq for part in pool.map(worker, [f"w{number}" for number in range(6)]) for seq in part]
    assert sorted(done) == list(range(1, 121))
    assert client.get(f"/v0/topics/{name}").json()["count"] == 0


def test_claims_wait_for_the_window(server: ServerProcess, client: httpx.Client, name: str) -> None:
    make(client, name, *range(4), claim_jitter_ms=300)

    def claims(node: str) -> int:
        with httpx.Client(base_url=server.base_url, timeout=30) as own:
            return len(claim(own, name, node, max=4))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(claims, "ab")) == [2, 2]


KEYS = "rw:read+write,r:read,w:write,mine:read+write:own-,all"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    environment = {"SEAMARK_API_KEYS": KEYS, "TOPICS_MAX_SSE_CONNECTIONS_PER_KEY": "1"}
    with ServerProcess(tmp_path_factory.mktemp("guarded"), environment=environment) as process:
        yield process


def test_keys_and_scopes(guarded: ServerProcess) -> None:
    with httpx.Client(base_url=guarded.base_url, timeout=30) as client:

        def status(method: str, path: str, key: str = "", **more: Any) -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return client.request(method, f"/v0/topics/{path}", headers=headers, **more).status_code

        held: dict[str, object] = {"node": "w", "seqs": [], "lease_ms": 1_000}
        assert status("PUT", "jobs", "all", json={"type": "queue"}) == 201
        for verb in ("ack", "nack", "extend"):
            assert [status("POST", f"jobs/{verb}", key, json=held) for key in ("", "r", "w", "mine")] == [
                401,
                403,
                200,
                403,
            ]
        assert [status("POST", "jobs/claim", key, json=held) for key in ("", "r", "w", "rw", "mine")] == [
            401, 403, 403, 200, 403,
        ]  # fmt: skip
        query = {"node": "w", "token": "rw"}
        assert status("POST", "jobs/claim", json=held, params=query) == 401
        assert [status("GET", "jobs/work", key, params={"node": "w"}) for key in ("", "r", "w")] == [401, 403, 403]
        assert status("GET", "jobs/work", params={"node": "w", "token": "r"}) == 403
        with client.stream("GET", "/v0/topics/jobs/work", params=query) as response:
            assert response.status_code == 200
            answer = client.get("/v0/topics/jobs/work", params=query)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            assert answer.json()["error"]["detail"] == {"limit": "max_sse_connections_per_key", "max": 1}


def test_leases_over_a_kill(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url, timeout=30) as client:
            for name, durable in (("kept", True), ("not", False)):
                make(client, name, 1, 2, 3, durable=True, leases_durable=durable)
                jobs = claim(client, name, max=2, lease_ms=600_000)
                call(client, name, "ack", node="w", seqs=[1])
        server.kill()
        server.start()
        with httpx.Client(base_url=server.base_url, timeout=30) as client:
            assert client.get("/v0/topics/kept").json()["queue"] == {"ready": 1, "in_flight": 1, "dead_lettered": 0}
            assert client.get("/v0/topics/not").json()["queue"] == {"ready": 2, "in_flight": 0, "dead_lettered": 0}
            assert [job["$seq"] for job in claim(client, "kept", max=5)] == [3]
            assert [job["$seq"] for job in claim(client, "not", max=5)] == [2, 3]
            assert len(jobs) == 2


def test_a_stop_ends_work_streams_with_a_word(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, httpx.Client(base_url=server.base_url, timeout=30) as client:
        make(client, "jobs", 1)
        with work(client, "jobs", node="w") as works:
            assert works.seqs(1) == [1]
            with ThreadPoolExecutor(1) as pool:
                stopped = pool.submit(server.stop)
                kind, body = works.next()
                assert stopped.result() == 0
        assert (kind, body["code"], body["error"]) == ("error", 503, "shutting_down")
