"""Make docs/reference/ and the index of decisions from their sources: `make docs`. A test fails when a page is stale.

python docs/generate.py           write the pages
python docs/generate.py --check   only say which are stale; ends with 1 if any is
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from seamark import config, contract, errors, limits
from seamark.cli.exits import Exit
from seamark.cli.main import seamark
from seamark.cli.options import shown_default
from seamark.clock import SystemClock
from seamark.flags.surface import OPERATIONS as FLAGS
from seamark.http.app import Assembly
from seamark.kinds import Secret
from seamark.manifest.diagnostic import CODES
from seamark.notify.docs import OPERATIONS as NOTIFY
from seamark.notify.measures import SERIES as NOTIFY_SERIES
from seamark.raw.docs import OPERATIONS as RAW
from seamark.telemetry import logs
from seamark.telemetry.events import EVENTS
from seamark.telemetry.metrics import METRICS, Metric
from seamark.topics.measures import SERIES
from seamark.topics.surface import OPERATIONS as TOPICS
from seamark.wire.exchange import Route

DOCS = Path(__file__).resolve().parent
MADE = "<!-- Made by docs/generate.py from {table}. Change the table, then run `make docs`. -->"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; pipes in cells are escaped."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def page(title: str, source: str, *parts: str) -> str:
    """A whole page. It says where it comes from, so that nobody edits it by hand."""
    return "\n\n".join([f"# {title}", MADE.format(table=f"`{source}`"), *parts]) + "\n"


def code(text: str) -> str:
    return f"`{text}`"


def settings() -> str:
    rows = []
    for row in config.SETTINGS:
        flag = code(row.flag) if "flag" in row.where else "no flag"
        environment = ", ".join(code(name) for name in (row.env, *row.aliases))
        rows.append([code(row.name), row.kind.accepts, code(shown_default(row)), flag, environment, row.why])
    return page(
        "Settings",
        "src/seamark/config.py",
        "A value comes from the first of these places that has it: the flag, the environment, the settings file, the "
        f"default. The settings file is `{config.DEFAULT_FILE}` in the working directory, or the one that `--config FILE` "
        f"or `{config.CONFIG_ENV}` names: TOML when it ends in `.toml`, YAML when it ends in `.yaml` or `.yml`, with the "
        "names of this table at its top level. `seamark config` shows every value and where it came from.",
        "A name that is not in this table, a value of the wrong type, or an unknown `SEAMARK_*` variable stops the start "
        "with a message that says the name, the place, and what is accepted. In a file, numbers and booleans are written "
        "as such: a quoted number is refused.",
        table(["name", "accepts", "default", "flag", "environment", "why"], rows),
        "## The file of a notify server",
        "The file may also be that of a notify server, or hold its keys beside ours: it is taken as it stands. Keys with a "
        "setting in the table give it its value, unless that setting is given by its own name; the others belong to the notify "
        "surface. Each can be overridden by a variable, which wins over every file and loses to `SEAMARK_*`. "
        "[Configuration of a notify server](../notify-configuration.md) has the rest: schema, roles, and what is refused.",
        table(["key", "accepts", "default", "our setting", "environment", "why"], contract_rows()),
    )


def contract_rows() -> list[list[str]]:
    return [
        [code(key.name), key.kind.accepts, shown(key), code(key.setting) if key.setting else "", code(key.env), key.why]
        for key in contract.KEYS
    ]


def shown(key: contract.Key) -> str:
    """The default of a key; one without any is left to its setting, or is something that need not be."""
    if key.default is None or key.default == Secret() or key.default == "":
        return ""
    return code(str(key.default).lower() if isinstance(key.default, bool) else str(key.default))


def metrics() -> str:
    def listed(metrics: Iterable[Metric]) -> str:
        rows = [[code(row.name), row.kind, ", ".join(map(code, row.labels)), row.help] for row in metrics]
        return table(["name", "kind", "labels", "meaning"], rows)

    return page(
        "Metrics",
        "src/seamark/telemetry/metrics.py",
        "Served at `/metrics` in the Prometheus text format, on the main port or on `metrics_port`.",
        listed(METRICS),
        "On Linux there is also what the operating system counts of the process: `process_cpu_seconds_total`, "
        "`process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_start_time_seconds`, `process_open_fds`, "
        "`process_max_fds`.",
        "## The notify surface",
        "Served at `/metrics` too, under the names of its contract. Event types of the schema have labels of their own; all others are "
        "`generic`, and `unknown` is what was refused before its event type was known.",
        listed(NOTIFY_SERIES),
        "## The topics surface",
        "Served at `/v0/metrics`, as text or, to whoever accepts `application/json`, as JSON. These are the names that clients "
        "of topics know; they are made from the ones above and a count of the topics.",
        listed(SERIES),
    )


def log_events() -> str:
    rows = [[code(row.name), row.level, row.meaning] for row in EVENTS.values()]
    return page(
        "Log events",
        "src/seamark/telemetry/events.py",
        "Every line of Seamark's own has one of these names in its `event` field; libraries speak for themselves. Lines go to stderr: JSON, or text "
        "on a terminal (`log_style`). They never hold a secret or a payload.",
        table(["event", "level", "meaning"], rows),
    )


def error_tree(kind: type[errors.SeamarkError]) -> Iterable[type[errors.SeamarkError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from error_tree(child)


def error_codes() -> str:
    rows = []
    for kind in error_tree(errors.SeamarkError):
        words = " ".join((kind.__doc__ or "").split())
        parents = " > ".join(parent.__name__ for parent in reversed(kind.__mro__[:-3]))
        rows.append([code(kind.code), str(kind.status), parents, words])
    return page(
        "Error codes",
        "src/seamark/errors.py",
        "The code is stable and made for programs; the message is made for people and may change. Each surface puts them "
        "into its own envelope with the HTTP status given here.",
        table(["code", "status", "kind", "meaning and fields"], rows),
    )


def diagnostics() -> str:
    rows = [[code(name), row.severity, row.meaning] for name, row in CODES.items()]
    return page(
        "Diagnostics",
        "src/seamark/manifest/diagnostic.py",
        "What a linter says about a manifest, on the server before it takes one and in a client before it evaluates one. A "
        "manifest with an error is refused; warnings and infos let it pass. The meaning of a code never changes.",
        "Codes from 900 on are ours: they stand for conditions that the contract leaves without a code. `W014`, a retired flag that "
        "is still asked for, belongs to whoever sees the traffic, and `E040` is kept free by the contract.",
        table(["code", "severity", "meaning"], rows),
        "A diagnostic is `code`, `severity`, `path`, `message` and, where there is one, `location`: the path of the key in the "
        "file, like `flag.environments._.rules[0].segment`.",
    )


def bounds() -> str:
    rows = [[code(row.name), f"{row.value:,}", row.unit, row.why] for row in limits.LIMITS.values()]
    return page(
        "Limits",
        "src/seamark/limits.py",
        "Everything is bounded, and every bound is here. They are facts of this version, not settings.",
        table(["name", "value", "unit", "why"], rows),
    )


async def route_rows() -> list[Route]:
    """The route table of a server with default settings, as the wiring makes it."""
    assembly = Assembly(config.load({"engine": "memory"}, directory=DOCS), clock=SystemClock())
    rows = list(assembly.front.table.routes)
    await assembly.close()
    return rows


def routes() -> str:
    table_rows = [
        [code(f"{row.method} {row.path}"), row.action or permission(row) or "none", row.summary]
        for row in asyncio.run(route_rows())
    ]
    parts = [
        table(["route", "scope", "what it does"], table_rows),
        "The raw surface in detail; [its own page](../raw.md) says what the bodies and events hold.",
        *operations(RAW),
        "The topics surface in detail.",
        *operations(TOPICS),
        "The notify surface in detail; [its own page](../notify.md) says what the events hold. Its contract judges a request's "
        "body before it asks who is calling where it knows callers of its own; with API keys the key comes first.",
        *operations(NOTIFY),
        "The flags surface in detail. Its callers are known by tokens of its own, whatever keys there are, and the scope is a"
        " permission that the token must have for the place; [its own page](../flags.md) says which token has which.",
        *operations({place: (summary, described) for place, (summary, _, described) in FLAGS.items()}),
    ]
    return page(
        "Routes",
        "src/seamark/http/app.py",
        "All routes, and the scope that an API key needs for each. The running server describes them at `/openapi.json`.",
        *parts,
    )


def permission(row: Route) -> str:
    """What a token of the flags surface must permit."""
    found = FLAGS.get((row.method, row.path))
    return "" if found is None else code(found[1])


def operations(rows: Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]]) -> Iterable[str]:
    """One surface's routes, each with its parameters, bodies and answers."""
    for (method, path), (summary, operation) in rows.items():
        yield from (f"## `{method} {path}`", f"{summary}.")
        parameters = operation.get("parameters", [])
        if parameters:
            cells = [[code(row["name"]), row["in"], row["schema"]["type"], row["description"]] for row in parameters]
            yield table(["parameter", "in", "type", "meaning"], cells)
        if "requestBody" in operation:
            yield "Request body:\n\n" + example(operation["requestBody"])
        for status, response in operation["responses"].items():
            shown = example(response)
            yield f"Answer `{status}`: {response['description']}." + (f"\n\n{shown}" if shown else "")


def example(described: Mapping[str, Any]) -> str:
    """The JSON example of a request or a response, as a code block; empty when it has none."""
    content = described.get("content", {}).get("application/json", {})
    return f"```json\n{json.dumps(content['example'], indent=2)}\n```" if "example" in content else ""


def commands(context: click.Context) -> Iterable[click.Context]:
    """Every verb that can be run, those of groups in their place."""
    assert isinstance(context.command, click.Group)
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield from commands(inner) if isinstance(command, click.Group) else [inner]


def cli() -> str:
    context = click.Context(seamark, info_name="seamark")
    parts = []
    for inner in commands(context):
        command, name = inner.command, inner.command_path
        rows = []
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                names = ", ".join(code(name) for name in (*parameter.opts, *parameter.secondary_opts))
                rows.append([names, parameter.help or ""])
        arguments = " ".join(command.collect_usage_pieces(inner))
        parts += [f"## `{name}`", " ".join((command.help or "").split()), code(f"{name} {arguments}")]
        if rows:
            parts.append(table(["option", "meaning"], rows))
    exits = [[str(int(row)), row.name.lower(), row.meaning] for row in Exit]
    return page(
        "Command line",
        "src/seamark/cli/",
        "Results go to stdout: for people on a terminal, as JSON lines in a pipe. Everything else goes to stderr.",
        *parts,
        "## Exit codes",
        table(["code", "name", "meaning"], exits),
    )


def decisions() -> str:
    files = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    titles = [(file.name, file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")) for file in files]
    return page(
        "Decisions",
        "docs/decisions/",
        "Choices that cost a debate, each with what spoke for and against it.",
        "\n".join(f"- [{title}](decisions/{name})" for name, title in titles),
    )


def pages() -> dict[str, str]:
    """Every generated page by its path in docs/."""
    return {
        "decisions.md": decisions(),
        "reference/settings.md": settings(),
        "reference/metrics.md": metrics(),
        "reference/log-events.md": log_events(),
        "reference/errors.md": error_codes(),
        "reference/diagnostics.md": diagnostics(),
        "reference/limits.md": bounds(),
        "reference/routes.md": routes(),
        "reference/cli.md": cli(),
    }


def stale() -> list[str]:
    """The pages that do not say what their sources say."""
    return [
        name
        for name, text in pages().items()
        if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text
    ]


def main() -> int:
    logs.configure(level="error", style="text")  # the wiring that is looked at would say that it opened a log
    if "--check" in sys.argv[1:]:
        names = stale()
        for name in names:
            sys.stderr.write(f"stale: docs/{name}\n")
        return 1 if names else 0
    (DOCS / "reference").mkdir(exist_ok=True)
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
