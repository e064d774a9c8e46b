"""The rows of log events can be read and can be logged at their level."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from seamark.telemetry import events
from seamark.telemetry.events import EVENTS

SRC = Path(events.__file__).parent.parent


def test_rows_have_levels_that_exist_and_say_what_they_mean() -> None:
    for name, row in EVENTS.items():
        assert row.name == name
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", name)
        assert row.level.upper() in logging.getLevelNamesMapping()
        assert row.meaning.endswith(".")


def test_every_row_is_logged_somewhere() -> None:
    code = "".join(path.read_text() for path in SRC.rglob("*.py"))
    constants = {name for name, value in vars(events).items() if isinstance(value, str) and value in EVENTS}
    assert len(constants) == len(EVENTS)
    assert {name for name in constants if f"events.{name}" not in code} == set()
