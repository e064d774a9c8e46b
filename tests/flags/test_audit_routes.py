"""The log of changes over HTTP."""

from __future__ import annotations

from tests.flags.house import ACME, FlagsHouse


async def test_every_change_has_its_line(house: FlagsHouse) -> None:
    made = await house.call("POST", "/tokens", {"type": "tenant-admin", "name": "ops", "tenant": "acme"})
    house.clock.advance(1)
    gone = await house.call("DELETE", f"/tokens/{made['token']['id']}")
    trail = await house.call("GET", "/audit")
    assert [one["action"] for one in trail["entries"]] == [
        "token.mint",
        "tenant.create",
        "namespace.create",
        "token.mint",
        "token.revoke",
    ]
    assert [one["sequence"] for one in trail["entries"]] == [1, 2, 3, 4, 5]
    assert (trail["next_cursor"], trail["caught_up"]) == ("5", True)
    root = trail["entries"][0]
    assert (root["actor"], root["tenant"], root["request_id"]) == ("bootstrap", None, None)
    assert trail["entries"][4] == {
        "sequence": 5,
        "at": "2023-11-14T22:13:21.000Z",
        "actor": root["subject"],
        "action": "token.revoke",
        "subject": made["token"]["id"],
        "tenant": "acme",
        "namespace": None,
        "request_id": gone["request_id"],
        "before": made["token"],
        "after": gone["token"],
    }
    assert trail["entries"][1]["after"]["slug"] == "acme"


async def test_what_was_refused_changed_nothing(house: FlagsHouse) -> None:
    before = (await house.call("GET", "/audit"))["next_cursor"]
    await house.refused(409, "tenant_exists", "POST", "/tenants", ACME)
    await house.refused(400, "invalid_request", "POST", "/tokens", {})
    assert (await house.call("GET", "/audit"))["next_cursor"] == before


async def test_it_is_read_on_from_a_cursor(house: FlagsHouse) -> None:
    first = await house.call("GET", "/audit?limit=2")
    assert (len(first["entries"]), first["caught_up"]) == (2, False)
    rest = await house.call("GET", f"/audit?cursor={first['next_cursor']}")
    assert [one["action"] for one in rest["entries"]] == ["namespace.create"]
    nothing = await house.call("GET", f"/audit?cursor={rest['next_cursor']}")
    assert (nothing["entries"], nothing["next_cursor"]) == ([], rest["next_cursor"])
    for cursor in ("99", "-1", "x", "9" * 20):
        await house.refused(400, "invalid_request", "GET", f"/audit?cursor={cursor}")


async def test_an_admin_reads_what_is_about_its_tenant(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants", {**ACME, "slug": "other"})
    admin = await house.mint("tenant-admin")
    own = await house.call("GET", "/audit", token=admin)
    assert {one["tenant"] for one in own["entries"]} == {"acme"}
    assert own["entries"] == (await house.call("GET", "/audit?tenant=acme"))["entries"]
    for tenant in ("other", "nowhere"):
        await house.refused(403, "forbidden", "GET", f"/audit?tenant={tenant}", token=admin)
    for kind in ("namespace-read", "namespace-write", "namespace-client"):
        await house.refused(403, "forbidden", "GET", "/audit", token=await house.mint(kind))
