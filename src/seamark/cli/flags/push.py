"""`seamark flags push`: a manifest becomes the next version of a namespace."""

from __future__ import annotations

from typing import Any

import click

from seamark.cli.exits import Exit
from seamark.cli.flags import tree
from seamark.cli.flags.remote import Remote, if_version, namespace_option, place_of, server_options
from seamark.cli.output import Output, counted
from seamark.errors import LintFailed
from seamark.manifest.archive import pack
from seamark.manifest.diagnostic import Diagnostic


@click.command()
@click.argument("path", metavar="FOLDER|ARCHIVE")
@namespace_option
@click.option(
    "--if-version", "expect", type=int, metavar="N", help="Only if the current version is N; 0: if there is none."
)
@click.option("--deny-warnings", is_flag=True, help="Push nothing when there are warnings.")
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or text. [text on a terminal]")
def push(path: str, place: str | None, deny_warnings: bool, json: bool | None, **more: Any) -> int:
    """Check a manifest here, and push it as a whole. Ends with 1 when it has errors, or when the current version is not the one
    that --if-version names; then nothing was changed."""
    where, output = place_of(place), Output(json=json)
    checked = tree.check(path, where.namespace)
    if checked.fails(deny_warnings=deny_warnings):
        tree.show(output, checked.linted.diagnostics)
        return Exit.FINDINGS
    with Remote(more["url"], more["token_file"]) as remote:
        sent = {"archive": (f"{where.namespace}.tar.gz", pack(checked.files), "application/gzip")}
        try:
            made = remote.json("PUT", f"{where.path}/manifest", files=sent, headers=if_version(more["expect"]))
        except LintFailed as error:  # this server knows more than this command
            if "lint" not in error.fields:
                raise
            tree.show(output, [Diagnostic(**one) for found in error.fields["lint"].values() for one in found])
            return Exit.FINDINGS
    say(output, str(where), made)
    return Exit.OK


def say(output: Output, where: str, made: dict[str, Any]) -> None:
    """What became the current version."""
    warnings = len(made["lint"]["warnings"])
    if output.json:
        counts = {name: made[name] for name in ("version", "flag_count", "segment_count", "uploaded_at")}
        output.line({"event": "pushed", "namespace": where, **counts, "warnings": warnings})
        return
    parts = [counted(made["flag_count"], "flag"), counted(made["segment_count"], "segment")]
    if warnings:
        parts.append(counted(warnings, "warning"))
    output.say(f"{where} is at version {made['version']}: {', '.join(parts)}")
