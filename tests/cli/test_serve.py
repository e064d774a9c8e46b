"""What `serve` says when the server is ready. That it serves is shown by tests/docs and tests/contract."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

from seamark.cli.exits import Exit
from seamark.cli.serve import welcome_lines
from seamark.config import load
from tests.cli.process import CLEAN, run


def test_the_welcome_names_the_console_and_three_lines(tmp_path: Path) -> None:
    lines = welcome_lines(load({"demo": True}, directory=tmp_path), "http://127.0.0.1:8000")
    assert any("http://127.0.0.1:8000/" in line and "Console" in line for line in lines)
    tries = [line.strip() for line in lines if line.strip().startswith("curl ")]
    assert len(tries) == 3
    assert all("/raw/demo" in line for line in tries)


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
