"""Groups of verbs: the command itself, and verbs that have verbs of their own. One is imported only when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import click


class Verb(NamedTuple):
    """One row: the verb's module is named after it, in the package of its group, and holds a command of the same name, or
    of another where Python has one of that name itself."""

    name: str
    summary: str
    holds: str = ""


class Verbs(click.Group):
    """A group that knows its verbs by name and imports one on demand."""

    def __init__(self, *, rows: Sequence[Verb], package: str, **more: Any) -> None:
        super().__init__(**more)
        self.rows = tuple(rows)
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb.name for verb in self.rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = next((row for row in self.rows if row.name == cmd_name), None)
        if verb is None:
            return None
        name = verb.holds or verb.name
        command = getattr(importlib.import_module(f"{self._package}.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb.name, verb.summary) for verb in self.rows])
