"""Matching against many live filters; `match_scenario` measures, this makes its figures rows like all others."""

from __future__ import annotations

from typing import cast

from seamark.bench import match_scenario
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, aim

COUNTS = (1_000, 10_000, 100_000)
COUNTS_QUICK = (200, 1_000)
REFERENCE = "each filter asked in turn"
AIMED_FILTERS = 100_000
SPEED_AIM = 30_000
COST_AIM = 3.0
CHANGE_AIM_US = 100.0


def run(bench: Bench) -> list[Row]:
    """Figures of each mix, and what ten times the filters cost."""
    counts, seconds = (COUNTS_QUICK, 0.2) if bench.quick else (COUNTS, 2.0)
    rows = [_row(found) for found in match_scenario.run(counts, seconds)]
    for mix in dict.fromkeys(row.parameters["mix"] for row in rows):
        rows.append(_cost(mix, {row.parameters["filters"]: row.value for row in rows if _matched(row, mix)}))
    return rows


def _matched(row: Row, mix: Value) -> bool:
    return row.parameters["mix"] == mix and row.parameters["figure"] == "match"


def _cost(mix: Value, speeds: dict[Value, float | None]) -> Row:
    """Time for one record with the most filters, against the time with the next fewer."""
    small, large = list(speeds)[-2:]
    slow, fast = speeds[large], speeds[small]
    assert slow
    assert fast
    row = Row(
        scenario="filters", parameters={"filters": large, "mix": mix, "figure": "cost"}, value=fast / slow, unit="x"
    )
    row.notes = f"time for one record, against {small} filters"
    return aim(row, f"<= {COST_AIM:.0f} x", fast / slow <= COST_AIM)


def _row(found: dict[str, object]) -> Row:
    filters, (name, _, mix) = cast("int", found["filters"]), str(found["name"]).rpartition(", ")
    value, reference = cast("float", found["value"]), cast("float | None", found["reference"])
    parameters: dict[str, Value] = {"filters": filters, "mix": mix, "figure": name}
    row = Row(scenario="filters", parameters=parameters, value=value, unit=str(found["unit"]))
    if reference is not None:
        row.reference_name, row.reference, row.ratio = REFERENCE, reference, value / reference
    if filters == AIMED_FILTERS and name == "match":
        aim(row, f">= {SPEED_AIM:,}", value >= SPEED_AIM)
    if filters == AIMED_FILTERS and name.startswith("add or remove"):
        aim(row, f"<= {CHANGE_AIM_US:.0f} us", value <= CHANGE_AIM_US)
    return row
