"""Evaluation over HTTP: what is answered, for whom, and to which pages."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from seamark.limits import CONTEXT_TEXT_CHARS_MAX
from seamark.manifest.evaluate import Evaluator, Outcome
from tests.flags.house import BASE, FlagsHouse
from tests.flags.manifests import HEAD, manifest, segment
from tests.flags.test_manifest_routes import push

EVALUATE = f"{BASE}/evaluate"
SHOP = "https://shop.example"
ENVIRONMENTS = f"""{HEAD}
[namespace]
slug = "billing"

[namespace.environments]
production = {{ public_evaluate = true }}
staging = {{}}
"""
CHECKOUT = f"""{HEAD}
[flag]
type = "json"

[flag.variants]
old = {{ steps = 3 }}
new = {{ steps = 1, title = "straight" }}

[flag.environments._]
variant = "old"

[[flag.environments._.rules]]
segment = "employees"
variant = "new"
"""
LIMIT = f"""{HEAD}
[flag]
type = "integer"

[flag.variants]
few = 3
many = 9

[flag.environments._]
variant = "few"

[flag.environments.staging]
testing = true

[[flag.environments.staging.rules]]
predicate = {{ attribute = "user.beta", op = "eq", value = true }}
variant = "many"
"""
FILES = manifest(
    {"checkout": CHECKOUT.encode(), "limit": LIMIT.encode()}, {"employees": segment()}, namespace=ENVIRONMENTS.encode()
)
JO = {"user.email": "jo@example.com"}
NEW = {"variant": "new", "value": {"steps": 1, "title": "straight"}, "rule_matched": "rule:0"}
OLD = {"variant": "old", "value": {"steps": 3}, "rule_matched": "default"}
FEW = {"variant": "few", "value": 3, "rule_matched": "default"}


@pytest.fixture
async def shop(house: FlagsHouse) -> FlagsHouse:
    """A house with a manifest."""
    await push(house, FILES)
    return house


async def test_some_flags(shop: FlagsHouse) -> None:
    body = {"environment": "production", "flags": ["limit", "checkout", "gone", "limit"], "context": JO}
    answer = await shop.call("POST", EVALUATE, body, status=200)
    assert list(answer) == ["version", "environment", "results", "errors", "request_id"]
    assert (answer["version"], answer["environment"]) == (1, "production")
    assert answer["results"] == {"limit": FEW, "checkout": NEW}
    assert answer["errors"] == {"gone": "flag_not_found"}
    nobody = await shop.call("POST", EVALUATE, {"environment": "production", "flags": ["checkout"]})
    assert nobody["results"] == {"checkout": OLD}
    nothing = await shop.call("POST", EVALUATE, {"environment": "production"})
    assert (nothing["results"], nothing["errors"]) == ({}, {})


async def test_every_flag(shop: FlagsHouse) -> None:
    answer = await shop.call("POST", f"{EVALUATE}/all", {"environment": "staging", "context": JO})
    assert (answer["results"], answer["errors"]) == ({"checkout": NEW, "limit": FEW}, {})


async def test_rules_for_testing_have_to_be_asked_for(shop: FlagsHouse) -> None:
    body = {"environment": "staging", "flags": ["limit"], "context": {"user.beta": True}}
    assert (await shop.call("POST", EVALUATE, body))["results"]["limit"] == FEW
    tested = await shop.call("POST", EVALUATE, {**body, "include_testing": True})
    assert tested["results"]["limit"] == {"variant": "many", "value": 9, "rule_matched": "rule:0"}


async def test_the_newest_version_answers(shop: FlagsHouse) -> None:
    await push(shop, manifest({"limit": LIMIT.replace("few = 3", "few = 4").encode()}, namespace=ENVIRONMENTS.encode()))
    answer = await shop.call("POST", f"{EVALUATE}/all", {"environment": "production"})
    assert (answer["version"], answer["results"]) == (2, {"limit": {**FEW, "value": 4}})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"flags": ["checkout"]},
        {"environment": None},
        {"environment": 1},
        {"environment": "production", "flags": "checkout"},
        {"environment": "production", "context": {"user": {"email": "x"}}},
        {"environment": "production", "context": {"tags": ["x"]}},
        {"environment": "production", "context": {"x": None}},
        {"environment": "production", "context": {"x": 2**63}},
        {"environment": "production", "context": []},
        {"environment": "production", "context": {"x": "x" * (CONTEXT_TEXT_CHARS_MAX + 1)}},
        {"environment": "production", "contxt": {}},
        {"environment": "production", "flags": [f"f{n}" for n in range(1001)]},
    ],
)
async def test_what_cannot_be_evaluated(shop: FlagsHouse, body: object) -> None:
    await shop.refused(400, "invalid_request", "POST", EVALUATE, body)


async def test_what_asks_a_lot_is_asked_beside_the_loop(shop: FlagsHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest that was made for it keeps a processor busy for seconds; nobody else waits for that."""
    where: list[bool] = []
    evaluate = Evaluator.evaluate

    def noted(*args: Any, **more: Any) -> Outcome:
        where.append(threading.current_thread() is threading.main_thread())
        return evaluate(*args, **more)

    monkeypatch.setattr(Evaluator, "evaluate", noted)
    body = {"environment": "production", "flags": ["limit", "gone", "checkout"], "context": JO}
    inline = await shop.call("POST", EVALUATE, body)
    for most in (1, 200):
        monkeypatch.setattr("seamark.limits.EVALUATION_SLICE_CHARS", most)
        apart = await shop.call("POST", EVALUATE, body)
        assert {**apart, "request_id": ""} == {**inline, "request_id": ""}
        assert list(apart["results"]) == ["limit", "checkout"]
    monkeypatch.undo()
    monkeypatch.setattr(Evaluator, "evaluate", noted)
    monkeypatch.setattr("seamark.limits.EVALUATION_STEPS_MAX", 0)
    await push(shop, {**FILES, "flags/other.toml": CHECKOUT.encode()})
    await shop.call("POST", EVALUATE, body)
    assert where == [True] * 3 + [False] * 9


async def test_an_environment_that_there_is_not(shop: FlagsHouse) -> None:
    for environment in ("nowhere", "_", ""):
        error = await shop.refused(400, "unknown_environment", "POST", EVALUATE, {"environment": environment})
        assert error["details"] == {"environment": environment}


async def test_without_a_manifest(house: FlagsHouse) -> None:
    await house.refused(404, "manifest_not_found", "POST", f"{EVALUATE}/all", {"environment": "production"})


async def test_who_may(shop: FlagsHouse) -> None:
    body = {"environment": "production", "flags": ["limit"]}
    for path in (EVALUATE, f"{EVALUATE}/all"):
        sent = body if path == EVALUATE else {"environment": "production"}
        for kind in ("namespace-read", "namespace-write", "tenant-admin", "superadmin"):
            secret = await shop.mint(kind)
            await shop.call("POST", path, sent, token=secret, status=200)
            if kind != "superadmin":
                await shop.refused(403, "forbidden", "POST", path.replace("acme", "other"), sent, token=secret)
        client = await shop.mint("namespace-client")
        await shop.refused(403, "forbidden", "POST", path.replace("billing", "growth"), sent, token=client)
        await shop.refused(401, "unauthorized", "POST", path, sent, token="")


async def test_a_client_is_bound_to_its_environment(shop: FlagsHouse) -> None:
    client = await shop.mint("namespace-client")
    for body in ({}, {"environment": "production"}):
        answer = await shop.call("POST", f"{EVALUATE}/all", body, token=client, status=200)
        assert answer["environment"] == "production"
    await shop.refused(403, "forbidden", "POST", f"{EVALUATE}/all", {"environment": "staging"}, token=client)
    await shop.refused(403, "forbidden", "POST", f"{EVALUATE}/all", {"include_testing": True}, token=client)


async def test_an_environment_has_to_be_declared_public(shop: FlagsHouse) -> None:
    client = await shop.mint("namespace-client", environment="staging")
    await shop.refused(403, "forbidden", "POST", f"{EVALUATE}/all", {}, token=client)
    await push(shop, manifest({"limit": LIMIT.encode()}))  # names no environments: none is public
    client = await shop.mint("namespace-client")
    await shop.refused(403, "forbidden", "POST", f"{EVALUATE}/all", {}, token=client)


async def evaluate(house: FlagsHouse, token: str, origin: str | None, body: object = None) -> Any:
    headers = {} if origin is None else {"Origin": origin}
    return await house.ask("POST", f"{EVALUATE}/all", token=token, json=body or {}, headers=headers)


async def test_pages_that_may_and_pages_that_may_not(shop: FlagsHouse) -> None:
    client = await shop.mint("namespace-client", allowed_origins=[SHOP])
    answer = await evaluate(shop, client, SHOP)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert answer.headers["vary"] == "Origin"
    for origin in ("https://evil.example", f"{SHOP}:8443", "http://shop.example", "null", SHOP.upper()):
        answer = await evaluate(shop, client, origin)
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert (await evaluate(shop, client, None)).status_code == 200  # no browser
    everybody = await shop.mint("namespace-client", allowed_origins=["*"])
    assert (await evaluate(shop, everybody, SHOP)).headers["access-control-allow-origin"] == SHOP
    nobody = await shop.mint("namespace-client")
    assert (await evaluate(shop, nobody, SHOP)).status_code == 403


async def test_a_page_can_read_what_went_wrong(shop: FlagsHouse) -> None:
    client = await shop.mint("namespace-client", allowed_origins=[SHOP])
    answer = await evaluate(shop, client, SHOP, {"environment": "staging"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (403, SHOP)
    assert answer.json()["error"]["code"] == "forbidden"
    assert len(answer.json()["request_id"]) == 26


async def test_tokens_of_services_are_not_for_pages(shop: FlagsHouse) -> None:
    answer = await evaluate(shop, await shop.mint("namespace-read"), SHOP, {"environment": "production"})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


async def test_a_browser_asks_first(shop: FlagsHouse) -> None:
    await shop.mint("namespace-client", allowed_origins=[SHOP])
    for path in (EVALUATE, f"{EVALUATE}/all"):
        answer = await shop.ask(
            "OPTIONS", path, token="", headers={"Origin": SHOP, "Access-Control-Request-Method": "POST"}
        )
        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == SHOP
        assert answer.headers["access-control-allow-methods"] == "POST"
        assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type"
        assert answer.headers["access-control-max-age"] == "600"
        for origin, where in (("https://evil.example", path), (SHOP, path.replace("billing", "nowhere"))):
            answer = await shop.ask("OPTIONS", where, token="", headers={"Origin": origin})
            assert answer.status_code == 204
            assert "access-control-allow-origin" not in answer.headers
            assert answer.headers["vary"] == "Origin"


async def test_evaluations_are_counted(shop: FlagsHouse) -> None:
    counter = shop.assembly.metrics.counter("seamark_flags_evaluations_total")
    await shop.call("POST", f"{EVALUATE}/all", {"environment": "production"})
    assert counter.value == 2
