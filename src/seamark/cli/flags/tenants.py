"""`seamark flags tenants`: whose namespaces there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from seamark.cli.exits import Exit
from seamark.cli.flags.remote import Remote, server_options
from seamark.cli.output import Output

FACTS = ("slug", "display_name", "login_mode", "sso_provider", "email_domain", "namespace_count", "created_at")


@click.group()
def tenants() -> None:
    """Tenants: whose namespaces there are."""


@tenants.command()
@click.argument("slug", metavar="SLUG")
@click.option("--display-name", metavar="TEXT", help="For people.")
@click.option("--sso-provider", metavar="NAME", help="People of this tenant log in through it.")
@click.option("--email-domain", metavar="DOMAIN", help="People of this tenant have an address there.")
@server_options
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def create(slug: str, json: bool | None, **more: Any) -> int:
    """Make a tenant; --sso-provider or --email-domain says how its people are known. Ends with 1 when there is one of that
    name."""
    body = {"slug": slug, "login_mode": "sso" if more["sso_provider"] else "email_domain"}
    body |= {name: more[name] for name in ("display_name", "sso_provider", "email_domain") if more[name] is not None}
    with Remote(more["url"], more["token_file"]) as remote:
        tenant = remote.json("POST", "/tenants", json=body)["tenant"]
    output = Output(json=json)
    if output.json:
        output.line({"event": "created", **tenant})
    else:
        output.say(f"There is a tenant {tenant['slug']} now")
    return Exit.OK


@tenants.command("list")
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or a table. [a table on a terminal]")
def listed(json: bool | None, **more: Any) -> int:
    """List the tenants that the token covers."""
    with Remote(more["url"], more["token_file"]) as remote:
        rows = list(remote.rows("/tenants", "tenants"))
    Output(json=json).listing(
        rows,
        FACTS,
        ("tenant", "name", "people", "namespaces"),
        lambda row: (row["slug"], row["display_name"], _people(row), row["namespace_count"]),
    )
    return Exit.OK


def _people(row: Mapping[str, Any]) -> str:
    return f"by {row['sso_provider']}" if row["login_mode"] == "sso" else f"at {row['email_domain']}"
