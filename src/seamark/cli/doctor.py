"""`seamark doctor`: is this machine fit for a server, and if not, what to do."""

from __future__ import annotations

import os

import click

from seamark import config
from seamark.cli.checks.disk import check_disk
from seamark.cli.checks.host import check_clock, check_open_files, check_python
from seamark.cli.checks.outcome import Outcome
from seamark.cli.checks.reach import check_java, check_nats, check_port, listening_on
from seamark.cli.checks.settings import judge_settings
from seamark.cli.exits import Exit
from seamark.cli.options import load_settings, settings_options
from seamark.cli.output import Output
from seamark.clock import SystemClock

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@click.command()
@settings_options
@click.option("--nats-url", metavar="URL", help="Also check that a NATS server with JetStream answers there.")
@click.option("--json/--text", "json", default=None, help="JSON lines or text. [text on a terminal]")
def doctor(config_file: str | None, nats_url: str | None, json: bool | None, **flags: str | bool | None) -> int:
    """Check this machine for a server with these settings. Each line is ok, warn or fail, with what to do. Ends with 1
    when a check failed."""
    settings = load_settings(config_file, flags)
    output = Output(json=json)
    worst = Exit.OK
    for outcome in examine(settings, nats_url):
        _print(output, outcome)
        if outcome.level == "fail":
            worst = Exit.FINDINGS
    return worst


def examine(settings: config.Settings, nats_url: str | None) -> list[Outcome]:
    """Every check, in the order in which a start would meet the problems."""
    clock = SystemClock()
    outcomes = [*check_python(), judge_settings(settings)]
    if settings.engine == "embedded":
        outcomes += check_disk(settings.data, clock)
    outcomes += check_clock(clock, settings.data)
    outcomes += check_open_files()
    for host, port in listening_on(settings):
        outcomes += check_port(host, port)
    outcomes += check_java(os.environ)
    if nats_url is not None:
        outcomes += check_nats(nats_url)
    return outcomes


def _print(output: Output, outcome: Outcome) -> None:
    if output.json:
        output.line(outcome._asdict())
        return
    output.say(f"{outcome.level:<4}  {outcome.check}: {outcome.found}", style=STYLES[outcome.level])
    if outcome.remedy:
        output.say(f"      -> {outcome.remedy}")
