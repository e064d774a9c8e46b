"""`seamark bench` as a verb. What it measures is tested in tests/bench."""

from __future__ import annotations

from pathlib import Path

from seamark.cli.exits import Exit
from tests.cli.process import run


def test_an_unknown_scenario_is_refused_with_the_list(tmp_path: Path) -> None:
    done = run("bench", "no-such-scenario", cwd=tmp_path)
    assert done.returncode == Exit.USAGE
    assert "no-such-scenario" in done.stderr
    assert "fan-out" in done.stderr
