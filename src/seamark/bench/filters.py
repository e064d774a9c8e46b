"""Matching against many live filters; `match_scenario` measures, this makes its figures rows like all others."""

from __future__ import annotations

from typing import cast

from seamark.bench import match_scenario
from seamark.bench.bench import Bench
from seamark.bench.row import Row, aim

COUNTS = (1_000, 10_000, 100_000)
COUNTS_QUICK = (200, 1_000)
REFERENCE = "each filter asked in turn"
AIMED_FILTERS = 100_000
SPEED_AIM = 30_000
COST_AIM = 3.0
CHANGE_AIM_US = 100.0


def run(bench: Bench) -> list[Row]:
    """Figures of the mix, and what ten times the filters cost."""
    counts, seconds = (COUNTS_QUICK, 0.2) if bench.quick else (COUNTS, 2.0)
    rows = [_row(found) for found in match_scenario.run(counts, seconds)]
    speeds = {int(row.parameters["filters"]): row.value for row in rows if row.parameters["figure"] == "match"}
    large, small = speeds[counts[-1]], speeds[counts[-2]]
    if large and small:
        cost = Row(
            scenario="filters", parameters={"filters": counts[-1], "figure": "cost"}, value=small / large, unit="x"
        )
        cost.notes = f"time for one record, against {counts[-2]:,} filters"
        rows.append(aim(cost, f"<= {COST_AIM:.0f} x", small / large <= COST_AIM))
    return rows


def _row(found: dict[str, object]) -> Row:
    filters, name = cast("int", found["filters"]), str(found["name"])
    value, reference = cast("float", found["value"]), cast("float | None", found["reference"])
    row = Row(scenario="filters", parameters={"filters": filters, "figure": name}, value=value, unit=str(found["unit"]))
    if reference is not None:
        row.reference_name, row.reference, row.ratio = REFERENCE, reference, value / reference
    if filters == AIMED_FILTERS and name == "match":
        aim(row, f">= {SPEED_AIM:,}", value >= SPEED_AIM)
    if filters == AIMED_FILTERS and name.startswith("add or remove"):
        aim(row, f"<= {CHANGE_AIM_US:.0f} us", value <= CHANGE_AIM_US)
    return row
