from __future__ import annotations

import importlib
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from seamark.bench import machine, row, run
from seamark.bench.scenario import BY_NAME, SCENARIOS, Scenario
from seamark.errors import BadInput


def test_scenarios_are_chosen_by_name_in_their_own_order() -> None:
    assert run.choose([]) == list(SCENARIOS)
    assert [scenario.name for scenario in run.choose(["resume", "append"])] == ["append", "resume"]


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="no benchmark is called speed; there are append"):
        run.run(["speed"], quick=True, out=None)


def test_every_scenario_has_a_module_that_runs() -> None:
    for scenario in SCENARIOS:
        assert callable(importlib.import_module(f"seamark.bench.{scenario.module}").run)
        assert BY_NAME[scenario.name] is scenario
        assert scenario.about


@pytest.mark.slow
def test_a_run_shows_a_table_and_leaves_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(machine.DIRECTORY_VARIABLE, str(tmp_path))
    said = StringIO()
    code = run.run(["filters"], quick=True, out=tmp_path / "out", console=Console(file=said, width=150))
    assert code == 0
    report = row.read(tmp_path / "out" / "filters.json")
    assert report.quick
    assert not report.failures
    assert {found.scenario for found in report.rows} == {"filters"}
    assert "records/s" in said.getvalue()
    assert list(tmp_path.glob("seamark-bench-*")) == []


def test_a_scenario_that_fails_is_reported_and_the_others_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(machine.DIRECTORY_VARIABLE, str(tmp_path))
    broken = Scenario("broken", "no_such_module", "cannot run", 30)
    monkeypatch.setattr(run, "choose", lambda names: [broken])
    said = StringIO()
    assert run.run([], quick=True, out=tmp_path, console=Console(file=said, width=150)) == run.FAILED
    assert "broken failed" in said.getvalue()
    assert list(row.read(tmp_path / "broken.json").failures) == ["broken"]


def test_a_scenario_that_takes_too_long_is_ended_with_its_servers(tmp_path: Path) -> None:
    hurried = BY_NAME["filters"]._replace(seconds_max=0)
    with pytest.raises(run.ScenarioFailed, match="not done after 0 s"):
        run.measure(hurried, quick=False, where=tmp_path)
    assert list(tmp_path.iterdir()) == []
