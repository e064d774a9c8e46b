"""The rows of log events can be read and can be logged at their level."""

from __future__ import annotations

import logging
import re

from seamark.telemetry.events import EVENTS


def test_rows_have_levels_that_exist_and_say_what_they_mean() -> None:
    for name, row in EVENTS.items():
        assert row.name == name
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", name)
        assert row.level.upper() in logging.getLevelNamesMapping()
        assert row.meaning.endswith(".")
