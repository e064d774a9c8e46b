"""What `serve` says when the server is ready. That it serves is shown by tests/docs and tests/contract."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from seamark.cli.exits import Exit
from seamark.cli.serve import welcome_lines
from seamark.config import load
from tests.certificate import make_pair
from tests.cli.process import CLEAN, run

pytestmark = pytest.mark.slow  # processes of their own


def test_the_welcome_names_the_console_and_three_lines(tmp_path: Path) -> None:
    lines = welcome_lines(load({"demo": True}, directory=tmp_path), "http://127.0.0.1:8000")
    assert any("http://127.0.0.1:8000/" in line and "Console" in line for line in lines)
    tries = [line.strip() for line in lines if line.strip().startswith("curl ")]
    assert len(tries) == 3
    assert all("/raw/demo" in line for line in tries)


def test_the_welcome_names_the_public_address(tmp_path: Path) -> None:
    lines = welcome_lines(load({"public_url": "https://sea.example/"}, directory=tmp_path), "http://127.0.0.1:8000")
    assert "Seamark is ready. Console: http://127.0.0.1:8000/ (public: https://sea.example/)" in lines


def test_the_welcome_says_where_the_token_for_flags_is(tmp_path: Path) -> None:
    without = welcome_lines(load({}, directory=tmp_path), "http://127.0.0.1:1")
    with_token = welcome_lines(load({"superadmin_token_file": "t/token"}, directory=tmp_path), "http://127.0.0.1:1")
    assert [line for line in with_token if line not in without] == [
        "Feature flags: the superadmin's token is in t/token."
    ]


def test_the_welcome_never_shows_a_key(tmp_path: Path) -> None:
    settings = load({"engine": "memory"}, environ={"SEAMARK_API_KEYS": "hunter2"}, directory=tmp_path)
    text = "\n".join(welcome_lines(settings, "http://127.0.0.1:1"))
    assert "hunter2" not in text
    assert "Authorization: Bearer" in text
    assert "forgotten" in text


def test_a_taken_port_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = run("serve", "--port", str(listener.getsockname()[1]), cwd=tmp_path)
    assert done.returncode == Exit.FAULT
    assert done.stderr.startswith("seamark: 127.0.0.1 port")
    assert "already in use" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "var").exists()


def test_a_taken_metrics_port_is_told_like_the_main_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = run("serve", "--port", "0", "--metrics-port", port, cwd=tmp_path)
    assert done.returncode == Exit.FAULT
    assert done.stderr.startswith(f"seamark: 127.0.0.1 port {port}: address already in use; stop what")
    assert len(done.stderr.splitlines()) == 1


def test_what_cannot_start_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("not a certificate")
    wrong: list[tuple[dict[str, str], list[str], str]] = [
        ({"SEAMARK_API_KEYS": "k:everything"}, [], "api_keys (environment SEAMARK_API_KEYS): entry 1"),
        ({}, ["--port-file", "nowhere/port"], "port_file (flag --port-file): nowhere is not a directory"),
        ({}, ["--metrics-port", "8123"], "metrics_port (flag --metrics-port): 8123 is the main port"),
        ({}, ["--tls-cert", "cert.pem", "--tls-key", "cert.pem"], "tls_cert (flag --tls-cert): cert.pem and cert.pem"),
    ]
    for environ, flags, says in wrong:
        done = run("serve", "--port", "8123", *flags, cwd=tmp_path, **environ)
        assert done.returncode == Exit.USAGE, done.stderr
        assert done.stderr.startswith(f"seamark: {says}")
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "var").exists()


def test_tls_files_make_it_speak_https(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_pair(cert, key)
    (tmp_path / "seamark.toml").write_text(f'port = 0\nengine = "memory"\ntls_cert = "{cert}"\ntls_key = "{key}"\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "seamark", "serve"],
        cwd=tmp_path,
        env=CLEAN,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            assert url.startswith("https://127.0.0.1:")
            with pytest.raises(httpx.HTTPError):
                httpx.get(url.replace("https", "http"))
            trust = ssl.create_default_context(cafile=str(cert))
            with httpx.Client(base_url=url, verify=trust, timeout=30) as client:
                receipt = client.post("/raw/a", json={"records": [{"data": 1}]}).json()
                assert client.get("/raw/a").json()["head"] == receipt["last"] == 1
                with client.stream("GET", "/raw/a/watch?after=0") as answer:
                    lines = answer.iter_lines()
                    while "event: caught-up" not in next(lines):
                        pass
                    process.send_signal(signal.SIGTERM)
                    assert 'data: {"reason":"shutdown"}' in list(lines)
            assert process.wait(timeout=30) == Exit.OK
        finally:
            process.kill()


def test_whom_it_lets_in_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "seamark", "serve", "--port", "0", "--engine", "memory", "--host", "0.0.0.0"]
    with subprocess.Popen(
        [*command, "--allow-insecure"], cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said = [json.loads(line) for line in process.communicate(timeout=30)[1].splitlines()]
    assert [line["level"] for line in said if line["event"] == "server.open_to_all"] == ["warning"]


@pytest.mark.parametrize("demo", [[], ["--demo"]])
def test_it_serves_although_nobody_reads_what_it_says(tmp_path: Path, demo: list[str]) -> None:
    file = tmp_path / "port"
    command = [sys.executable, "-m", "seamark", "serve", "--port", "0", "--engine", "memory", "--port-file", str(file)]
    with subprocess.Popen(
        [*command, *demo], cwd=tmp_path, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            while not file.exists() and process.poll() is None:
                time.sleep(0.02)
            assert httpx.get(f"http://{file.read_text().strip()}/ready").json()["status"] == "ready"
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
            assert process.wait(timeout=30) == Exit.OK
            assert "BrokenPipe" not in said
        finally:
            process.kill()


def test_ready_is_said_and_the_keyboard_ends_it(tmp_path: Path) -> None:
    for demo, says in ((False, '{"event":"ready","url":"http://127.0.0.1:'), (True, "Console: http://127.0.0.1:")):
        command = [sys.executable, "-m", "seamark", "serve", "--port", "0", "--engine", "memory"]
        process = subprocess.Popen(
            [*command, "--demo"] if demo else command,
            cwd=tmp_path,
            env=CLEAN,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            said = ""
            while says not in said:
                line = process.stdout.readline()
                assert line, f"it ended after {said!r}"
                said += line
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(timeout=30) == Exit.OK
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
