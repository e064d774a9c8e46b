"""`seamark flags namespaces`: what manifests can be pushed to."""

from __future__ import annotations

from typing import Any

import click

from seamark.cli.exits import Exit
from seamark.cli.flags.remote import Remote, place_of, server_options
from seamark.cli.output import Output

FACTS = ("tenant", "slug", "display_name", "current_version", "created_at")


@click.group()
def namespaces() -> None:
    """Namespaces: what manifests can be pushed to."""


@namespaces.command()
@click.argument("place", metavar="TENANT/NAMESPACE")
@click.option("--display-name", metavar="TEXT", help="For people.")
@click.option("--description", metavar="TEXT", help="For people.")
@server_options
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def create(place: str, json: bool | None, **more: Any) -> int:
    """Make a namespace. Ends with 1 when there is one of that name."""
    where = place_of(place)
    body = {"slug": where.namespace}
    body |= {name: more[name] for name in ("display_name", "description") if more[name] is not None}
    with Remote(more["url"], more["token_file"]) as remote:
        namespace = remote.json("POST", f"/tenants/{where.tenant}/namespaces", json=body)["namespace"]
    output = Output(json=json)
    if output.json:
        output.line({"event": "created", **namespace})
    else:
        output.say(f"There is a namespace {where} now; push a manifest to it")
    return Exit.OK


@namespaces.command("list")
@click.option("--tenant", metavar="TENANT", help="Only those of this tenant.")
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or a table. [a table on a terminal]")
def listed(tenant: str | None, json: bool | None, **more: Any) -> int:
    """List the namespaces that the token covers."""
    query = {} if tenant is None else {"tenant": tenant}
    with Remote(more["url"], more["token_file"]) as remote:
        rows = list(remote.rows("/namespaces", "namespaces", query=query))
    Output(json=json).listing(
        rows,
        FACTS,
        ("namespace", "name", "version"),
        lambda row: (f"{row['tenant']}/{row['slug']}", row["display_name"], row["current_version"]),
    )
    return Exit.OK
