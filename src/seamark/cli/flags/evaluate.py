"""`seamark flags eval`: which variants a context gets, from a manifest on this machine or from a server."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from seamark.cli.exits import Exit
from seamark.cli.flags import tree
from seamark.cli.flags.remote import Remote, namespace_option, place_of, server_options
from seamark.cli.output import Output
from seamark.errors import BadInput, FlagNotFound
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.model import Scalar

Results = dict[str, dict[str, Any]]
_WHOLE = 2**63


@click.command("eval")
@click.argument("flags", nargs=-1, metavar="[FLAG]...")
@click.option("--environment", "-e", required=True, metavar="NAME", help="Where it is asked for.")
@click.option("--attribute", "-a", "attributes", multiple=True, metavar="KEY=VALUE", help="One fact about who asks, as often as"
              " needed. true, false and numbers are taken as such; quotes make text of them.")  # fmt: skip
@click.option("--include-testing", is_flag=True, help="Also rules that are for testing.")
@click.option("--dir", "folder", metavar="FOLDER|ARCHIVE", help="Evaluate this manifest here, without a server.")
@namespace_option
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or a table. [a table on a terminal]")
def evaluate(flags: tuple[str, ...], folder: str | None, json: bool | None, **more: Any) -> int:
    """Show which variant each flag has for a context; without flags, all of them. Ends with 1 when one of them does not exist, or
    when the manifest has errors."""
    context = dict(map(attribute, more["attributes"]))
    asked = {"environment": more["environment"], "context": context, "include_testing": more["include_testing"]}
    output = Output(json=json)
    if folder is not None:
        checked = tree.check(folder)
        manifest = checked.linted.manifest
        if manifest is None:
            tree.show(output, checked.linted.errors)
            return Exit.FINDINGS
        results, missing = _here(Evaluator(manifest), flags or tuple(sorted(manifest.flags)), asked)
    else:
        results, missing = _there(flags, asked, more)
    rows = [
        [key, one["variant"], msgspec.json.encode(one["value"]).decode(), one["rule_matched"]]
        for key, one in results.items()
    ]
    if output.json:
        for key, one in results.items():
            output.line({"event": "evaluated", "flag": key, **one})
    else:
        output.table(("flag", "variant", "value", "rule"), rows)
    for key in missing:
        click.echo(f"seamark: there is no flag {key}", err=True)
    return Exit.FINDINGS if missing else Exit.OK


def attribute(text: str) -> tuple[str, Scalar]:
    """Raises BadInput."""
    key, equals, written = text.partition("=")
    if not key or not equals:
        raise BadInput(f"{text!r} is no attribute; accepted: KEY=VALUE, as in user.plan=pro")
    try:
        value = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return key, written
    if isinstance(value, int) and not -_WHOLE <= value < _WHOLE:
        raise BadInput(f"{written} is too large for a number; in quotes it is text")
    return key, value if isinstance(value, str | bool | int | float) else written


def _here(evaluator: Evaluator, flags: tuple[str, ...], asked: dict[str, Any]) -> tuple[Results, list[str]]:
    environment, context, testing = asked["environment"], asked["context"], asked["include_testing"]
    evaluator.check_environment(environment)
    results: Results = {}
    missing: list[str] = []
    for key in flags:
        try:
            found = evaluator.evaluate(key, environment, context, include_testing=testing)
        except FlagNotFound:
            missing.append(key)
            continue
        results[key] = {"variant": found.variant, "value": found.value, "rule_matched": found.rule_matched}
    return results, missing


def _there(flags: tuple[str, ...], asked: dict[str, Any], more: dict[str, Any]) -> tuple[Results, list[str]]:
    base = f"{place_of(more['place']).path}/evaluate"
    with Remote(more["url"], more["token_file"]) as remote:
        if flags:
            answer = remote.json("POST", base, json={**asked, "flags": flags})
        else:
            answer = remote.json("POST", f"{base}/all", json=asked)
    return answer["results"], list(answer["errors"])
