"""One figure of a benchmark, with what it is compared to, and the ways to show many of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

Value = str | int | float | bool


class Row(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`ratio` is value / reference. `target` is what the figure should reach; `met` says whether it did."""

    scenario: str
    parameters: dict[str, Value]
    value: float | None
    unit: str
    reference_name: str | None = None
    reference: float | None = None
    ratio: float | None = None
    target: str | None = None
    met: bool | None = None
    notes: str = ""


class Report(msgspec.Struct, kw_only=True):
    """What one run wrote to disk."""

    machine: dict[str, Value]
    quick: bool
    rows: list[Row]
    failures: dict[str, str]


def ratio_of(value: float | None, reference: float | None) -> float | None:
    """None where there is nothing to compare, or nothing to divide by."""
    if value is None or not reference or math.isnan(value) or math.isnan(reference):
        return None
    return value / reference


def against(row: Row, name: str, reference: float | None) -> Row:
    """The row with its reference filled in."""
    row.reference_name, row.reference, row.ratio = name, reference, ratio_of(row.value, reference)
    return row


def aim(row: Row, text: str, met: bool | None) -> Row:
    """The row with the figure it should reach."""
    row.target, row.met = text, met
    return row


def quantity(value: float | None) -> str:
    """A number as people read it: three or four significant digits, thousands apart."""
    if value is None or math.isnan(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def settings_text(parameters: dict[str, Value]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def tables(rows: Sequence[Row]) -> Iterable[Table]:
    """One table for each scenario, in the order they came."""
    for scenario in dict.fromkeys(row.scenario for row in rows):
        table = Table(title=scenario, title_justify="left", title_style="bold", header_style="dim")
        for head in ("parameters", "value", "unit", "reference", "", "ratio", "target", "notes"):
            table.add_column(head, justify="right" if head in ("value", "", "ratio") else "left")
        for row in rows:
            if row.scenario == scenario:
                table.add_row(*cells(row))
        yield table


def cells(row: Row) -> tuple[str, ...]:
    """A row as text."""
    verdict = {True: "[green]met[/] ", False: "[red]missed[/] ", None: ""}[row.met]
    return (
        settings_text(row.parameters),
        quantity(row.value),
        row.unit,
        row.reference_name or "",
        quantity(row.reference) if row.reference_name else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        f"{verdict}{row.target}" if row.target else "",
        row.notes,
    )


def show(report: Report, console: Console) -> None:
    console.print("  ".join(f"{name}: {value}" for name, value in report.machine.items()), highlight=False)
    for table in tables(report.rows):
        console.print(table)
    for name, why in report.failures.items():
        console.print(f"[red]{name} failed[/]: {why}", highlight=False)


def write(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def read(path: Path) -> Report:
    return msgspec.json.decode(path.read_bytes(), type=Report)
