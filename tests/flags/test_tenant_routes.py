"""Tenants over HTTP."""

from __future__ import annotations

import pytest

from tests.flags.house import ACME, FlagsHouse

MAIL = {"slug": "mail", "display_name": "Mail", "login_mode": "email_domain", "email_domain": "Mail.Example"}


async def test_a_tenant_is_made_and_found_again(house: FlagsHouse) -> None:
    body = {**MAIL, "initial_admin_user_ids": ["u-1"], "sso_provider": None}
    made = await house.call("POST", "/tenants", body, status=201)
    assert list(made) == ["tenant", "request_id"]
    tenant = made["tenant"]
    assert tenant == {
        "slug": "mail",
        "display_name": "Mail",
        "login_mode": "email_domain",
        "sso_provider": None,
        "email_domain": "mail.example",
        "created_at": "2023-11-14T22:13:20.000Z",
        "namespace_count": 0,
    }
    assert (await house.call("GET", "/tenants/mail"))["tenant"] == tenant
    listed = await house.call("GET", "/tenants")
    assert [one["slug"] for one in listed["tenants"]] == ["acme", "mail"]
    assert listed["next_cursor"] is None


async def test_a_slug_belongs_to_one_tenant(house: FlagsHouse) -> None:
    error = await house.refused(409, "tenant_exists", "POST", "/tenants", {**ACME, "display_name": "other"})
    assert error["details"] == {"tenant": "acme"}
    assert (await house.call("GET", "/tenants/acme"))["tenant"]["display_name"] == ""


async def test_it_counts_its_namespaces(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants/acme/namespaces", {"slug": "growth"})
    assert (await house.call("GET", "/tenants/acme"))["tenant"]["namespace_count"] == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"slug": "x"},
        {"slug": "x", "login_mode": "password"},
        {"slug": "x", "login_mode": "sso"},
        {"slug": "x", "login_mode": "sso", "sso_provider": ""},
        {"slug": "x", "login_mode": "sso", "sso_provider": "okta", "email_domain": "x.example"},
        {"slug": "x", "login_mode": "email_domain"},
        {"slug": "x", "login_mode": "email_domain", "email_domain": "nonsense"},
        {"slug": "x", "login_mode": "email_domain", "email_domain": "a@x.example"},
        {"slug": "x", "login_mode": "email_domain", "email_domain": "x.example", "sso_provider": "okta"},
        {"slug": "X", **{key: ACME[key] for key in ("login_mode", "sso_provider")}},
        {**ACME, "slug": ""},
        {**ACME, "slug": "a" * 64},
        {**ACME, "slug": "a_b"},
        {**ACME, "slug": "1a"},
        {**ACME, "slug": 1},
        {**ACME, "slug": "x", "display_name": "two\nlines"},
        {**ACME, "slug": "x", "display_name": "x" * 1025},
        {**ACME, "slug": "x", "dispaly_name": "misspelt"},
        [],
    ],
)
async def test_what_is_no_tenant(house: FlagsHouse, body: object) -> None:
    await house.refused(400, "invalid_request", "POST", "/tenants", body)
    assert len((await house.call("GET", "/tenants"))["tenants"]) == 1


async def test_the_body_must_be_json_and_say_so(house: FlagsHouse) -> None:
    answer = await house.ask("POST", "/tenants", content=b"{}", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    answer = await house.ask(
        "POST", "/tenants", content=b"{", headers={"Content-Type": "application/json; charset=utf-8"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


async def test_only_a_superadmin_makes_tenants(house: FlagsHouse) -> None:
    for kind in ("tenant-admin", "namespace-write", "namespace-read", "namespace-client"):
        token = await house.mint(kind)
        await house.refused(403, "forbidden", "POST", "/tenants", MAIL, token=token)
        await house.refused(403, "forbidden", "POST", "/tenants", ACME, token=token)  # whether it is there is not told
    await house.refused(401, "unauthorized", "POST", "/tenants", MAIL, token="")


async def test_an_admin_sees_its_own_tenant_alone(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants", MAIL)
    token = await house.mint("tenant-admin")
    assert [one["slug"] for one in (await house.call("GET", "/tenants", token=token))["tenants"]] == ["acme"]
    await house.call("GET", "/tenants/acme", token=token, status=200)
    for other in ("mail", "nowhere"):
        await house.refused(403, "forbidden", "GET", f"/tenants/{other}", token=token)
    writer = await house.mint("namespace-write")
    for path in ("/tenants", "/tenants/acme"):
        await house.refused(403, "forbidden", "GET", path, token=writer)


async def test_a_tenant_that_is_not_there(house: FlagsHouse) -> None:
    await house.refused(404, "tenant_not_found", "GET", "/tenants/nowhere")


async def test_a_list_has_pages(house: FlagsHouse) -> None:
    for number in range(5):
        await house.call("POST", "/tenants", {**ACME, "slug": f"t{number}"})
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = await house.call("GET", f"/tenants?limit=2&cursor={cursor}")
        assert len(page["tenants"]) == 2
        seen += [one["slug"] for one in page["tenants"]]
        cursor = page["next_cursor"]
    assert seen == ["acme", "t0", "t1", "t2", "t3", "t4"]
    for query in ("limit=0", "limit=201", "limit=x", "limt=1", "limit=1&limit=2"):
        await house.refused(400, "invalid_request", "GET", f"/tenants?{query}")
