"""Runs scenarios one after the other, each in a process of its own, shows a table and writes JSON."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from seamark.bench import drain, machine, row
from seamark.bench.row import Report, Row
from seamark.bench.scenario import BY_NAME, SCENARIOS, Scenario
from seamark.errors import BadInput

FAILED = 1
PIPED_COLUMNS = 150
STDERR_CHARACTERS_SHOWN = 1_500


class ScenarioFailed(Exception):
    """A scenario ended without its rows."""


def run(names: Sequence[str], *, quick: bool, out: Path | None, console: Console | None = None) -> int:
    """Run the named scenarios, all of them when none is named; exit code 0 when each came to its end.

    `out` is a directory: every scenario leaves `<name>.json` there.
    """
    scenarios = choose(names)
    console = console or (Console() if sys.stdout.isatty() else Console(width=PIPED_COLUMNS))
    where = machine.directory()
    facts = {**machine.describe(where), "load client": drain.kind()}
    report = Report(machine=facts, quick=quick, rows=[], failures={})
    for scenario in scenarios:
        alone = Report(machine=facts, quick=quick, rows=[], failures={})
        with console.status(f"{scenario.name}: {scenario.about}"):
            try:
                alone.rows = measure(scenario, quick=quick, where=where)
            except ScenarioFailed as error:
                alone.failures[scenario.name] = str(error)
        report.rows += alone.rows
        report.failures |= alone.failures
        if out is not None:
            row.write(alone, out / f"{scenario.name}.json")
    row.show(report, console)
    return FAILED if report.failures else 0


def choose(names: Sequence[str]) -> list[Scenario]:
    """The scenarios by name, in the order of the list."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise BadInput(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(BY_NAME)}", names=unknown)
    return [scenario for scenario in SCENARIOS if not names or scenario.name in names]


def measure(scenario: Scenario, *, quick: bool, where: Path) -> list[Row]:
    """One scenario in its own process and its own directory, ended with everything it started when it takes too long."""
    with tempfile.TemporaryDirectory(prefix="seamark-bench-", dir=where, ignore_cleanup_errors=True) as folder:
        rows = Path(folder) / "rows.json"
        stores = Path(folder) / "stores"
        stores.mkdir()
        command = [
            sys.executable,
            "-m",
            "seamark.bench.scenario",
            scenario.name,
            "--where",
            str(stores),
            "--out",
            str(rows),
        ]
        with subprocess.Popen(
            [*command, *(["--quick"] if quick else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as child:
            try:
                said, _ = child.communicate(timeout=scenario.seconds_max)
            except subprocess.TimeoutExpired:
                raise ScenarioFailed(f"not done after {scenario.seconds_max} s") from None
            finally:
                _end_session(child)
        if child.returncode != 0 or not rows.exists():
            raise ScenarioFailed(said.decode(errors="replace").strip()[-STDERR_CHARACTERS_SHOWN:])
        return msgspec.json.decode(rows.read_bytes(), type=list[Row])


def _end_session(child: subprocess.Popen[bytes]) -> None:
    """The session belongs to the scenario alone: whatever server is left in it ends with it."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
