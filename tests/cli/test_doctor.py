"""The doctor as a process: one line each, what to do, and an exit code that scripts can use."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from seamark.cli.exits import Exit
from tests.cli.process import run


def test_a_fit_machine_ends_with_0_and_every_line_is_a_fact(tmp_path: Path) -> None:
    done = run("doctor", "--port", "0", cwd=tmp_path)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    assert {row["check"] for row in rows} == {
        "python",
        "uvloop",
        "libraries",
        "settings",
        "file system",
        "disk space",
        "data directory",
        "fsync latency",
        "clock",
        "open files",
        "port",
        "java",
    }
    assert all(row["remedy"] for row in rows if row["level"] != "ok")
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_ends_with_1_and_says_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = run("doctor", "--text", "--port", str(listener.getsockname()[1]), cwd=tmp_path)
    assert done.returncode == Exit.FINDINGS
    assert "fail  port:" in done.stdout
    assert "-> stop what listens there" in done.stdout


def test_settings_that_do_not_go_together_are_a_finding(tmp_path: Path) -> None:
    done = run("doctor", "--text", "--port", "0", "--engine", "memory", "--tls-cert", "c.pem", cwd=tmp_path)
    assert done.returncode == Exit.FINDINGS
    assert "fail  settings: tls_cert (flag --tls-cert): given without tls_key" in done.stdout
    assert "fsync" not in done.stdout
