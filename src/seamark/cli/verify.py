"""`seamark verify`: walk a data directory, and say everything that is not as it should be."""

from __future__ import annotations

from pathlib import Path

import click

from seamark.cli.exits import Exit
from seamark.cli.options import load_settings
from seamark.cli.output import Output
from seamark.errors import BadInput
from seamark.log.engines import directory
from seamark.log.findings import Report
from seamark.log.verify import verify as walk


@click.command()
@click.option("--data", metavar="PATH", help="The data directory to walk. [the setting `data`]")
@click.option("--config", "config_file", metavar="FILE", help="Settings file, as for serve.")
@click.option("--json/--text", "json", default=None, help="JSON lines or text. [text on a terminal]")
def verify(data: str | None, config_file: str | None, json: bool | None) -> int:
    """Check everything in a data directory that is in use: structure, checksums, density, counts, marks, indexes. Only
    reads; beside a running server it checks the state after one commit. Ends with 0 when all is well, with 1 when there
    are findings, with 2 when there is no store to look at."""
    path = load_settings(config_file, {"data": data}).data
    if not any((path / name).exists() for name in (directory.DATA_NAME, directory.MARK_NAME)):
        raise BadInput(f"{path} holds no store; accepted: the data directory of a server")
    output = Output(json=json)
    with output.progress("streams") as step:
        report = walk(path, progress=step)
    _print(output, path, report)
    return Exit.FINDINGS if report.findings else Exit.OK


def _print(output: Output, path: Path, report: Report) -> None:
    for finding in report.findings:
        if output.json:
            output.line({"event": "finding", "stream": finding.stream, "seq": finding.seq, "what": finding.what})
        else:
            output.say(str(finding), style="bold red")
    if output.json:
        facts = {"streams": report.streams, "records": report.records, "findings": len(report.findings)}
        output.line({"event": "verified", "path": str(path), "at_rest": report.at_rest, **facts})
        return
    counted = f"{report.streams:,} streams with {report.records:,} records"
    beside = "" if report.at_rest else "; a server is running on it, so the file's structure was not walked"
    found = f"{len(report.findings)} findings" if report.findings else "everything is as it should be"
    output.say(f"{path}: {counted}: {found}{beside}", style="red" if report.findings else "green")
