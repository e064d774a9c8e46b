"""Logs as another process reads them: JSON lines or text on stderr, ours and the libraries' alike."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import logging, sys
from seamark.telemetry import logs
logs.configure(level=sys.argv[1], style=sys.argv[2])
log = logs.logger("room")
log.debug("a.debug")
log.info("a.info", number=1, seconds=0.00020546600080706412)
log.error("a.error")
logging.getLogger("library").warning("from %s", "elsewhere")
"""


def said(level: str, style: str) -> list[str]:
    """What a process with these settings says on stderr; stdout stays empty."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, level, style], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_lines_carry_room_level_time_and_fields() -> None:
    rows = [json.loads(line) for line in said("info", "json")]
    assert [row["event"] for row in rows] == ["a.info", "a.error", "from elsewhere"]
    assert rows[0]["room"] == "room"
    assert rows[0]["number"] == 1
    assert rows[0]["seconds"] == 0.000205
    assert [row["level"] for row in rows] == ["info", "error", "warning"]
    assert all(row["time"].endswith("Z") for row in rows)


@pytest.mark.parametrize(("level", "count"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_is_a_threshold_for_everybody(level: str, count: int) -> None:
    assert len(said(level, "json")) == count


def test_text_has_no_colours_when_nobody_is_looking() -> None:
    lines = said("info", "text")
    assert "a.info" in lines[0]
    assert lines[0][:2] == "20", "the time comes first"
    assert not any("\x1b" in line for line in lines)


def test_what_we_ask_others_is_not_logged_whatever_the_level() -> None:
    script = """
import logging
from seamark.telemetry import logs
logs.configure(level="debug", style="json")
for name in ("httpx", "httpcore.http11"):
    logging.getLogger(name).debug("a secret")
    logging.getLogger(name).info("a secret")
    logging.getLogger(name).warning("a warning")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["a warning", "a warning"]
