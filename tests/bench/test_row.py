from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from seamark.bench import row
from seamark.bench.row import Report, Row, against, aim, quantity, ratio_of


def a_row(value: float | None = 50.0) -> Row:
    return Row(scenario="fan-out", parameters={"watchers": 100}, value=value, unit="deliveries/s", notes="a note")


def test_a_ratio_needs_both_sides() -> None:
    assert ratio_of(1.0, 2.0) == 0.5
    assert ratio_of(None, 2.0) is None
    assert ratio_of(1.0, 0.0) is None
    assert ratio_of(1.0, float("nan")) is None
    assert against(a_row(), "bare", 100.0).ratio == 0.5
    assert against(a_row(None), "bare", 100.0).ratio is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (1234567.8, "1,234,568"),
        (123.45, "123.5"),
        (1.2345, "1.23"),
        (0.00123, "0.00123"),
    ],
)
def test_quantities_read_well(value: float | None, text: str) -> None:
    assert quantity(value) == text


def test_a_report_survives_the_disk(tmp_path: Path) -> None:
    rows = [aim(against(a_row(), "bare", 100.0), ">= 0.8 x", False), a_row(None)]
    report = Report(machine={"cores": 2}, quick=True, rows=rows, failures={"idle": "why"})
    row.write(report, tmp_path / "deep" / "report.json")
    assert row.read(tmp_path / "deep" / "report.json") == report


def test_the_table_shows_figures_references_targets_notes_and_failures() -> None:
    said = StringIO()
    rows = [aim(against(a_row(), "bare loop", 100.0), ">= 0.8 x", False)]
    row.show(
        Report(machine={"cores": 2}, quick=False, rows=rows, failures={"idle": "no reason"}),
        Console(file=said, width=150),
    )
    text = said.getvalue()
    for part in (
        "cores: 2",
        "fan-out, beside: bare loop",
        "watchers",
        "50",
        "0.50",
        "missed >= 0.8 x",
        "a note",
        "no reason",
    ):
        assert part in text
