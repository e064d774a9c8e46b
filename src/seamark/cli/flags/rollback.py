"""`seamark flags rollback`: the files of an earlier version become the newest version."""

from __future__ import annotations

from typing import Any

import click

from seamark.cli.exits import Exit
from seamark.cli.flags.push import say
from seamark.cli.flags.remote import Remote, if_version, namespace_option, place_of, server_options
from seamark.cli.output import Output


@click.command()
@click.argument("version", type=click.IntRange(min=1), metavar="VERSION")
@namespace_option
@click.option("--if-version", "expect", type=int, metavar="N", help="Only if the current version is N.")
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or text. [text on a terminal]")
def rollback(version: int, place: str | None, json: bool | None, **more: Any) -> int:
    """Make the files of an earlier version the newest version. History is kept: the number goes up. Ends with 1 when the current
    version is not the one that --if-version names."""
    where = place_of(place)
    with Remote(more["url"], more["token_file"]) as remote:
        path, headers = f"{where.path}/manifest/rollback", if_version(more["expect"])
        made = remote.json("POST", path, json={"version": version}, headers=headers)
    say(Output(json=json), str(where), made)
    return Exit.OK
