"""The surface as part of a server: whose paths are whose, and what is there after a crash. Over real connections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from seamark import limits
from seamark.flags.surface import OPERATIONS, REALMS
from seamark.manifest.archive import pack, unpack
from seamark.testing.server import ServerProcess
from tests.flags.house import ACME, FlagsHouse
from tests.flags.test_evaluate_routes import FILES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    place = tmp_path_factory.mktemp("flags")
    with ServerProcess(place, "--superadmin-token-file", str(place / "token"), "--log-level", "debug") as process:
        yield process


@pytest.fixture
def root(server: ServerProcess) -> str:
    return (server.data.parent / "token").read_text().strip()


@pytest.fixture
def client(server: ServerProcess, root: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {root}"}
    with httpx.Client(base_url=f"{server.base_url}/api/v1", headers=headers, timeout=30) as client:
        yield client


def test_a_server_makes_itself_known_by_its_file(client: httpx.Client) -> None:
    answer = client.get("/tenants")
    assert answer.status_code == 200
    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", answer.json()["request_id"])


@pytest.mark.parametrize("path", [*REALMS, *(f"{realm}/x/y/z" for realm in REALMS)])
def test_what_is_not_there_is_told_in_the_words_of_the_surface(client: httpx.Client, path: str) -> None:
    answer = client.put(path.removeprefix("/api/v1"))
    assert answer.status_code in {404, 405}
    assert list(answer.json()) == ["error", "request_id"]
    assert answer.json()["error"]["code"] in {"not_found", "method_not_allowed"}


def test_neighbours_keep_their_own_words(client: httpx.Client, server: ServerProcess) -> None:
    assert client.post("/notification", content=b"{").json()["code"] == "INVALID_JSON"
    assert client.get("/schema").status_code == 200
    stray = client.get("/tenantsx")
    assert (stray.status_code, stray.text, len(stray.headers["x-request-id"])) == (404, "", 36)  # nobody's, so notify's
    assert httpx.post(f"{server.base_url}/v0/topics/t", json={"records": [{"data": 1}]}).status_code == 201


def test_every_row_wants_a_token_and_says_which(client: httpx.Client, server: ServerProcess) -> None:
    document = httpx.get(f"{server.base_url}/openapi.json").json()
    for (method, path), (_, permission, _) in OPERATIONS.items():
        operation = document["paths"][path][method.lower()]
        assert operation["security"] == ([{"bearer": [permission]}] if permission else [])
        if permission:
            url = server.base_url + re.sub(r"\{[a-z]+\}", "x", path)
            answer = httpx.request(method, url)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), path


def test_head_is_get_without_a_body(client: httpx.Client) -> None:
    answer = client.head("/tenants")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


def test_no_secret_is_in_the_log_of_a_server(client: httpx.Client, server: ServerProcess, root: str) -> None:
    client.post("/tenants", json={**ACME, "slug": "logged"})
    secret = client.post("/tokens", json={"type": "tenant-admin", "name": "x", "tenant": "logged"}).json()["secret"]
    assert client.get("/tenants", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    said = server.stderr.read_text()
    assert "flags.changed" in said
    assert root not in said
    assert "exd_" not in said


def everything(client: httpx.Client) -> list[Any]:
    lists = ("tenants", "namespaces", "tokens", "audit")
    found = [client.get(f"/{name}").json() for name in lists]
    for answer in found:
        del answer["request_id"]
    return found


@pytest.mark.slow
def test_a_killed_server_has_lost_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--superadmin-token-file", str(tmp_path / "token")) as server:
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}"}
        with httpx.Client(base_url=f"{server.base_url}/api/v1", headers=headers) as client:
            client.post("/tenants", json=ACME)
            client.post("/tenants/acme/namespaces", json={"slug": "billing"})
            grant = {"type": "namespace-read", "name": "a", "tenant": "acme", "namespace": "billing"}
            kept, gone = (client.post("/tokens", json=grant).json() for _ in range(2))
            client.delete(f"/tokens/{gone['token']['id']}")
            before = everything(client)
        server.kill()
        server.start()
        with httpx.Client(base_url=f"{server.base_url}/api/v1", headers=headers) as client:
            assert everything(client) == before
            path = "/tenants/acme/namespaces/billing"
            for made, status in ((kept, 200), (gone, 401)):
                answer = client.get(path, headers={"Authorization": f"Bearer {made['secret']}"})
                assert answer.status_code == status


async def test_a_server_is_not_ready_before_its_tokens_are_known() -> None:
    house = FlagsHouse()
    assert "tenants and tokens are being loaded" in house.assembly.readiness.reasons()
    answer = await house.ask("GET", "/tenants", token="exd_admin_x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    await house.close()


async def test_what_there_is_is_measured(house: FlagsHouse) -> None:
    text = (await house.client.get("/metrics")).text
    for name, value in (("tenants", 1), ("namespaces", 1), ("tokens", 1)):
        assert f"seamark_flags_{name} {value}.0" in text


def test_manifests_over_real_connections(client: httpx.Client, server: ServerProcess) -> None:
    client.post("/tenants", json={**ACME, "slug": "real"}).raise_for_status()
    client.post("/tenants/real/namespaces", json={"slug": "billing"}).raise_for_status()
    base = "/tenants/real/namespaces/billing"
    pushed = client.put(f"{base}/manifest", headers={"If-Version": "0"}, files={"archive": pack(FILES)})
    assert pushed.json()["version"] == 1
    fetched = client.get(f"{base}/manifest")
    assert unpack(fetched.content).files == FILES
    same = client.get(f"{base}/manifest", headers={"If-None-Match": fetched.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert client.head(f"{base}/manifest").headers["content-length"] == str(len(fetched.content))
    asked = client.post(f"{base}/evaluate", json={"environment": "production", "flags": ["limit"]}).json()
    assert asked["results"]["limit"]["value"] == 3


def test_a_browser_over_real_connections(client: httpx.Client, server: ServerProcess) -> None:
    client.post("/tenants", json={**ACME, "slug": "pages"}).raise_for_status()
    client.post("/tenants/pages/namespaces", json={"slug": "billing"}).raise_for_status()
    base = "/tenants/pages/namespaces/billing"
    client.put(f"{base}/manifest", files={"archive": pack(FILES)}).raise_for_status()
    place = {"tenant": "pages", "namespace": "billing", "environment": "production"}
    grant = {"type": "namespace-client", "name": "shop", **place, "allowed_origins": ["https://shop.example"]}
    secret = client.post("/tokens", json=grant).json()["secret"]
    url, origin = f"{server.base_url}/api/v1{base}/evaluate/all", {"Origin": "https://shop.example"}
    asked = httpx.options(url, headers={**origin, "Access-Control-Request-Method": "POST"})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, "https://shop.example")
    answer = httpx.post(url, json={}, headers={**origin, "Authorization": f"Bearer {secret}"})
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://shop.example")
    refused = httpx.post(url, json={}, headers={"Origin": "https://evil.example", "Authorization": f"Bearer {secret}"})
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (403, False)


@pytest.mark.parametrize("chunked", [False, True])
def test_an_archive_that_is_too_large_over_real_connections(client: httpx.Client, chunked: bool) -> None:
    content = b"x" * (limits.ARCHIVE_BYTES_MAX + limits.MIB)
    body = iter([content[at : at + limits.MIB] for at in range(0, len(content), limits.MIB)]) if chunked else content
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = client.put("/tenants/x/namespaces/y/manifest", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "archive_too_large")
