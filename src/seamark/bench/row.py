"""One figure of a benchmark, with what it is compared to, and the ways to show many of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
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


def table(scenario: str, rows: Sequence[Row]) -> Table:
    """The rows of one scenario: a column for each parameter, what they are compared to above."""
    names = list(dict.fromkeys(name for row in rows for name in row.parameters))
    references = list(dict.fromkeys(row.reference_name for row in rows if row.reference_name))
    title = f"[bold]{scenario}[/]" + (f", beside: {'; '.join(references)}" if references else "")
    made = Table(title=title, title_justify="left", title_style="", box=SIMPLE_HEAD, header_style="dim")
    for name in names:
        made.add_column(name)
    for head in ("value", "unit", "reference", "ratio", "target"):
        made.add_column(head, justify="left" if head in ("unit", "target") else "right")
    for row in rows:
        made.add_row(*(str(row.parameters.get(name, "")) for name in names), *cells(row))
    return made


def cells(row: Row) -> tuple[str, ...]:
    """The figures of a row as text."""
    verdict = {True: "[green]met[/] ", False: "[red]missed[/] ", None: ""}[row.met]
    return (
        quantity(row.value),
        row.unit,
        quantity(row.reference) if row.reference is not None else "",
        "" if row.ratio is None else f"{row.ratio:.2f}",
        f"{verdict}{row.target}" if row.target else "",
    )


def notes(rows: Sequence[Row]) -> Iterator[str]:
    """What has to be said beside the figures."""
    for row in rows:
        if row.notes:
            where = " ".join(f"{name}={value}" for name, value in row.parameters.items())
            yield f"  {where}: {row.notes}"


def show(report: Report, console: Console) -> None:
    console.print("  ".join(f"{name}: {value}" for name, value in report.machine.items()), highlight=False)
    for scenario in dict.fromkeys(row.scenario for row in report.rows):
        rows = [row for row in report.rows if row.scenario == scenario]
        console.print(table(scenario, rows))
        for note in notes(rows):
            console.print(note, style="dim", highlight=False)
        console.print()
    for name, why in report.failures.items():
        console.print(f"[red]{name} failed[/]: {why}", highlight=False)


def write(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def read(path: Path) -> Report:
    return msgspec.json.decode(path.read_bytes(), type=Report)
