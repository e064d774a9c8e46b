"""JSON lines in a pipe, a table for people; brackets and wide values survive both."""

from __future__ import annotations

import io
import json

from seamark.cli.output import Output, Step


def test_rows_in_a_pipe_are_json_lines() -> None:
    stream = io.StringIO()
    Output(stdout=stream).table(("name", "value"), [("a", 1), ("b", None), ("c", "x|[red]y")])
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"name": "a", "value": 1},
        {"name": "b", "value": None},
        {"name": "c", "value": "x|[red]y"},
    ]


def test_a_table_wraps_and_never_cuts_off() -> None:
    stream = io.StringIO()
    Output(json=False, stdout=stream).table(("name", "value"), [("on", True), ("half", 0.5), ("long", "z" * 500)])
    shown = stream.getvalue()
    assert "true" in shown
    assert "0.5" in shown
    assert shown.count("z") == 500


def test_what_was_listed_is_facts_for_programs_and_columns_for_people() -> None:
    rows = [{"id": 1, "kind": "red", "more": 7}, {"id": 2, "kind": "blue", "more": 8}]
    for is_json in (True, False):
        stream = io.StringIO()
        output = Output(json=is_json, stdout=stream)
        output.listing(rows, ("id", "kind"), ("what",), lambda row: (f"{row['kind']}!",))
        lines = stream.getvalue().splitlines()
        if is_json:
            assert [json.loads(line) for line in lines] == [{"id": 1, "kind": "red"}, {"id": 2, "kind": "blue"}]
        else:
            assert [line.strip() for line in lines] == ["what", "red!", "blue!"]


def test_text_is_printed_as_it_is() -> None:
    stream = io.StringIO()
    Output(json=False, stdout=stream).say("[bold]not markup[/bold] " + "w" * 300)
    assert stream.getvalue() == "[bold]not markup[/bold] " + "w" * 300 + "\n"


def test_progress_in_a_pipe_is_silent() -> None:
    stream = io.StringIO()
    with Output(stdout=stream).progress("walking") as step:
        assert type(step) is Step
        step(1, 2)
    assert stream.getvalue() == ""
