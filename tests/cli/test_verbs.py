"""Verbs, and verbs of verbs: all can be found, and each explains itself."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from seamark.cli.main import seamark
from seamark.cli.verbs import Verbs


def commands(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)


ALL = dict(commands(seamark))


def test_groups_name_the_verbs_that_they_have() -> None:
    assert {("serve",), ("flags",), ("flags", "bootstrap")} <= set(ALL)
    for command in ALL.values():
        if isinstance(command, Verbs):
            shown = CliRunner().invoke(command, ["--help"]).output
            assert all(verb.name in shown and verb.summary in shown for verb in command.rows)


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_verb_explains_itself(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(seamark, [*words, "--help"], prog_name="seamark")
    assert shown.exit_code == 0
    assert f"seamark {' '.join(words)}" in shown.output
    assert ALL[words].help


def test_a_verb_that_there_is_not() -> None:
    for words in (["sevre"], ["flags", "pusch"]):
        assert CliRunner().invoke(seamark, words).exit_code == 2
