"""`seamark config`: every setting, its value, and where the value came from."""

from __future__ import annotations

from pathlib import Path

import click

from seamark import config as settings_rows
from seamark import contract
from seamark.cli.options import load_settings, settings_options
from seamark.cli.output import Cell, Output
from seamark.kinds import Secret, Value

TABLES = ("notification_schema", "auth.admin_roles", "ecpds.servers")  # what a notify server's file has beside values


@click.command()
@settings_options
@click.option("--json/--table", "json", default=None, help="JSON lines or a table. [a table on a terminal]")
def config(config_file: str | None, json: bool | None, **flags: str | bool | None) -> None:
    """Show every setting with its value and its source, as a server started with the same flags, environment and
    directory would see it. Secrets are masked."""
    settings = load_settings(config_file, flags)
    rows = [
        (row.name, _shown(settings.value(row.name)), settings.sources[row.name].place, settings.sources[row.name].name)
        for row in settings_rows.SETTINGS
    ]
    for key in contract.KEYS:
        if not key.setting:
            source = settings.sources[key.name]
            rows.append((key.name, _shown(settings.contract[key.name]), source.place, source.name))
    where = settings.sources["notify"]
    given = [name for name in TABLES if contract.at(settings.notify, name) is not None]
    rows += [(name, "(a table, read by the notify surface)", where.place, where.name) for name in given]
    Output(json=json).table(("name", "value", "source", "where"), rows)


def _shown(value: Value) -> Cell:
    if isinstance(value, Secret):
        return repr(value)
    return str(value) if isinstance(value, Path) else value
