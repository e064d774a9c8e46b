"""The group of verbs about flags."""

from __future__ import annotations

from importlib import import_module

import click

from seamark.cli.flags import VERBS, flags


def test_every_row_has_its_module() -> None:
    context = click.Context(flags)
    for verb in VERBS:
        assert import_module(f"seamark.cli.flags.{verb.holds or verb.name}").__doc__
        assert flags.get_command(context, verb.name) is not None
