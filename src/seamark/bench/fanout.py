"""Fan-out: one stream, many watchers. Under load, one event at a time, and at a fixed rate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from seamark.bench import process
from seamark.bench.audience import Audience, Outcome
from seamark.bench.bench import Bench
from seamark.bench.calls import WAITED_SHARE_QUIET
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median

COUNTS = (100, 1_000, 5_000)
WINDOW = 16
RATE = 20_000
RATIO_AIM = 0.8
P99_AIM = 1.5
AIMED_COUNT = 1_000  # the watchers at which the figures above are to be reached
REFERENCE = "bare uvloop loop"

Mode = Callable[..., Outcome]  # of an audience, for so many `seconds`
MODES: dict[str, Mode] = {
    "saturation": lambda audience, seconds: audience.window(WINDOW, seconds),
    "one at a time": lambda audience, seconds: audience.window(1, seconds),
    "fixed rate": lambda audience, seconds: audience.rate(RATE, seconds),
}


def run(bench: Bench) -> list[Row]:
    """Each round measures both servers, one after the other; figures are medians over the rounds."""
    counts = COUNTS[:1] if bench.quick else COUNTS
    classes = ("fsync",) if bench.quick else ("fsync", "disk")
    rows: list[Row] = []
    with process.seamark(bench) as real, process.bare(bench) as bare:
        for count in counts:
            for durability in classes:
                rows += _count(real, bare, count, durability, quick=bench.quick)
    return rows


def _count(real: process.Process, bare: process.Process, count: int, durability: str, *, quick: bool) -> list[Row]:
    rounds, seconds = (1, 0.5) if quick else (3, 2.0)
    audiences = {"seamark": Audience(real, count, durability=durability), "bare": Audience(bare, count)}
    rows: list[Row] = []
    for mode, measure in MODES.items():
        if durability != "fsync" and mode != "saturation":
            continue
        outcomes = in_turn(audiences, partial(measure, seconds=seconds), rounds)
        parameters: dict[str, Value] = {"watchers": count, "mode": mode, "class": durability}
        found = rows_of("fan-out", parameters, outcomes["seamark"], outcomes["bare"])
        rows += [_aimed(row) for row in found]
    for audience in audiences.values():
        audience.close()
    return rows


def in_turn(
    audiences: dict[str, Audience], measure: Callable[[Audience], Outcome], rounds: int
) -> dict[str, list[Outcome]]:
    """Rounds that take the audiences in turn, now this one first, now that one."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in audiences}
    for number in range(rounds):
        for name in sorted(audiences, reverse=number % 2 == 0):
            outcomes[name].append(measure(audiences[name]))
    return outcomes


def rows_of(scenario: str, parameters: dict[str, Value], ours: list[Outcome], theirs: list[Outcome]) -> list[Row]:
    """Four rows for one mode: deliveries per CPU-second and per second, p50 and p99."""
    note = _note(ours, theirs, sends_at_will=parameters.get("mode") != "fixed rate")
    figures: tuple[tuple[str, Callable[[Outcome], float | None]], ...] = (
        ("deliveries per server CPU-second", lambda outcome: outcome.per_server_cpu),
        ("deliveries/s", lambda outcome: outcome.per_second),
        ("p50 ms", lambda outcome: outcome.p50_ms),
        ("p99 ms", lambda outcome: outcome.p99_ms),
    )
    rows = []
    for unit, figure in figures:
        row = Row(scenario=scenario, parameters=parameters, value=_median(ours, figure), unit=unit)
        rows.append(against(row, REFERENCE, _median(theirs, figure)))
    rows[0].notes = note
    return rows


def _note(ours: list[Outcome], theirs: list[Outcome], *, sends_at_will: bool) -> str:
    """What must be known to believe the figures. At a fixed rate the client spins to be on time: no ceiling shows."""
    note = f"lost {sum(outcome.lost for outcome in ours)}, out of order {sum(outcome.broken for outcome in ours)}"
    if sends_at_will:
        ceiling = median([outcome.deliveries / outcome.client_cpu for outcome in theirs])
        share = median([outcome.client_share for outcome in ours])
        note += f"; client core {share:.0%} busy, its own ceiling {ceiling:,.0f}/s beside the bare loop"
    waited = median([outcome.waited_share for outcome in ours])
    if waited > WAITED_SHARE_QUIET:
        note += f"; disturbed: the server waited {waited:.0%} of the time for its core"
    return note


def _median(outcomes: list[Outcome], figure: Callable[[Outcome], float | None]) -> float | None:
    found = [value for outcome in outcomes if (value := figure(outcome)) is not None]
    return median(found) if found else None


def _aimed(row: Row) -> Row:
    if row.parameters["watchers"] != AIMED_COUNT or row.ratio is None:
        return row
    mode = row.parameters["mode"]
    if mode == "saturation" and row.unit.startswith("deliveries per server"):
        return aim(row, f">= {RATIO_AIM} x", row.ratio >= RATIO_AIM)
    if mode == "fixed rate" and row.unit == "p99 ms":
        return aim(row, f"<= {P99_AIM} x", row.ratio <= P99_AIM)
    return row
