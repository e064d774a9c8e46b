"""`seamark bench` as a verb. What it measures is tested in tests/bench."""

from __future__ import annotations

import json
from pathlib import Path

from seamark.bench.scenario import BY_NAME
from seamark.cli.exits import Exit
from tests.cli.process import run


def test_an_unknown_scenario_is_refused_with_the_list(tmp_path: Path) -> None:
    done = run("bench", "no-such-scenario", cwd=tmp_path)
    assert done.returncode == Exit.USAGE
    assert "no-such-scenario" in done.stderr
    assert "fan-out" in done.stderr


def test_the_scenarios_can_be_listed(tmp_path: Path) -> None:
    done = run("bench", "--list", cwd=tmp_path)
    assert done.returncode == Exit.OK
    rows = {row["name"]: row["about"] for row in map(json.loads, done.stdout.splitlines())}
    assert list(rows) == list(BY_NAME)
    assert "bare loop" in rows["fan-out"]
