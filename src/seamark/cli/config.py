"""`seamark config`: every setting, its value, and where the value came from."""

from __future__ import annotations

from pathlib import Path

import click

from seamark import config as settings_rows
from seamark.cli.options import load_settings, settings_options
from seamark.cli.output import Cell, Output
from seamark.kinds import Secret, Value


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
    rows += [(f"notify.{key}", "(read by the notify surface)", "file", "") for key in sorted(settings.notify)]
    Output(json=json).table(("name", "value", "source", "where"), rows)


def _shown(value: Value) -> Cell:
    if isinstance(value, Secret):
        return repr(value)
    return str(value) if isinstance(value, Path) else value
