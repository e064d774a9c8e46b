"""The figures of `docs/performance.md`, made from results on disk: `python -m seamark.bench.page RESULTS PAGE`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from seamark.bench import row
from seamark.bench.row import Report, Row, quantity
from seamark.bench.scenario import SCENARIOS

BEGIN = "<!-- figures: made by python -m seamark.bench.page, do not edit -->"
END = "<!-- end of figures -->"


def reports(results: Path) -> list[Report]:
    """What lies in a directory of results, in the order of the scenarios."""
    paths = [results / f"{scenario.name}.json" for scenario in SCENARIOS]
    return [row.read(path) for path in paths if path.exists()]


def figures(found: Sequence[Report]) -> str:
    """The section between the two marks."""
    parts = [BEGIN, "## Figures", *machine_lines(found)]
    for report in found:
        for scenario in dict.fromkeys(each.scenario for each in report.rows):
            parts += section(scenario, [each for each in report.rows if each.scenario == scenario])
    return "\n\n".join([*parts, END])


def machine_lines(found: Iterable[Report]) -> list[str]:
    """Each machine once; results may come from several runs."""
    seen = dict.fromkeys(
        ", ".join(f"{name} {value}" for name, value in report.machine.items() if name != "sync_us") for report in found
    )
    return [f"Measured on: {text}." for text in seen]


def section(scenario: str, rows: Sequence[Row]) -> list[str]:
    """One scenario: its table, then its notes."""
    names = list(dict.fromkeys(name for each in rows for name in each.parameters))
    references = list(dict.fromkeys(each.reference_name for each in rows if each.reference_name))
    heads = [*names, "value", "unit", "reference", "ratio", "target"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cells(each, names)) + " |" for each in rows]
    notes = [note.strip() for note in row.notes(rows)]
    parts = [f"### {scenario.capitalize()}"]
    if references:
        parts.append(f"Reference: {'; '.join(references)}.")
    parts.append("\n".join(lines))
    if notes:
        parts.append("\n".join(f"- {note}" for note in notes))
    return parts


def cells(each: Row, names: Sequence[str]) -> list[str]:
    verdict = {True: "met: ", False: "**missed**: ", None: ""}[each.met]
    return [
        *(str(each.parameters.get(name, "")) for name in names),
        quantity(each.value),
        each.unit,
        "" if each.reference is None else quantity(each.reference),
        "" if each.ratio is None else f"{each.ratio:.2f}",
        f"{verdict}{each.target}" if each.target else "",
    ]


def renewed(page: str, section_text: str) -> str:
    """The page with its figures replaced, or added at its end."""
    if BEGIN not in page:
        return page.rstrip("\n") + "\n\n" + section_text + "\n"
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + section_text + after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    text = renewed(given.page.read_text(encoding="utf-8"), figures(reports(given.results)))
    given.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
