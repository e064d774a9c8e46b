"""Who is calling: what counts as a token, in which order things are asked, and that nothing leaks on the way."""

from __future__ import annotations

import pytest

from seamark.access.tokens import TYPES
from tests.flags.house import BASE, FlagsHouse


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_in_any_case(house: FlagsHouse, scheme: str) -> None:
    headers = {"Authorization": f"{scheme}  {house.root} "}
    assert (await house.ask("GET", BASE, token="", headers=headers)).status_code == 200


async def test_what_does_not_count(house: FlagsHouse) -> None:
    root = house.root
    for value in (
        "",
        root,
        f"Basic {root}",
        "Bearer",
        "Bearer ",
        f"Bearer {root}x",
        f"Bearer {root[:-1]}",
        f"Bearer {root.lower()}",
    ):
        answer = await house.ask("GET", BASE, token="", headers={"Authorization": value})
        assert answer.status_code == 401, value
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "unauthorized"
    twice = [("Authorization", f"Bearer {root}"), ("Authorization", f"Bearer {root}")]
    assert (await house.client.get(f"/api/v1{BASE}", headers=twice)).status_code == 401
    assert (await house.ask("GET", f"{BASE}?token={root}", token="")).status_code == 401


async def test_a_server_that_is_open_otherwise_still_wants_a_token(house: FlagsHouse) -> None:
    assert (await house.client.get("/v0/topics")).status_code == 200
    await house.refused(401, "unauthorized", "GET", BASE, token="")


async def test_api_keys_open_nothing_here_and_tokens_nothing_there() -> None:
    house = await FlagsHouse.opened({"SEAMARK_API_KEYS": "k"})
    await house.furnish()
    await house.refused(401, "unauthorized", "GET", BASE, token="k")
    assert (await house.client.get("/v0/topics", headers={"Authorization": f"Bearer {house.root}"})).status_code == 401
    assert (await house.client.get("/v0/topics", headers={"Authorization": "Bearer k"})).status_code == 200
    await house.close()


async def test_first_who_then_whether_then_what(house: FlagsHouse) -> None:
    """A stranger learns nothing, whoever may not learns nothing about the place, and only then is the request read."""
    reader = await house.mint("namespace-read")
    for tenant in ("acme", "nowhere"):
        path = f"/tenants/{tenant}/namespaces"
        await house.refused(401, "unauthorized", "POST", path, {"nonsense": 1}, token="")
        await house.refused(403, "forbidden", "POST", path, {"nonsense": 1}, token=reader)
    await house.refused(404, "tenant_not_found", "POST", "/tenants/nowhere/namespaces", {"nonsense": 1})
    await house.refused(400, "invalid_request", "POST", "/tenants/acme/namespaces", {"nonsense": 1})


async def test_a_refusal_is_the_same_whether_the_place_is_there(house: FlagsHouse) -> None:
    await house.call("POST", "/tenants/acme/namespaces", {"slug": "growth"})
    for kind in ("namespace-read", "namespace-write", "namespace-client"):
        secret = await house.mint(kind)
        said = {
            (error["code"], error["message"])
            for slug in ("growth", "nowhere")
            for error in [
                await house.refused(403, "forbidden", "GET", f"/tenants/acme/namespaces/{slug}", token=secret)
            ]
        }
        assert len(said) == 1


async def test_refusals_are_counted(house: FlagsHouse) -> None:
    metrics = house.assembly.metrics

    def counted() -> tuple[float, float]:
        return tuple(
            metrics.counter("seamark_flags_denied_total", code).value for code in ("unauthorized", "forbidden")
        )  # type: ignore[return-value]

    before = counted()
    await house.refused(401, "unauthorized", "GET", BASE, token="")
    await house.refused(403, "forbidden", "GET", "/tenants", token=await house.mint("namespace-read"))
    assert counted() == (before[0] + 1, before[1] + 1)


async def test_no_secret_is_logged(house: FlagsHouse, capfd: pytest.CaptureFixture[str]) -> None:
    made = [await house.mint(kind) for kind in TYPES]
    for secret in [*made, "exd_admin_" + "x" * 38]:
        await house.ask("GET", BASE, token=secret)
        await house.ask("POST", "/tenants", token=secret, json={"slug": "acme"})
    said = "".join(capfd.readouterr())
    assert "flags.changed" in said
    assert "exd_" not in said
    audit = (await house.ask("GET", "/audit")).text
    assert "token.mint" in audit
    assert "exd_" not in audit
