from __future__ import annotations

from pathlib import Path

from seamark.bench import page, row
from seamark.bench.row import Report, Row, against, aim

ROOT = Path(__file__).resolve().parent.parent.parent


def a_report() -> Report:
    found = Row(scenario="resume", parameters={"backlog": 10}, value=5.0, unit="records/s", notes="a note")
    return Report(
        machine={"cores": 2}, quick=False, rows=[aim(against(found, "bare", 10.0), ">= 9", False)], failures={}
    )


def test_figures_are_a_table_with_its_notes() -> None:
    text = page.figures([a_report()])
    assert "| backlog | value | unit | reference | ratio | target |" in text
    assert "| 10 | 5 | records/s | 10 | 0.50 | **missed**: >= 9 |" in text
    assert "- backlog=10: a note" in text
    assert "Reference: bare." in text


def test_a_page_keeps_everything_else() -> None:
    first = page.renewed("# Performance\n", page.figures([a_report()]))
    again = page.renewed(first + "\nAfter.\n", page.figures([]))
    assert again.startswith("# Performance\n\n" + page.BEGIN)
    assert again.endswith(page.END + "\n\nAfter.\n")
    assert "records/s" not in again


def test_results_are_read_in_the_order_of_the_scenarios(tmp_path: Path) -> None:
    for name in ("resume", "append"):
        row.write(a_report(), tmp_path / f"{name}.json")
    assert len(page.reports(tmp_path)) == 2


def test_the_page_in_the_docs_is_made_from_the_results_in_the_repository() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert page.renewed(text, page.figures(page.reports(ROOT / "bench" / "results"))) == text


def test_quick_results_are_never_published() -> None:
    found = page.reports(ROOT / "bench" / "results")
    assert not [report for report in found if report.quick or report.failures]
