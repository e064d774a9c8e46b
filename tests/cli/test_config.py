"""`seamark config`: every value, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path

from seamark.cli.exits import Exit
from tests.cli.process import run


def test_config_says_where_every_value_came_from(tmp_path: Path) -> None:
    (tmp_path / "seamark.toml").write_text("heartbeat_seconds = 5\n")
    done = run("config", "--port", "9", cwd=tmp_path, SEAMARK_API_KEYS="hunter2", EXD_PUBLIC_URL="http://x.example")
    assert done.returncode == Exit.OK
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["port"] == {"name": "port", "value": 9, "source": "flag", "where": "--port"}
    assert rows["heartbeat_seconds"] == {
        "name": "heartbeat_seconds",
        "value": 5.0,
        "source": "file",
        "where": "seamark.toml",
    }
    assert rows["public_url"]["where"] == "EXD_PUBLIC_URL"
    assert rows["host"]["source"] == "default"
    assert rows["api_keys"]["value"] == "********"
    assert "hunter2" not in done.stdout + done.stderr


def test_config_as_a_table_shows_brackets_as_they_are(tmp_path: Path) -> None:
    done = run("config", "--table", "--data", "[bold]x[/bold]", cwd=tmp_path)
    assert "[bold]x[/bold]" in done.stdout
