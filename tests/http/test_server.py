"""The life of a server: where it listens, how it ends, and that it ends in time."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seamark.http.ordered import Phase
from seamark.http.server import Listening, write_port_file
from tests.certificate import make_pair
from tests.http.rig import Client, Running, request

pytestmark = pytest.mark.slow  # processes of their own

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.http.rig import Running, Routes, authenticate
from seamark.http.asgi import build_asgi
from seamark.http.front import Front
from seamark.http.health import Readiness, health_routes
from seamark.http.plane import Plane
from seamark.http.server import Listening, Server
from seamark.clock import SystemClock
from seamark.stream.pipe import Block
from seamark.telemetry.metrics import Metrics

routes, metrics, readiness = Routes(), Metrics(), Readiness()
rows = [*routes.rows(), *health_routes(readiness, metrics=metrics, clock=SystemClock())]
front = Front(rows, authenticate=authenticate, metrics=metrics)
async def drain():
    if sys.argv[2] == "stuck":
        await asyncio.sleep(60)
    for owner in routes.owners:
        owner.pipe.close(Block(b"event: bye\\n\\n"))
async def close():
    Path(sys.argv[1] + ".closed").write_text("closed")
listening = Listening(port=0, port_file=Path(sys.argv[1]), grace_seconds=float(sys.argv[3]))
sys.exit(Server(build_asgi(front), Plane(front), listening=listening, readiness=readiness, drain=drain, close=close).run())
"""


class Process:
    """A server process with its port file."""

    def __init__(self, directory: Path, *, drain: str = "prompt", grace_seconds: float = 5) -> None:
        self.file = directory / "port"
        command = [sys.executable, "-c", PROGRAM, str(self.file), drain, str(grace_seconds)]
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        self.process = subprocess.Popen(
            command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + 20
        while not self.file.exists():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        host, _, port = self.file.read_text().strip().rpartition(":")
        assert host == "127.0.0.1"
        self.port = int(port)

    def client(self) -> Client:
        return Client(self.port)

    def end(self, *signals: signal.Signals) -> int:
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.15)
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def output(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.read().decode()

    @property
    def closed(self) -> bool:
        return Path(f"{self.file}.closed").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_streams_properly_and_the_process_with_success(tmp_path: Path, number: signal.Signals) -> None:
    process = Process(tmp_path)
    clients = [process.client() for _ in range(300)]
    for client in clients:
        client.send(request("GET", "/hot/stream"))
    for client in clients:
        assert client.head().status == 200
        assert client.chunk() == b": hello\n\n"
    idle = process.client()
    begun = time.monotonic()
    assert process.end(number) == 0
    assert time.monotonic() - begun < 5
    for client in clients:
        assert client.chunks() == b"event: bye\n\n"
        assert client.ended()
        client.socket.close()
    assert idle.ended()
    idle.socket.close()
    assert process.closed


def test_requests_in_flight_are_finished(tmp_path: Path) -> None:
    process = Process(tmp_path)
    with process.client() as hot, process.client() as cold:
        hot.send(request("POST", "/hot/later?700", "Content-Length: 0"))
        cold.send(request("POST", "/cold/later?700", "Content-Length: 0"))
        time.sleep(0.2)
        assert process.end(signal.SIGTERM) == 0
        for client in (hot, cold):
            assert client.answer().status == 201
            assert client.ended()
    assert process.closed


def test_what_does_not_end_by_itself_is_cut_after_the_grace_time(tmp_path: Path) -> None:
    process = Process(tmp_path, drain="stuck", grace_seconds=0.5)
    with process.client() as client:
        client.send(request("GET", "/hot/stream"))
        assert client.head().status == 200
        begun = time.monotonic()
        assert process.end(signal.SIGTERM) == 1
        assert time.monotonic() - begun < 5
    assert process.closed


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    process = Process(tmp_path, drain="stuck", grace_seconds=60)
    with process.client() as client:
        client.send(request("GET", "/hot/stream"))
        assert client.head().status == 200
        begun = time.monotonic()
        assert process.end(signal.SIGTERM, signal.SIGTERM) == 1
        assert time.monotonic() - begun < 10
    assert process.closed


def test_while_draining_requests_are_answered_and_readiness_says_so(start: Callable[..., Running]) -> None:
    server = start(drain_streams=False, listening=Listening(port=0, grace_seconds=1))
    with server.client() as stays, server.client() as asks:
        stays.send(request("GET", "/hot/stream"))
        assert stays.head().status == 200
        asks.send(b"GET /ready HTTP/1.1\r\n")
        server.until(lambda: any(c.phase == Phase.HEAD for c in server.plane.connections))
        server.server.stop()
        server.until(lambda: server.plane.draining)
        asks.send(b"Host: a\r\n\r\n")
        answer = asks.answer()
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert b"draining" in answer.body
        assert asks.ended()
    server.stop()
    assert server.closed


def test_a_server_whose_streams_stay_open_still_ends(start: Callable[..., Running]) -> None:
    server = start(drain_streams=False, listening=Listening(port=0, grace_seconds=0.2))
    with server.client() as client:
        client.send(request("GET", "/hot/stream"))
        assert client.head().status == 200
        server.stop()
    assert server.closed
    assert server.routes.owners[-1].said == ["gone"]


def test_metrics_can_have_a_port_of_their_own(start: Callable[..., Running]) -> None:
    server = start(metrics_port=True)
    port = int(server.server.metrics_url.rpartition(":")[2].removesuffix("/metrics"))
    with Client(port) as client:
        assert client.get("/metrics").status == 200
        assert client.get("/hot/echo/a").status == 404


def test_tls_is_spoken_with_a_certificate(start: Callable[..., Running], tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_pair(cert, key)
    server = start(listening=Listening(port=0, tls_cert=cert, tls_key=key, grace_seconds=2))
    assert server.server.base_url.startswith("https://")
    context = ssl.create_default_context(cafile=str(cert))
    for prefix in ("/hot", "/cold"):
        with server.client() as client:
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
            assert client.get(f"{prefix}/echo/a").status == 200
            client.send(request("POST", f"{prefix}/later?20", "Content-Length: 0"))
            assert client.answer().status == 201
            count = len(server.routes.owners)
            client.send(request("GET", f"{prefix}/stream"))
            assert client.head().status == 200
            assert client.chunk() == b": hello\n\n"
            owner = server.routes.owners[count]
            server.call(owner.pipe.close)
            assert client.chunks() == b""
    with server.client() as client:
        client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
        client.send(b"garbage\r\n\r\n")
        assert client.answer().status == 400
    with server.client() as plain:
        plain.send(request("GET", "/hot/echo/a"))
        assert plain.ended()


def test_a_port_file_appears_at_once(tmp_path: Path) -> None:
    path = tmp_path / "port"
    write_port_file(path, "::1", 8000)
    assert path.read_text() == "[::1]:8000\n"
    write_port_file(path, "127.0.0.1", 8001)
    assert path.read_text() == "127.0.0.1:8001\n"
    assert list(tmp_path.iterdir()) == [path]
