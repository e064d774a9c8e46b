"""What `serve` says when the server is ready. That it serves is shown by tests/docs and tests/contract."""

from __future__ import annotations

from pathlib import Path

from seamark.cli.serve import welcome_lines
from seamark.config import load


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
