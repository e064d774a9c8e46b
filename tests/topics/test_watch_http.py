"""Watching over real connections: what is on the wire, byte for byte, and what survives a restart."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from seamark.stream.sse import Event, Parser
from seamark.testing.server import ServerProcess
from tests.topics.viewing import Frame, frames_of, id_of

pytestmark = pytest.mark.slow  # processes of their own

PATIENCE_SECONDS = 20.0


class Stream:
    """A watch over a socket of its own: the head, then the body as it comes, without its chunks."""

    def __init__(self, address: tuple[str, int], target: str, *headers: str, version: str = "1.1") -> None:
        self._socket = socket.create_connection(address, timeout=PATIENCE_SECONDS)
        lines = [f"GET {target} HTTP/{version}", "Host: test", "Accept: text/event-stream", *headers, "", ""]
        self._socket.sendall("\r\n".join(lines).encode())
        self._raw = b""
        while b"\r\n\r\n" not in self._raw:
            self._more()
        head, _, self._raw = self._raw.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        names = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
        self.headers = {name.decode().lower(): value.decode() for name, value in names}
        self.chunked = self.headers.get("transfer-encoding") == "chunked"
        self.ended = False
        self.body = b""
        self._unchunk()

    def close(self) -> None:
        self._socket.close()

    def until(self, *words: bytes) -> bytes:
        """The body up to here, once these stand in it in this order."""
        while not self._holds(words):
            assert not self.ended, f"the stream ended with {self.body!r}"
            self._more()
            self._unchunk()
        return self.body

    def rest(self) -> bytes:
        """The body to its end."""
        while not self.ended:
            self._more()
            self._unchunk()
        return self.body

    @property
    def frames(self) -> list[Frame]:
        return frames_of(self.body)

    def seqs(self) -> list[int]:
        return [record["$seq"] for frame in self.frames if frame.event == "record" for record in frame.body["records"]]

    @property
    def last_id(self) -> str:
        parser = Parser()
        events = parser.feed(self.body)
        assert all(isinstance(event, Event) for event in events)
        return parser.last_event_id

    def _holds(self, words: tuple[bytes, ...]) -> bool:
        place = 0
        for word in words:
            place = self.body.find(word, place) + len(word)
            if place < len(word):
                return False
        return True

    def _more(self) -> None:
        data = self._socket.recv(65_536)
        if not data:
            self.ended = True
        self._raw += data

    def _unchunk(self) -> None:
        if not self.chunked:
            self.body, self._raw = self.body + self._raw, b""
            return
        while found := re.match(rb"([0-9a-f]+)\r\n", self._raw):
            size = int(found[1], 16)
            if len(self._raw) < found.end() + size + 2:
                return
            self.body += self._raw[found.end() : found.end() + size]
            self._raw = self._raw[found.end() + size + 2 :]
            self.ended = self.ended or size == 0


@contextmanager
def stream(server: ServerProcess, wid: str, *headers: str, version: str = "1.1") -> Iterator[Stream]:
    with closing(Stream(server.address, f"/v0/watch/{wid}", *headers, version=version)) as opened:
        assert opened.status == 200
        yield opened


def write(client: httpx.Client, name: str, *data: object, **more: object) -> None:
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": one} for one in data], **more})
    assert answer.is_success, answer.text


def session(client: httpx.Client, *names: str, **options: object) -> str:
    answer = client.post("/v0/watch", json={"topics": {name: {} for name in names}, **options})
    assert answer.is_success, answer.text
    return str(answer.json()["wid"])


def timeless(raw: bytes) -> bytes:
    return re.sub(rb'"\$ts":[0-9]+', b'"$ts":1', raw)


def test_the_minimal_transcript(client: httpx.Client, server: ServerProcess) -> None:
    client.delete("/v0/topics/o")
    write(client, "o", "a", "b")
    with stream(server, session(client, "o", heartbeat_ms=1_000)) as opened:
        assert timeless(opened.until(b": hb\n\n")) == (
            b"retry: 2000\n\n"
            b"id: eyJvIjoyfQ\n"
            b"event: record\n"
            b'data: {"topic":"o","records":[{"$seq":1,"$ts":1,"data":"a"},{"$seq":2,"$ts":1,"data":"b"}],"from_seq":0,"to_seq":2,"head_seq":2}\n\n'
            b"id: eyJvIjoyfQ\n"
            b"event: caught-up\n"
            b'data: {"topic":"o","head_seq":2}\n\n'
            b": hb\n\n"
        )


def test_the_contracts_frames(client: httpx.Client, server: ServerProcess) -> None:
    for name in ("orders", "orders.dlq"):
        client.delete(f"/v0/topics/{name}")
    client.put("/v0/topics/orders", json={"cap_records": 2})
    write(client, "orders", *range(4096))
    raw = (
        b'{"records":[{"data":{"sku":"AEROPRESS-GO","qty":1,"total":3499},"tag":"order-7731","node":"node-B"},'
        b'{"data":{"sku":"FILTER-PACK","qty":2,"total":1598},"node":"node-C"}]}'
    )
    client.post("/v0/topics/orders", content=raw, headers={"Content-Type": "application/json"})
    wid = session(client, "orders", include_tags=True)
    with stream(server, wid) as opened:
        assert timeless(opened.until(b"event: caught-up", b"\n\n")) == (
            b"retry: 2000\n\n"
            b"id: eyJvcmRlcnMiOjQwOTZ9\n"
            b"event: tombstone\n"
            b'data: {"topic":"orders","reason":"from_seq_too_old","gap_from":1,"gap_to":4096,"earliest_seq":4097,"head_seq":4098}\n\n'
            b"id: eyJvcmRlcnMiOjQwOTh9\n"
            b"event: record\n"
            b'data: {"topic":"orders","records":[{"$seq":4097,"$ts":1,"$node":"node-B","$tag":"order-7731",'
            b'"data":{"sku":"AEROPRESS-GO","qty":1,"total":3499}},{"$seq":4098,"$ts":1,"$node":"node-C",'
            b'"data":{"sku":"FILTER-PACK","qty":2,"total":1598}}],"from_seq":4096,"to_seq":4098,"head_seq":4098}\n\n'
            b"id: eyJvcmRlcnMiOjQwOTh9\n"
            b"event: caught-up\n"
            b'data: {"topic":"orders","head_seq":4098}\n\n'
        )
    write(client, "orders.dlq", *range(12))
    with stream(server, session(client, "orders.dlq")) as opened:
        opened.until(b"event: caught-up", b"\n\n")
        client.delete("/v0/topics/orders.dlq")
        assert opened.rest().endswith(
            b"id: eyJvcmRlcnMuZGxxIjoxMn0\n"
            b"event: topic-deleted\n"
            b'data: {"topic":"orders.dlq","head_seq":12,"reason":"deleted"}\n\n'
        )


def test_the_headers(client: httpx.Client, server: ServerProcess, name: str) -> None:
    write(client, name, 1)
    wid = session(client, name)
    with stream(server, wid) as opened:
        assert opened.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert opened.headers["cache-control"] == "no-store"
        assert opened.headers["connection"] == "keep-alive"
        assert opened.headers["x-accel-buffering"] == "no"
        assert not {"content-length", "content-encoding"} & set(opened.headers)


def test_before_keep_alive_a_stream_ends_with_its_connection(
    client: httpx.Client, server: ServerProcess, name: str
) -> None:
    write(client, name, 1)
    with stream(server, session(client, name), version="1.0") as opened:
        assert opened.headers.get("connection") == "close"
        assert b"retry: 2000\n\nid: " in opened.until(b"caught-up", b"\n\n")
        client.delete(f"/v0/topics/{name}")
        assert opened.rest().endswith(b'"reason":"deleted"}\n\n')


def test_live_over_several_topics(client: httpx.Client, server: ServerProcess, name: str) -> None:
    names = [f"{name[:200]}-{letter}" for letter in "ab"]
    for one in names:
        write(client, one, 1)
    with stream(server, session(client, *names)) as opened:
        opened.until(b"caught-up", b"caught-up", b"\n\n")
        write(client, names[1], 2)
        opened.until(b'"$seq":2', b"caught-up", b"\n\n")
        assert opened.frames[-1] == Frame("caught-up", {"topic": names[1], "head_seq": 2}, {names[0]: 1, names[1]: 2})


def test_resuming_with_and_without_an_id(client: httpx.Client, server: ServerProcess, name: str) -> None:
    write(client, name, 1)
    wid = session(client, name, limit=1)
    with stream(server, wid) as opened:
        opened.until(b"caught-up", b"\n\n")
        place = opened.last_id
    write(client, name, 2, 3)
    with stream(server, wid) as opened:
        opened.until(b"caught-up", b"\n\n")
        assert opened.seqs() == [2, 3]
        with stream(server, wid, f"Last-Event-ID: {place}") as newer:
            newer.until(b"caught-up", b"\n\n")
            assert newer.seqs() == [2, 3]
            assert b'"error":"replaced"' in opened.rest()


# -- keys


def test_a_stream_asks_for_the_key_of_its_session(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, environment={"SEAMARK_API_KEYS": "mine,yours"}) as server,
        httpx.Client(base_url=server.base_url, headers={"Authorization": "Bearer mine"}) as client,
    ):
        write(client, "o", 1)
        wid = session(client, "o")
        for target, headers in (
            (wid, ["Authorization: Bearer mine"]),
            (f"{wid}?token=mine", []),
            (f"{wid}?token=%6Dine&token=yours", []),
            (f"{wid}?token=yours", ["Authorization: Bearer mine"]),
        ):
            with stream(server, target, *headers) as opened:
                opened.until(b"caught-up", b"\n\n")


# -- restarts


def test_a_stop_in_order_loses_and_repeats_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url) as client:
            write(client, "a", 1, 2)
            write(client, "b", 1)
            wid = session(client, "a", "b")
            with stream(server, wid) as opened:
                opened.until(b"caught-up", b"caught-up", b"\n\n")
                assert server.stop() == 0
                assert opened.rest().endswith(b'"retry_after_ms":2000}\n\n')
                error = opened.frames[-1]
                assert (error.event, error.body["code"], error.body["error"]) == ("error", 503, "shutting_down")
                place = opened.last_id
        server.start()
        with httpx.Client(base_url=server.base_url) as client:
            write(client, "a", 3)
            for headers, expected in (
                ([], [3]),
                ([f"Last-Event-ID: {place}"], [3]),
                ([f"Last-Event-ID: {id_of(a=1).decode()}"], [2, 3]),
            ):
                with stream(server, wid, *headers) as opened:
                    opened.until(b"caught-up", b"caught-up", b"\n\n")
                    assert opened.seqs() == expected


def test_a_kill_loses_and_repeats_nothing_for_a_client_that_knows_its_place(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with httpx.Client(base_url=server.base_url) as client:
            client.put("/v0/topics/a", json={"durability": "fsync"})
            client.put("/v0/topics/b", json={"durability": "fsync"})
            write(client, "a", *range(10))
            wid = session(client, "a", "b")
            silent = session(client, "a")
            with stream(server, wid) as opened:
                opened.until(b"caught-up", b"caught-up", b"\n\n")
                for n in range(10):
                    write(client, "b", n)
                opened.until(b'"topic":"b","head_seq":10')
                server.kill()
                place = opened.last_id
        server.start()
        with httpx.Client(base_url=server.base_url) as client:
            write(client, "b", "after")
            with stream(server, wid, f"Last-Event-ID: {place}") as opened:
                opened.until(b"caught-up", b"caught-up", b"\n\n")
                assert opened.seqs() == [11]
                assert not [frame for frame in opened.frames if frame.event == "tombstone"]
            with stream(server, silent) as opened:  # made, and never opened
                opened.until(b"caught-up", b"\n\n")
                assert opened.seqs() == [*range(1, 11)]


def test_a_server_in_memory_forgets(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, engine="memory") as server:
        with httpx.Client(base_url=server.base_url) as client:
            write(client, "o", 1)
            wid = session(client, "o")
        server.restart()
        answer = httpx.get(f"{server.base_url}/v0/watch/{wid}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


# -- slow readers


def test_a_reader_that_stops_reading_gets_everything_when_it_goes_on(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, httpx.Client(base_url=server.base_url) as client:
        write(client, "o", 0)
        write(client, "p", 0)
        with stream(server, session(client, "o", "p")) as slow, stream(server, session(client, "o")) as quick:
            for reader in (slow, quick):
                reader.until(b"caught-up", b"\n\n")
            for _ in range(40):
                write(client, "o", *("x" * 10_000 for _ in range(10)))
            quick.until(b'"topic":"o","head_seq":401}')
            assert quick.seqs() == [*range(1, 402)]
            slow.until(b'"topic":"o","head_seq":401}')
            of_o = [
                frame.body["records"] for frame in slow.frames if frame.event == "record" and frame.body["topic"] == "o"
            ]
            assert [record["$seq"] for records in of_o for record in records] == [*range(1, 402)]
