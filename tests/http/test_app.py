"""The wiring, seen from outside: a real process with everything in its place."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from seamark.testing.server import ServerProcess

pytestmark = pytest.mark.slow  # processes of their own

KEYS = {"SEAMARK_API_KEYS": "boss,reader:read,tenant:rw:t1-"}
RECORDS = {"records": [{"data": 1}]}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_keys_guard_every_route_that_needs_one(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, environment=KEYS) as server, httpx.Client(base_url=server.base_url) as client:
        assert client.post("/raw/t1-a", json=RECORDS).status_code == 401
        assert client.post("/raw/t1-a", json=RECORDS, headers=bearer("wrong")).status_code == 401
        assert client.post("/raw/t1-a", json=RECORDS, headers=bearer("reader")).status_code == 403
        twice = [("Authorization", "Bearer boss"), ("Authorization", "Bearer reader")]
        assert client.post("/raw/t1-a", json=RECORDS, headers=twice).status_code == 401
        assert client.get("/raw/t1-a", headers=twice).status_code == 401
        assert client.post("/raw/other", json=RECORDS, headers=bearer("tenant")).status_code == 403
        assert client.post("/raw/t1-a", json=RECORDS, headers=bearer("tenant")).status_code == 201
        assert client.post("/raw/other", json=RECORDS, headers=bearer("boss")).status_code == 201
        assert client.put("/raw/t1-a", headers=bearer("tenant")).status_code == 403
        listed = client.get("/raw", headers=bearer("tenant")).json()["streams"]
        assert [stream["stream"] for stream in listed] == ["t1-a"]
        for path in ("/health", "/ready", "/metrics", "/openapi.json", "/api-docs/openapi.json", "/"):
            assert client.get(path).status_code == 200, path
        assert "boss" not in server.stderr_tail()


def test_health_says_what_an_acknowledgement_means(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        health = httpx.get(f"{server.base_url}/health").json()
    assert health["status"] == "ok"
    assert health["engine"] == "embedded"
    assert health["log"]["durability"] == "local disk, fsync"
    assert health["log"]["writable"] is True


def test_metrics_move_to_a_port_of_their_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with ServerProcess(tmp_path, "--metrics-port", str(port)) as server:
        assert httpx.get(f"{server.base_url}/metrics").status_code == 404
        httpx.post(f"{server.base_url}/raw/a", json=RECORDS)
        text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert "seamark_log_records_appended_total 1.0" in text
        assert httpx.get(f"http://127.0.0.1:{port}/raw").status_code == 404


def test_a_start_that_fails_halfway_leaves_nothing_half_open(tmp_path: Path) -> None:
    code = (
        "from seamark import config; from seamark.http import app; from seamark.telemetry import logs\n"
        "logs.configure(level='info', style='json')\n"
        "app.serve(config.load({'port': '0', 'data': 'data', 'port_file': 'gone/port'}), on_ready=print)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "No such file or directory: 'gone/" in done.stderr.splitlines()[-1]
    assert "lifespan" not in done.stderr
    assert "server.started" not in done.stderr
    with ServerProcess(tmp_path):
        pass  # the directory was given back


def test_the_document_names_the_address_that_clients_use(tmp_path: Path) -> None:
    for url, named in (("", "/"), ("https://sea.example", "https://sea.example")):
        with ServerProcess(tmp_path, "--public-url", url, engine="memory") as server:
            assert httpx.get(f"{server.base_url}/openapi.json").json()["servers"] == [{"url": named}]


def test_uptime_is_counted(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, engine="memory") as server:
        text = httpx.get(f"{server.base_url}/metrics").text
    value = next(line for line in text.splitlines() if line.startswith("seamark_uptime_seconds "))
    assert float(value.split()[1]) > 0


def test_a_stop_says_goodbye_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    heard: list[bytes] = []
    reading = threading.Event()

    def read() -> None:
        with httpx.stream("GET", f"{server.base_url}/raw/a/watch?after=0", timeout=30) as response:
            for chunk in response.iter_raw():
                heard.append(chunk)
                reading.set()

    with ServerProcess(tmp_path) as server:
        httpx.put(f"{server.base_url}/raw/a", json={"durability": "disk"})
        httpx.post(f"{server.base_url}/raw/a", json=RECORDS)
        reader = threading.Thread(target=read)
        reader.start()
        assert reading.wait(30)
        last = httpx.post(f"{server.base_url}/raw/a", json=RECORDS).json()["last"]
        assert server.stop() == 0
        reader.join(30)
        assert b"".join(heard).endswith(b'event: closing\ndata: {"reason":"shutdown"}\n\n')
        server.start()
        state = httpx.get(f"{server.base_url}/raw/a").json()
        assert (state["head"], state["evict_floor"]) == (last, 1)


def test_demo_data_is_live(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--demo", engine="memory") as server:
        with httpx.stream("GET", f"{server.base_url}/raw/demo/watch?after=0", timeout=30) as response:
            lines = response.iter_lines()
            records = [next(line for line in lines if line == "event: record") for _ in range(2)]
        assert len(records) == 2
