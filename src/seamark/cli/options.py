"""Command-line options made from the settings rows: a setting that has a row has a flag."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from seamark import config, limits
from seamark.kinds import Secret

F = TypeVar("F", bound=Callable[..., Any])


def settings_options(command: F) -> F:
    """Give `command` one option for every setting that has a flag, and `--config`. Values stay text here: the rows
    parse them, so that a wrong value is refused in the same words wherever it stands."""
    for row in reversed(config.SETTINGS):
        if "flag" not in row.where:
            continue
        if isinstance(row.default, bool):
            command = click.option(f"{row.flag}/--no-{row.flag[2:]}", row.name, default=None, help=row.why)(command)
        else:
            why = f"{row.why} [{shown_default(row)}]"
            command = click.option(row.flag, row.name, metavar=shown_kind(row), help=why)(command)
    option = click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help=f"Settings file, TOML or YAML by its extension. [{config.DEFAULT_FILE} where present]",
    )
    return option(command)


def shown_kind(row: config.Setting) -> str:
    """What goes in the place of the value: the words themselves where there are only a few."""
    return row.kind.accepts.replace(" or ", "|") if row.kind.name == "choice" else row.kind.name.upper()


def shown_default(row: config.Setting) -> str:
    """The default of a row in the words of its flag."""
    if row.default is None or row.default == "" or isinstance(row.default, Secret):
        return "none"
    if isinstance(row.default, bool):
        return "true" if row.default else "false"
    if row.kind.name == "size" and isinstance(row.default, int):
        return _shown_size(row.default)
    return f"{row.default:g}" if isinstance(row.default, float) else str(row.default)


def _shown_size(count: int) -> str:
    for unit, size in (("GiB", limits.GIB), ("MiB", limits.MIB), ("KiB", limits.KIB)):
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def load_settings(config_file: str | None, flags: dict[str, str | bool | None]) -> config.Settings:
    """The settings of this process: flags, its environment, and the file."""
    file = None if config_file is None else Path(config_file)
    return config.load(flags, environ=os.environ, directory=Path(), file=file)
