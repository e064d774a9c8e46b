"""Commands that the docs name exist: make targets, verbs, their options, and settings."""

from __future__ import annotations

import os
import re
import stat
import subprocess

import click
import pytest

from seamark import config
from seamark.cli.main import VERBS, seamark
from tests.docs.markdown import ROOT, page_paths

PROSE = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in page_paths()}
WRITTEN = {name: text for name, text in PROSE.items() if "Made by docs/generate.py" not in text}


def options_of(words: list[str]) -> set[str]:
    """Of the verb that a command line names, which may be one of a group."""
    command: click.Command = seamark
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, words
        command = found
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {target for text in WRITTEN.values() for target in re.findall(r"[`$] ?make ([a-z]+)", text)}
    assert {"run", "test", "check", "bench", "docs"} <= named
    assert named <= targets


def test_verbs_and_their_options_exist() -> None:
    verbs = {verb.name for verb in VERBS}
    called = [
        (name, verb, rest)
        for name, text in WRITTEN.items()
        for verb, rest in re.findall(
            r"(?:^|`|\$ )(?:[A-Z_]+=\S+ )?seamark ([a-z]+)([^`\n#|]*)", text, flags=re.MULTILINE
        )
    ]
    assert {verb for _, verb, _ in called} == verbs
    for name, verb, rest in called:
        for option in re.findall(r"(?<!\S)(--[a-z-]+)", rest):
            assert option in options_of([verb, *rest.split()]), f"{name}: seamark {verb}{rest} has no {option}"


def test_settings_exist() -> None:
    known = {row.env for row in config.SETTINGS} | {
        config.CONFIG_ENV,
        "SEAMARK_PROT",
    }  # the last one is the example of a slip
    for name, text in WRITTEN.items():
        assert set(re.findall(r"\bSEAMARK_[A-Z_]*[A-Z]", text)) <= known, name


@pytest.mark.parametrize("script", [".ci/run"])
def test_scripts_can_be_run(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & stat.S_IXUSR
    assert os.access(path, os.X_OK)
    subprocess.run(["bash", "-n", str(path)], check=True, timeout=30)
    assert "make test" in path.read_text(encoding="utf-8")
