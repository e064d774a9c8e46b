"""Tokens from a shell."""

from __future__ import annotations

import os

from tests.cli.flags.desk import Desk
from tests.cli.flags.test_push import ONE


def test_tokens_are_made_used_listed_and_revoked(desk: Desk) -> None:
    place = os.environ["EXD_NAMESPACE"]
    tenant = place.partition("/")[0]
    made = desk.run("tokens", "mint", "--type", "namespace-write", "--name", "ci", "--namespace", place).lines[0]
    assert (made["event"], made["type"]) == ("minted", "namespace-write")
    (desk.folder / "token").write_text(made["secret"] + "\n")
    desk.run("push", desk.write(ONE), "--token-file", str(desk.folder / "token"))
    client = (
        "tokens",
        "mint",
        "--type",
        "namespace-client",
        "--name",
        "shop",
        "--namespace",
        place,
        "--environment",
        "production",
    )
    said = desk.run(*client, "--allowed-origin", "https://a.example", "--expires-at", "2999-01-01T00:00:00Z", "--text")
    assert "shown this once" in said.out
    rows = desk.run("tokens", "list", "--tenant", tenant)
    assert [row["type"] for row in rows.lines] == ["namespace-write", "namespace-client"]
    assert rows.lines[1]["expires_at"] == "2999-01-01T00:00:00.000Z"
    assert made["secret"] not in rows.out
    gone = desk.run("tokens", "revoke", made["id"]).lines[0]
    assert (gone["event"], gone["id"]) == ("revoked", made["id"])
    shown = " ".join(desk.run("tokens", "list", "--tenant", tenant, "--text").out.split())
    assert shown.startswith("id type for name ends")
    assert "revoked" in shown
    assert "is revoked since" in desk.run("tokens", "revoke", made["id"], "--text").out
    desk.run("push", desk.write(ONE), "--token-file", str(desk.folder / "token"), status=3)
    desk.run("tokens", "revoke", "tok_x", status=2)
    desk.run("tokens", "mint", "--type", "tenant-admin", "--name", "boss", "--tenant", tenant)
    desk.run("tokens", "mint", "--type", "tenant-admin", "--name", "boss", status=2)
