"""Exit codes are facts that scripts rely on."""

from __future__ import annotations

from seamark.cli.exits import Exit


def test_the_codes_are_these() -> None:
    assert {row.name: int(row) for row in Exit} == {
        "OK": 0,
        "FINDINGS": 1,
        "USAGE": 2,
        "FAULT": 3,
        "MISSING": 4,
        "INTERRUPTED": 130,
    }
    assert all(row.meaning.endswith(".") for row in Exit)
