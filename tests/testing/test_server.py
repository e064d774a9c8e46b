"""The server fixture, tried on programs that behave well and badly, and on the real server."""

from __future__ import annotations

import json
import signal
import sys
import textwrap
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from seamark.testing import server as server_module
from seamark.testing.server import ServerFailed, ServerProcess

GREETER = textwrap.dedent(
    """
    import argparse, http.server, os, pathlib, signal, sys
    flags = argparse.ArgumentParser()
    for name in ("host", "port", "port-file", "data", "engine", "mood"):
        flags.add_argument("--" + name, default="")
    given = flags.parse_args()
    data = pathlib.Path(given.data)
    (data / "starts").open("a").write("x")
    print("I am", given.mood or "fine", file=sys.stderr, flush=True)
    if given.mood == "dying":
        sys.exit(3)
    if given.mood == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    class Handler(http.server.BaseHTTPRequestHandler):
        asked = 0
        def do_GET(self):
            Handler.asked += 1
            self.send_response(503 if given.mood == "lazy" and Handler.asked < 4 else 200)
            self.end_headers()
            self.wfile.write((data / "starts").read_bytes())
        def log_message(self, *args):
            pass

    server = http.server.HTTPServer((given.host, int(given.port)), Handler)
    temporary = given.port_file + ".new"
    pathlib.Path(temporary).write_text("127.0.0.1:%d" % server.server_address[1])
    os.replace(temporary, given.port_file)
    server.serve_forever()
    """
)


def greeter(place: Path, mood: str = "") -> ServerProcess:
    command: Sequence[str] = (sys.executable, "-c", GREETER)
    return ServerProcess(place, "--mood", mood, command=command)


def fetch(server: ServerProcess, path: str = "/") -> bytes:
    with urllib.request.urlopen(server.base_url + path, timeout=10) as answer:
        body: bytes = answer.read()
    return body


def test_it_starts_stops_and_starts_again_on_the_same_data(tmp_path: Path) -> None:
    with greeter(tmp_path) as server:
        assert server.running
        assert server.address[0] == "127.0.0.1"
        assert fetch(server) == b"x"
        assert server.stop() == -signal.SIGTERM
        assert not server.running
        server.start()
        assert fetch(server) == b"xx"
        server.kill()
        server.restart()
        assert fetch(server) == b"xxx"
        pid = server.pid
    assert not server.running
    assert server.pid == pid
    assert server.stderr_tail().count("I am fine") == 3


def test_it_waits_until_the_server_is_ready(tmp_path: Path) -> None:
    with greeter(tmp_path, "lazy") as server:
        assert fetch(server) == b"x"


def test_an_early_end_is_told_with_what_it_said(tmp_path: Path) -> None:
    server = greeter(tmp_path, "dying")
    with pytest.raises(ServerFailed, match=r"(?s)ended with 3.*I am dying"):
        server.start()
    assert not server.running


def test_a_server_that_does_not_end_is_killed_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STOP_SECONDS", 0.3)
    with greeter(tmp_path, "deaf") as server:
        with pytest.raises(ServerFailed, match="SIGTERM"):
            server.stop()
        assert not server.running


def test_a_server_that_never_listens_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "READY_SECONDS", 0.3)
    server = ServerProcess(tmp_path, command=(sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(ServerFailed, match="not ready"):
        server.start()
    assert not server.running


@pytest.mark.slow
def test_the_real_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        assert json.loads(fetch(server, "/health"))["status"] == "ok"
        server.kill()
        server.start()
        assert server.stop() == 0
