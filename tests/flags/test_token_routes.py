"""Tokens over HTTP: who may make which, what is shown of them, and what becomes of those that end."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.flags.house import ACME, BASE, FlagsHouse

READ = {"type": "namespace-read", "name": "ci", "tenant": "acme", "namespace": "billing"}
CLIENT = {**READ, "type": "namespace-client", "environment": "production"}
PREFIXES = {
    "namespace-read": "exd_read_",
    "namespace-write": "exd_write_",
    "namespace-client": "exd_client_",
    "tenant-admin": "exd_tenant_",
    "superadmin": "exd_admin_",
}


async def token_id(house: FlagsHouse, body: dict[str, Any], **more: Any) -> tuple[str, str]:
    made = await house.call("POST", "/tokens", body, status=201, **more)
    return made["token"]["id"], made["secret"]


@pytest.mark.parametrize("kind", PREFIXES)
async def test_every_type_has_its_prefix_and_works(house: FlagsHouse, kind: str) -> None:
    secret = await house.mint(kind)
    assert re.fullmatch(PREFIXES[kind] + "[0-9A-Za-z]{38}", secret)
    status = 403 if kind == "namespace-client" else 200
    assert (await house.ask("GET", BASE, token=secret)).status_code == status


async def test_a_secret_is_shown_once(house: FlagsHouse) -> None:
    body = {**CLIENT, "expires_at": "2023-11-14T23:13:20+01:00", "allowed_origins": ["https://shop.example"]}
    body["expires_at"] = "2030-01-02T03:04:05+01:00"
    made = await house.call("POST", "/tokens", body, status=201)
    assert list(made) == ["token", "secret", "request_id"]
    token = made["token"]
    creator = (await house.call("GET", "/tokens"))["tokens"][0]["id"]
    assert token == {
        "id": token["id"],
        "type": "namespace-client",
        "name": "ci",
        "tenant": "acme",
        "namespace": "billing",
        "environment": "production",
        "allowed_origins": ["https://shop.example"],
        "created_at": "2023-11-14T22:13:20.000Z",
        "created_by": creator,
        "expires_at": "2030-01-02T02:04:05.000Z",
        "revoked_at": None,
    }
    assert re.fullmatch("tok_[0-9A-HJKMNP-TV-Z]{26}", token["id"])
    assert (await house.call("GET", f"/tokens/{token['id']}"))["token"] == token
    assert token in (await house.call("GET", "/tokens"))["tokens"]
    for path in ("/tokens", f"/tokens/{token['id']}", "/audit"):
        assert made["secret"] not in (await house.ask("GET", path)).text


async def test_a_revoked_token_opens_nothing(house: FlagsHouse) -> None:
    ended: list[str] = []
    stop = house.directory.on_revoke(lambda holder: ended.append(holder.name))
    number, secret = await token_id(house, READ)
    await house.call("GET", BASE, token=secret, status=200)
    house.clock.advance(1)
    gone = await house.call("DELETE", f"/tokens/{number}", status=200)
    assert gone["token"]["revoked_at"] == "2023-11-14T22:13:21.000Z"
    await house.refused(401, "unauthorized", "GET", BASE, token=secret)
    assert ended == [number]
    house.clock.advance(1)
    assert (await house.call("DELETE", f"/tokens/{number}"))["token"] == gone["token"]
    assert ended == [number]
    stop()
    await house.call("DELETE", f"/tokens/{(await token_id(house, READ))[0]}")
    assert ended == [number]


async def test_an_expired_token_opens_nothing(house: FlagsHouse) -> None:
    _, secret = await token_id(house, {**READ, "expires_at": "2023-11-14T22:13:30Z"})
    house.clock.advance(9.999)
    await house.call("GET", BASE, token=secret, status=200)
    house.clock.advance(0.001)
    await house.refused(401, "unauthorized", "GET", BASE, token=secret)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {**READ, "type": "root"},
        {**READ, "name": ""},
        {key: value for key, value in READ.items() if key != "name"},
        {key: value for key, value in READ.items() if key != "tenant"},
        {key: value for key, value in READ.items() if key != "namespace"},
        {**READ, "environment": "production"},
        {**READ, "allowed_origins": ["https://x.example"]},
        {**READ, "expires_at": "tomorrow"},
        {**READ, "expires_at": 1},
        {**READ, "expires_at": "2023-11-14T22:13:20Z"},
        {**READ, "expires_at": "2023-02-30T00:00:00Z"},
        {**READ, "expires_at": "2030-01-01T00:00:00"},
        {**READ, "expries_at": "2030-01-01T00:00:00Z"},
        {key: value for key, value in CLIENT.items() if key != "environment"},
        {**CLIENT, "environment": "_"},
        {**CLIENT, "environment": ""},
        {**CLIENT, "allowed_origins": ["shop.example"]},
        {**CLIENT, "allowed_origins": ["https://shop.example/"]},
        {**CLIENT, "allowed_origins": ["https://Shop.example"]},
        {**CLIENT, "allowed_origins": ["https://a:1"] * 65},
        {"type": "tenant-admin", "name": "x"},
        {"type": "tenant-admin", "name": "x", "tenant": "acme", "namespace": "billing"},
        {"type": "superadmin", "name": "x", "tenant": "acme"},
    ],
)
async def test_what_is_no_token(house: FlagsHouse, body: object) -> None:
    await house.refused(400, "invalid_request", "POST", "/tokens", body)
    assert len((await house.call("GET", "/tokens"))["tokens"]) == 1


async def test_a_token_for_what_is_not_there(house: FlagsHouse) -> None:
    await house.refused(404, "tenant_not_found", "POST", "/tokens", {**READ, "tenant": "nowhere"})
    await house.refused(404, "namespace_not_found", "POST", "/tokens", {**READ, "namespace": "nowhere"})
    for method in ("GET", "DELETE"):
        await house.refused(404, "token_not_found", method, "/tokens/tok_00000000000000000000000000")


async def test_an_admin_of_a_tenant_issues_for_its_namespaces(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants", {**ACME, "slug": "other"})
    await house.call("POST", "/tenants/other/namespaces", {"slug": "billing"})
    theirs, _ = await token_id(house, {**READ, "tenant": "other"})
    peer, _ = await token_id(house, {"type": "tenant-admin", "name": "peer", "tenant": "acme"})
    admin = await house.mint("tenant-admin")
    number, _ = await token_id(house, READ, token=admin)
    await token_id(house, {**CLIENT, "allowed_origins": None, "expires_at": None}, token=admin)
    for tenant in ("other", "nowhere"):
        await house.refused(403, "forbidden", "POST", "/tokens", {**READ, "tenant": tenant}, token=admin)
    for kind in ({"type": "superadmin", "name": "x"}, {"type": "tenant-admin", "name": "x", "tenant": "acme"}):
        await house.refused(403, "forbidden", "POST", "/tokens", kind, token=admin)
    shown = (await house.call("GET", "/tokens", token=admin))["tokens"]
    assert {one["tenant"] for one in shown} == {"acme"}
    assert number in {one["id"] for one in shown}
    for method in ("GET", "DELETE"):
        await house.refused(404, "token_not_found", method, f"/tokens/{theirs}", token=admin)
    await house.refused(403, "forbidden", "DELETE", f"/tokens/{peer}", token=admin)
    await house.call("DELETE", f"/tokens/{number}", token=admin, status=200)


async def test_nobody_else_sees_or_makes_tokens(house: FlagsHouse) -> None:
    number, _ = await token_id(house, READ)
    for kind in ("namespace-read", "namespace-write", "namespace-client"):
        secret = await house.mint(kind)
        await house.refused(403, "forbidden", "POST", "/tokens", READ, token=secret)
        await house.refused(403, "forbidden", "GET", "/tokens", token=secret)
        for method in ("GET", "DELETE"):
            await house.refused(403, "forbidden", method, f"/tokens/{number}", token=secret)


async def test_lists_are_narrowed_and_have_pages(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants/acme/namespaces", {"slug": "growth"})
    made = [(await token_id(house, READ))[0]]
    for _ in range(3):
        house.clock.advance(1)
        made.append((await token_id(house, READ))[0])
    await token_id(house, {**READ, "namespace": "growth"})
    path = "/tokens?tenant=acme&namespace=billing&limit=2"
    first = await house.call("GET", path)
    second = await house.call("GET", f"{path}&cursor={first['next_cursor']}")
    assert [one["id"] for one in first["tokens"] + second["tokens"]] == made
    assert second["next_cursor"] is None
