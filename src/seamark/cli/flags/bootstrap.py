"""`seamark flags bootstrap`: the first superadmin token, made on the data directory of a server that does not run."""

from __future__ import annotations

import asyncio

import click

from seamark import config
from seamark.access.tokens import Token
from seamark.cli.flags.tokens import say_minted
from seamark.cli.options import load_settings
from seamark.cli.output import Output
from seamark.clock import SystemClock
from seamark.errors import BadInput, StoreLocked
from seamark.telemetry import logs


@click.command()
@click.option("--data", metavar="PATH", help="The data directory of the server. [the setting `data`]")
@click.option("--config", "config_file", metavar="FILE", help="Settings file, as for serve.")
@click.option("--another", is_flag=True, help="Make one although there is one: for when the secret was lost.")
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def bootstrap(data: str | None, config_file: str | None, another: bool, json: bool | None) -> int:
    """Make the first superadmin token of an installation, and print its secret, which is shown this once. With it tenants,
    namespaces and further tokens are made. Works on the data directory of a server that does not run; ends with 1 when there is
    a superadmin token already."""
    settings = load_settings(config_file, {"data": data})
    if settings.engine == "memory":
        raise BadInput("engine memory keeps no tokens; start the server with --superadmin-token-file instead")
    logs.configure(level="warning", style="text")
    token, secret = asyncio.run(_made(settings, another=another))
    say_minted(Output(json=json), token.id, token.type, secret)
    return 0


async def _made(settings: config.Settings, *, another: bool) -> tuple[Token, str]:
    from seamark.flags import superadmin  # late, so that the command starts without the server's libraries
    from seamark.flags.directory import Directory
    from seamark.log.engines.embedded import open_embedded
    from seamark.telemetry.metrics import Metrics

    clock = SystemClock()
    try:
        log = open_embedded(settings.data, clock, Metrics())
    except StoreLocked as error:
        remedy = "stop it first, or start it with --superadmin-token-file, or make tokens with the one that there is"
        raise StoreLocked(f"a server is running here: {error.message}; {remedy}", **error.fields) from None
    try:
        directory = Directory(log, clock)
        await directory.load()
        return await superadmin.bootstrap(directory, another=another)
    finally:
        await log.close()
