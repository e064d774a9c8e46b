"""`seamark flags versions`: what was pushed to a namespace, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from seamark.cli.exits import Exit
from seamark.cli.flags.remote import Remote, namespace_option, place_of, server_options
from seamark.cli.output import Output

FACTS = (
    "version",
    "uploaded_at",
    "uploaded_by",
    "flag_count",
    "segment_count",
    "restored_version",
    "files_available",
)


@click.command()
@namespace_option
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", default=20, show_default=True, help="At most so many."
)
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or a table. [a table on a terminal]")
def versions(place: str | None, limit: int, json: bool | None, **more: Any) -> int:
    """List the versions of a manifest, the newest first."""
    with Remote(more["url"], more["token_file"]) as remote:
        rows = [*remote.rows(f"{place_of(place).path}/manifest/versions", "versions", most=limit)]
    Output(json=json).listing(
        rows,
        FACTS,
        ("version", "uploaded", "by", "flags", "segments", "note"),
        lambda row: (*(row[name] for name in FACTS[:5]), _note(row)),
    )
    return Exit.OK


def _note(row: Mapping[str, Any]) -> str:
    restored = [] if row["restored_version"] is None else [f"as {row['restored_version']}"]
    return ", ".join([*restored, *([] if row["files_available"] else ["files are gone"])])
