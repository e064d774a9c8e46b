"""Flags are made from the rows, all of them and nothing else."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from seamark import config
from seamark.cli.options import load_settings, settings_options, shown_default
from seamark.cli.serve import serve


def test_every_row_with_a_flag_is_an_option_of_serve() -> None:
    names = {option for parameter in serve.params for option in parameter.opts}
    assert names == {row.flag for row in config.SETTINGS if "flag" in row.where} | {"--config"}
    assert "--api-keys" not in names


def test_the_words_of_a_choice_are_shown() -> None:
    with click.Context(serve) as context:
        text = " ".join(serve.get_help(context).split())
    assert "--log-level debug|info|warning|error" in text
    assert "--engine embedded|memory" in text
    assert "CHOICE" not in text


def test_flags_that_were_not_given_stay_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEAMARK_DEMO", "true")
    seen: dict[str, config.Settings] = {}

    @click.command()
    @settings_options
    def probe(config_file: str | None, **flags: str | bool | None) -> None:
        seen["settings"] = load_settings(config_file, flags)

    probe.main(["--grace-seconds", "3s"], standalone_mode=False)
    assert seen["settings"].demo is True
    assert seen["settings"].grace_seconds == 3.0
    probe.main(["--no-demo"], standalone_mode=False)
    assert seen["settings"].demo is False
    assert seen["settings"].sources["demo"].place == "flag"


def test_defaults_are_shown_as_a_flag_would_be_written(tmp_path: Path) -> None:
    for row in config.SETTINGS:
        if "flag" not in row.where or shown_default(row) == "none":
            continue
        value: str | bool = shown_default(row)
        if isinstance(row.default, bool):
            value = value == "true"
        assert config.load({row.name: value}, directory=tmp_path).value(row.name) == row.default
