"""A key's room, on a running server: what fills it, what it says when it is full, and what gives it back."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from seamark.testing.server import ServerProcess

MOST = 2


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    environment = {"TOPICS_API_KEYS": "mine,other", "TOPICS_MAX_INFLIGHT_PER_KEY": str(MOST)}
    with ServerProcess(tmp_path_factory.mktemp("keyed"), environment=environment) as process:
        yield process


def ask(server: ServerProcess, path: str, body: object, key: str = "mine") -> http.client.HTTPConnection:
    """The request is on its way; nobody waits for the answer yet."""
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection.request("POST", f"/v0{path}", json.dumps(body), headers)
    return connection


def told(server: ServerProcess, path: str, body: object, key: str = "mine") -> tuple[int, Any]:
    with closing(ask(server, path, body, key)) as connection, connection.getresponse() as answer:
        assert answer.status != 429 or answer.headers["Retry-After"]
        return answer.status, json.loads(answer.read())


def eventually(server: ServerProcess, status: int) -> Any:
    """The answer to a quick request, once it is as it should be."""
    deadline = time.monotonic() + 20
    while (got := told(server, "/topics/quick/diff", {}))[0] != status:
        assert time.monotonic() < deadline, got
        time.sleep(0.01)
    return got[1]


def test_waiting_requests_fill_a_key_s_room_until_they_end_or_their_clients_leave(keyed: ServerProcess) -> None:
    for topic in ("quiet", "quick"):
        assert told(keyed, f"/topics/{topic}", {"records": [{"data": 1}]})[0] == 201
    waiting = [ask(keyed, "/topics/quiet/diff", {"from_seq": 1, "wait_ms": 30_000}) for _ in range(MOST)]
    error = eventually(keyed, 429)["error"]
    assert (error["code"], error["detail"]) == ("throttled", {"limit": "max_inflight_per_key", "max": MOST})
    assert told(keyed, "/topics/quick/diff", {}, "other")[0] == 200
    assert told(keyed, "/topics/quick/diff", {}, "neither")[0] == 401
    waiting.pop().close()
    eventually(keyed, 200)
    assert told(keyed, "/topics/quiet", {"records": [{"data": 2}]}, "other")[0] == 200
    with closing(waiting.pop()) as connection, connection.getresponse() as answer:
        assert json.loads(answer.read())["records"][0]["data"] == 2
    waiting = [ask(keyed, "/topics/quick/diff", {"from_seq": 1, "wait_ms": 30_000}) for _ in range(MOST)]
    eventually(keyed, 429)
    for connection in waiting:
        connection.close()


def test_streams_take_no_room(keyed: ServerProcess) -> None:
    assert told(keyed, "/topics/streamed", {"records": [{"data": 1}]}, "other")[0] == 201
    streams = []
    for _ in range(MOST + 1):
        status, made = told(keyed, "/watch", {"topics": {"streamed": {}}}, "other")
        assert status == 200
        stream = http.client.HTTPConnection(*keyed.address, timeout=30)
        stream.request("GET", f"{made['stream_url']}?token=other")
        assert stream.getresponse().status == 200
        streams.append(stream)
    for stream in streams:
        stream.close()
