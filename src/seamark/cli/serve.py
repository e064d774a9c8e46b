"""`seamark serve`: settings in, a running server out. What a server is, is wired in `seamark.http.app`."""

from __future__ import annotations

import sys

import click

from seamark import config
from seamark.cli.checks.reach import check_port, listening_on
from seamark.cli.checks.settings import check_settings, is_open
from seamark.cli.options import load_settings, settings_options
from seamark.cli.output import Output, mute_stdout
from seamark.errors import Fault
from seamark.telemetry import events, logs


@click.command()
@settings_options
def serve(config_file: str | None, **flags: str | bool | None) -> int:
    """Run the server until it is told to stop (Ctrl-C or SIGTERM)."""
    settings = load_settings(config_file, flags)
    check_settings(settings)
    style = ("text" if sys.stderr.isatty() else "json") if settings.log_style == "auto" else settings.log_style
    logs.configure(level=settings.log_level, style=style)
    _say_what_is_loose(settings)
    _look_at_ports(settings)
    from seamark.http import app  # late, so that a bad setting is told before everything is loaded

    return app.serve(settings, on_ready=lambda base_url: _welcome(settings, base_url))


def _say_what_is_loose(settings: config.Settings) -> None:
    """A notify server ignores keys that it does not know, and event types if it is told to, and so do we, but not silently.
    Nor is a door left open silently."""
    if is_open(settings):
        logs.logger("cli").warning(events.SERVER_OPEN, host=settings.host)
    if settings.notify:
        from seamark.notify.settings import permitted, unread  # late, as below

        for key in unread(settings.notify):
            logs.logger("cli").warning(events.SETTING_IGNORED, key=key)
        if event_types := permitted(settings):
            logs.logger("cli").warning(events.SCHEMA_NOT_STRICT, event_types=event_types)


def _look_at_ports(settings: config.Settings) -> None:
    """A taken port is the most frequent surprise: say it in one line with the remedy, before a store is opened."""
    for host, port in listening_on(settings):
        for outcome in check_port(host, port):
            if outcome.level == "fail":
                raise Fault(f"{outcome.found}; {outcome.remedy}")


def _welcome(settings: config.Settings, base_url: str) -> None:
    output = Output()
    try:
        if output.json and not settings.demo:
            output.line({"event": "ready", "url": base_url})
            return
        for line in welcome_lines(settings, base_url):
            output.say(line)
        sys.stdout.flush()
    except BrokenPipeError:
        mute_stdout()  # nobody listens to what we say; the server is there all the same


def welcome_lines(settings: config.Settings, base_url: str) -> list[str]:
    """What a person wants to know first: where the console is, and three lines to try."""
    curl = "curl -H 'Authorization: Bearer YOUR_KEY'" if settings.api_keys else "curl"
    name = "demo" if settings.demo else "hello"
    kept = "Everything is forgotten when it stops (engine memory)."
    if settings.engine == "embedded":
        kept = f"Data is kept in {settings.data} (engine embedded: an acknowledged append is on disk)."
    return [
        "",
        f"Seamark is ready. Console: {base_url}/"
        + (f" (public: {public}/)" if (public := settings.public_url) else ""),
        kept,
        *([f"Feature flags: the superadmin's token is in {file}."] if (file := settings.superadmin_token_file) else []),
        "",
        "Try, in another terminal:",
        f"""  {curl} {base_url}/raw/{name} -d '{{"records":[{{"data":{{"hello":"world"}}}}]}}'""",
        f"""  {curl} "{base_url}/raw/{name}/records?after=0&limit=5\"""",
        f"""  {curl} -N "{base_url}/raw/{name}/watch?after=0\"""",
        "",
    ]
