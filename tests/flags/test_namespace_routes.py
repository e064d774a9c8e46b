"""Namespaces over HTTP."""

from __future__ import annotations

import pytest

from tests.flags.house import ACME, BASE, FlagsHouse

OWNED = "/tenants/acme/namespaces"
GROWTH = {"slug": "growth", "display_name": "Growth", "description": "who sees what first"}


def slugs(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [f"{one['tenant']}/{one['slug']}" for one in answer["namespaces"]]


async def test_a_namespace_is_made_and_found_again(house: FlagsHouse) -> None:
    made = await house.call("POST", OWNED, GROWTH, status=201)
    namespace = made["namespace"]
    assert namespace == {
        "tenant": "acme",
        **GROWTH,
        "created_at": "2023-11-14T22:13:20.000Z",
        "current_version": 0,
    }
    assert (await house.call("GET", f"{OWNED}/growth"))["namespace"] == namespace
    assert slugs(await house.call("GET", OWNED)) == ["acme/billing", "acme/growth"]


async def test_a_slug_is_unique_in_its_tenant_and_only_there(house: FlagsHouse) -> None:
    await house.refused(409, "namespace_exists", "POST", OWNED, {"slug": "billing"})
    await house.call("POST", "/tenants", {**ACME, "slug": "other"})
    await house.call("POST", "/tenants/other/namespaces", {"slug": "billing"}, status=201)
    assert slugs(await house.call("GET", "/namespaces")) == ["acme/billing", "other/billing"]
    assert slugs(await house.call("GET", "/namespaces?tenant=other")) == ["other/billing"]
    assert slugs(await house.call("GET", "/tenants/other/namespaces")) == ["other/billing"]


@pytest.mark.parametrize(
    "body", [{}, {"slug": ""}, {"slug": "a_b"}, {"slug": "x", "tenant": "acme"}, {"slug": "x", "description": "\0"}]
)
async def test_what_is_no_namespace(house: FlagsHouse, body: object) -> None:
    await house.refused(400, "invalid_request", "POST", OWNED, body)


async def test_what_is_not_there(house: FlagsHouse) -> None:
    await house.refused(404, "tenant_not_found", "POST", "/tenants/nowhere/namespaces", GROWTH)
    await house.refused(404, "namespace_not_found", "GET", f"{OWNED}/nowhere")


async def test_whoever_is_bound_to_one_sees_that_one(house: FlagsHouse) -> None:
    await house.call("POST", OWNED, GROWTH)
    for kind in ("namespace-read", "namespace-write"):
        token = await house.mint(kind)
        assert slugs(await house.call("GET", "/namespaces", token=token)) == ["acme/billing"]
        await house.call("GET", BASE, token=token, status=200)
        for path in (f"{OWNED}/growth", f"{OWNED}/nowhere", OWNED, "/tenants/other/namespaces/billing"):
            await house.refused(403, "forbidden", "GET", path, token=token)
        await house.refused(403, "forbidden", "POST", OWNED, {"slug": "more"}, token=token)
    client = await house.mint("namespace-client")
    for path in ("/namespaces", BASE):
        await house.refused(403, "forbidden", "GET", path, token=client)


async def test_an_admin_of_a_tenant_makes_its_namespaces(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants", {**ACME, "slug": "other"})
    token = await house.mint("tenant-admin")
    await house.call("POST", OWNED, GROWTH, token=token, status=201)
    assert slugs(await house.call("GET", "/namespaces", token=token)) == ["acme/billing", "acme/growth"]
    for tenant in ("other", "nowhere"):
        await house.refused(403, "forbidden", "POST", f"/tenants/{tenant}/namespaces", GROWTH, token=token)


async def test_lists_have_pages(house: FlagsHouse) -> None:
    for slug in ("a", "c", "d"):
        await house.call("POST", OWNED, {"slug": slug})
    for path in (OWNED, "/namespaces"):
        first = await house.call("GET", f"{path}?limit=3")
        second = await house.call("GET", f"{path}?limit=3&cursor={first['next_cursor']}")
        assert slugs(first) + slugs(second) == [f"acme/{slug}" for slug in ("a", "billing", "c", "d")]
        assert second["next_cursor"] is None
    await house.refused(400, "invalid_request", "GET", "/namespaces?cursor=made-up")
