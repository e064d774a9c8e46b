"""`seamark flags tokens`: who may do what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from seamark.access.tokens import TYPES
from seamark.cli.exits import Exit
from seamark.cli.flags.remote import Remote, place_of, server_options
from seamark.cli.output import Output

FACTS = ("id", "type", "tenant", "namespace", "environment", "name", "created_at", "expires_at", "revoked_at")


@click.group()
def tokens() -> None:
    """Tokens: who may do what."""


@tokens.command()
@click.option("--type", "kind", type=click.Choice([*TYPES]), required=True, help="What it may do.")
@click.option("--name", metavar="TEXT", required=True, help="What it is for.")
@click.option("--tenant", metavar="TENANT", help="Of a token for all of a tenant.")
@click.option("--namespace", "place", metavar="TENANT/NAMESPACE", help="Of a token for one namespace.")
@click.option("--environment", metavar="NAME", help="Of a client token.")
@click.option("--expires-at", metavar="TIME", help="As in 2027-01-01T00:00:00Z. [never]")
@click.option(
    "--allowed-origin", "origins", multiple=True, metavar="ORIGIN", help="Of a client token: pages that may use it."
)
@server_options
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def mint(kind: str, name: str, place: str | None, json: bool | None, **more: Any) -> int:
    """Make a token. Its secret is shown this once."""
    body: dict[str, Any] = {"type": kind, "name": name, "tenant": more["tenant"]}
    if place is not None:
        where = place_of(place)
        body |= {"tenant": where.tenant, "namespace": where.namespace}
    optional = {"environment": more["environment"], "expires_at": more["expires_at"]}
    body |= {field: value for field, value in optional.items() if value is not None}
    if more["origins"]:
        body["allowed_origins"] = list(more["origins"])
    with Remote(more["url"], more["token_file"]) as remote:
        made = remote.json("POST", "/tokens", json=body)
    say_minted(Output(json=json), made["token"]["id"], kind, made["secret"])
    return Exit.OK


@tokens.command("list")
@click.option("--tenant", metavar="TENANT", help="Only those of this tenant.")
@server_options
@click.option("--json/--text", "json", default=None, help="JSON lines or a table. [a table on a terminal]")
def listed(tenant: str | None, json: bool | None, **more: Any) -> int:
    """List tokens, the oldest first; also those that expired or were revoked. Secrets are nowhere."""
    query = {} if tenant is None else {"tenant": tenant}
    with Remote(more["url"], more["token_file"]) as remote:
        rows = list(remote.rows("/tokens", "tokens", query=query))
    Output(json=json).listing(
        rows,
        FACTS,
        ("id", "type", "for", "name", "ends"),
        lambda row: (row["id"], row["type"], _bound(row), row["name"], _end(row)),
    )
    return Exit.OK


@tokens.command()
@click.argument("token_id", metavar="ID")
@server_options
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def revoke(token_id: str, json: bool | None, **more: Any) -> int:
    """Revoke a token: from now on it opens nothing, and streams that it opened end."""
    with Remote(more["url"], more["token_file"]) as remote:
        token = remote.json("DELETE", f"/tokens/{token_id}")["token"]
    output = Output(json=json)
    if output.json:
        output.line({"event": "revoked", "id": token["id"], "revoked_at": token["revoked_at"]})
    else:
        output.say(f"{token['id']} is revoked since {token['revoked_at']}")
    return Exit.OK


def say_minted(output: Output, token_id: str, kind: str, secret: str) -> None:
    """A new token with its secret, which nobody is told again."""
    if output.json:
        output.line({"event": "minted", "id": token_id, "type": kind, "secret": secret})
        return
    output.say(f"Token {token_id} of type {kind}. Its secret is shown this once:")
    output.say("")
    output.say(f"  {secret}", style="bold")
    output.say("")
    output.say(
        "Keep it as you would a password: send it as 'Authorization: Bearer <secret>', or put it into EXD_TOKEN."
    )


def _bound(row: Mapping[str, Any]) -> str:
    place = "/".join(row[name] for name in ("tenant", "namespace") if row[name])
    return f"{place} in {row['environment']}" if row["environment"] else place


def _end(row: Mapping[str, Any]) -> str:
    return f"revoked {row['revoked_at']}" if row["revoked_at"] else row["expires_at"] or ""
