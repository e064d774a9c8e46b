"""`seamark verify`: walk a data directory, and say everything that is not as it should be."""

from __future__ import annotations

import click
import msgspec

from seamark.cli.exits import Exit
from seamark.cli.options import load_settings
from seamark.cli.output import Output
from seamark.errors import BadInput


@click.command()
@click.option("--data", metavar="PATH", help="The data directory to walk. [the setting `data`]")
@click.option("--config", "config_file", metavar="FILE", help="Settings file, as for serve.")
@click.option("--json/--text", "json", default=None, help="JSON lines or text. [text on a terminal]")
def verify(data: str | None, config_file: str | None, json: bool | None) -> int:
    """Check everything in a data directory that is in use: checksums, density, counts, marks, indexes. Only reads. Ends
    with 0 when all is well, with 1 when there are findings, with 2 when there is no readable store."""
    from seamark.log.engines import directory
    from seamark.log.verify import verify as walk

    path = load_settings(config_file, {"data": data}).data
    if not (path / directory.DATA_NAME).is_file():
        raise BadInput(f"{path} holds no store; accepted: the data directory of a server")
    output = Output(json=json)
    report = walk(path)
    for finding in report.findings:
        facts = msgspec.structs.asdict(finding)
        output.line({"event": "finding", **facts}) if output.json else output.say(f"{finding}", style="bold red")
    return Exit.FINDINGS if report.findings else Exit.OK
