"""`seamark flags lint`: everything that there is to say about a manifest, without a server."""

from __future__ import annotations

import click

from seamark.cli.exits import Exit
from seamark.cli.flags.tree import check, show
from seamark.cli.output import Output


@click.command()
@click.argument("path", metavar="FOLDER|ARCHIVE")
@click.option(
    "--slug", metavar="SLUG", help="The namespace that it is for. [what it names itself, or the folder's name]"
)
@click.option("--deny-warnings", is_flag=True, help="End with 1 also when there are only warnings.")
@click.option("--json/--text", "json", default=None, help="JSON lines or text. [text on a terminal]")
def lint(path: str, slug: str | None, deny_warnings: bool, json: bool | None) -> int:
    """Check a manifest on this machine, as the server would. Ends with 1 when it has errors."""
    checked = check(path, slug)
    linted, output = checked.linted, Output(json=json)
    show(output, linted.diagnostics)
    if output.json:
        counts = {"errors": len(linted.errors), "warnings": len(linted.warnings), "infos": len(linted.infos)}
        output.line({"event": "linted", "passed": linted.passed, "files": len(checked.files), **counts})
    return Exit.FINDINGS if checked.fails(deny_warnings=deny_warnings) else Exit.OK
