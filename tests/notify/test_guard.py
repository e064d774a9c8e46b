"""Who may do what under /api/v1: a real server with the whole file of a contract's server, driven over HTTP, that asks a process
which stands in for auth-o-tron, or believes a proxy."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from seamark.testing.server import ServerProcess
from tests.access.auth_o_tron import auth_o_tron, token_of
from tests.access.tokens import SECRET, signed
from tests.cli.process import run
from tests.notify.file import document, written

pytestmark = pytest.mark.slow  # servers, and patience that has to end

MARS = {"class": "od", "expver": "1", "date": "20260101", "time": "12", "step": 1, "level": 2.5, "region": "north"}
DEAD = "http://127.0.0.1:9"


def auth(**changes: Any) -> dict[str, Any]:
    return {"enabled": True, "jwt_secret": SECRET, "admin_roles": {"ocean": ["admin"]}, **changes}


def server(place: Path, content: dict[str, Any], **environment: str) -> ServerProcess:
    return ServerProcess(place, "--config", str(written(place, content)), engine="memory", environment=environment)


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Asks auth-o-tron."""
    place = tmp_path_factory.mktemp("direct")
    with (
        auth_o_tron(place) as url,
        server(place, document(auth=auth(mode="direct", auth_o_tron_url=url, timeout_ms=400))) as process,
        browsing(process) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Believes a proxy."""
    place = tmp_path_factory.mktemp("proxied")
    with (
        server(place, document(auth=auth(mode="trusted_proxy")), SEAMARK_API_KEYS="key") as process,
        browsing(process) as client,
    ):
        yield client


def browsing(process: ServerProcess) -> httpx.Client:
    """A stream ends with its connection, so none is used twice."""
    once = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=process.base_url, timeout=30, trust_env=False, limits=once)


def basic(name: str, password: str = "secret") -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def notify(client: httpx.Client, shown: str | None, event_type: str = "mars", **identifier: object) -> httpx.Response:
    body = {"event_type": event_type, "identifier": identifier or MARS, "payload": {"x": 1}}
    return client.post("/api/v1/notification", json=body, headers={"Authorization": shown} if shown is not None else {})


def replay(client: httpx.Client, shown: str | None, event_type: str = "mars", **identifier: object) -> httpx.Response:
    body = {"event_type": event_type, "identifier": identifier or {"class": "od"}, "from_id": "1"}
    return client.post("/api/v1/replay", json=body, headers={"Authorization": shown} if shown is not None else {})


def admin(client: httpx.Client, shown: str | None) -> httpx.Response:
    headers = {"Authorization": shown} if shown is not None else {}
    return client.delete("/api/v1/admin/notification/mars@999", headers=headers)


def refused(answer: httpx.Response, status: int, code: str, message: str) -> httpx.Response:
    assert answer.status_code == status, answer.text
    label = {401: "unauthorized", 403: "forbidden", 503: "service_unavailable"}[status]
    request_id = answer.headers["x-request-id"]
    assert answer.json() == {"code": code, "error": label, "message": message, "request_id": request_id}
    assert list(answer.json()) == ["code", "error", "message", "request_id"]
    return answer


# -- roles, the same in both modes


@pytest.mark.parametrize(
    ("name", "event_type", "reads", "writes"),
    [
        ("alice", "mars", 200, 403),  # ocean: reader
        ("bob", "mars", 200, 200),  # ocean: writer, reader
        ("carol", "mars", 200, 200),  # ocean: admin
        ("dave", "mars", 200, 403),  # desert, of which every role may read
        ("erin", "mars", 403, 403),  # a reader of no realm
        ("erin", "closed", 200, 403),  # whoever is known may read, and admins write
        ("carol", "closed", 200, 200),
        ("erin", "public", 200, 200),
    ],
)
def test_roles_decide(proxied: httpx.Client, name: str, event_type: str, reads: int, writes: int) -> None:
    shown = f"Bearer {token_of(name)}"
    identifier = MARS if event_type == "mars" else {"n": 1}
    wanted = {"class": "od"} if event_type == "mars" else {"n": 1}
    assert replay(proxied, shown, event_type, **wanted).status_code == reads
    assert notify(proxied, shown, event_type, **identifier).status_code == writes


def test_what_those_are_told_who_may_not(proxied: httpx.Client) -> None:
    erin = f"Bearer {token_of('erin')}"
    refused(replay(proxied, erin), 403, "FORBIDDEN", "The roles of this user do not allow reading this stream")
    refused(notify(proxied, erin), 403, "FORBIDDEN", "The roles of this user do not allow writing to this stream")
    refused(admin(proxied, erin), 403, "FORBIDDEN", "This needs the role of an admin")


def test_nobody_in_particular_may_what_is_public(proxied: httpx.Client, direct: httpx.Client) -> None:
    for client in (proxied, direct):
        assert notify(client, None, "public", n=1).status_code == 200
        assert replay(client, None, "public", n=1).status_code == 200
        area = "(0,0,0,1,1,1,0,0)"
        assert notify(client, None, "areas", date="20260101", polygon=area).status_code == 200
        for answer in (replay(client, None), notify(client, None), notify(client, None, "closed", n=1)):
            refused(answer, 401, "UNAUTHORIZED", "Authentication is required for this stream")


@pytest.mark.parametrize("header", ["", "Bearer", "Digest abc", "abc"])
def test_a_header_that_says_nothing_is_none_but_for_admins(direct: httpx.Client, header: str) -> None:
    assert notify(direct, header, "public", n=1).status_code == 200
    assert notify(direct, header).status_code == 401
    message = "The Authorization header must hold Bearer or Basic credentials"
    refused(admin(direct, header), 401, "UNAUTHORIZED", message if header else "Authorization header is required")


def test_the_challenges_of_each_mode_are_lines_of_their_own(proxied: httpx.Client, direct: httpx.Client) -> None:
    for client, challenges in ((direct, ["Bearer", "Basic"]), (proxied, ["Bearer"])):
        for answer in (admin(client, None), notify(client, None), notify(client, "Bearer wrong")):
            assert answer.status_code == 401
            assert answer.headers.get_list("www-authenticate") == challenges
    refused(admin(direct, None), 401, "UNAUTHORIZED", "Authorization header is required")


def test_behind_a_proxy_passwords_say_nothing(proxied: httpx.Client) -> None:
    assert notify(proxied, basic("carol"), "public", n=1).status_code == 200
    assert notify(proxied, basic("carol")).status_code == 401
    refused(
        admin(proxied, basic("carol")), 401, "UNAUTHORIZED", "The Authorization header must hold Bearer credentials"
    )


def test_wrong_credentials_are_told_even_where_none_are_needed(proxied: httpx.Client, direct: httpx.Client) -> None:
    expired = f"Bearer {signed({'username': 'carol', 'realm': 'ocean', 'roles': ['admin'], 'exp': 1})}"
    unsigned = f"Bearer {token_of('carol').rpartition('.')[0]}."
    for client in (proxied, direct):
        for shown in (expired, unsigned, "Bearer nobody"):
            for answer in (
                notify(client, shown, "public", n=1),
                replay(client, shown, "public", n=1),
                client.post("/api/v1/watch", content=b"{", headers={"Authorization": shown}),
                admin(client, shown),
            ):
                refused(answer, 401, "UNAUTHORIZED", "Invalid or expired token")


def test_the_order_of_checks(proxied: httpx.Client) -> None:
    erin = {"Authorization": f"Bearer {token_of('erin')}"}
    for path in ("notification", "watch", "replay"):
        url = f"/api/v1/{path}"
        assert proxied.post(url, content=b"{").json()["code"] == "INVALID_JSON"  # before who it is
        unknown = {"event_type": "unheard", "identifier": {}}
        assert proxied.post(url, json=unknown).json()["code"] == "UNKNOWN_EVENT_TYPE"
        bad_field = {"event_type": "mars", "identifier": {"class": "toolong"}, "from_id": "x"}
        assert proxied.post(url, json=bad_field).json()["code"] == "UNAUTHORIZED"
        assert proxied.post(url, json=bad_field, headers=erin).json()["code"] == "FORBIDDEN"
    point = {"event_type": "mars", "identifier": {"point": "1,1"}}
    assert proxied.post("/api/v1/notification", json=point).json()["code"] == "INVALID_NOTIFICATION_REQUEST"


def test_the_schema_is_public_whatever_is_shown(proxied: httpx.Client, direct: httpx.Client) -> None:
    for client in (proxied, direct):
        for shown in ("Bearer wrong", "Bearer 500", "", "nonsense"):
            headers = {"Authorization": shown}
            assert client.get("/api/v1/schema", headers=headers).json()["total_schemas"] == 4
            assert client.get("/api/v1/schema/mars", headers=headers).status_code == 200
            assert client.get("/api/v1/schema/unheard", headers=headers).status_code == 404


def test_admins_come_to_the_thing_itself(proxied: httpx.Client, direct: httpx.Client) -> None:
    for client, shown in ((proxied, f"Bearer {token_of('carol')}"), (direct, basic("carol"))):
        assert admin(client, shown).status_code == 404
        assert notify(client, shown, "public", n=2).status_code == 200
        wiped = client.delete("/api/v1/admin/wipe/all", headers={"Authorization": shown})
        assert wiped.json()["success"] is True
        assert notify(client, None).status_code == 401
        assert client.delete("/api/v1/admin/wipe/all").status_code == 401


# -- asking auth-o-tron


def test_passwords_and_tokens_go_to_auth_o_tron(direct: httpx.Client) -> None:
    assert replay(direct, basic("alice")).status_code == 200
    assert replay(direct, "Bearer bob.raw").status_code == 200
    assert notify(direct, "Bearer bob.token").status_code == 200
    refused(replay(direct, basic("alice", "wrong")), 401, "UNAUTHORIZED", "Invalid or expired token")


def test_what_auth_o_tron_says_is_passed_on(direct: httpx.Client) -> None:
    down = "The authentication service cannot be reached or does not answer as it should"
    for shown in ("Bearer 500", "Bearer 404", "Bearer alice.garbage", "Bearer alice.slow"):
        answer = refused(notify(direct, shown, "public", n=1), 503, "SERVICE_UNAVAILABLE", down)
        assert int(answer.headers["retry-after"]) >= 1
    refused(notify(direct, "Bearer 403"), 403, "FORBIDDEN", "The authentication service denies access")


def test_without_auth_o_tron_only_those_are_served_who_show_nothing(tmp_path: Path) -> None:
    content = document(auth=auth(mode="direct", auth_o_tron_url=DEAD))
    with server(tmp_path, content) as process, browsing(process) as client:
        assert notify(client, None, "public", n=1).status_code == 200
        assert notify(client, basic("alice"), "public", n=1).status_code == 503
        assert client.get("/ready").status_code == 200


def test_outcomes_are_counted(direct: httpx.Client) -> None:
    def counted() -> dict[str, float]:
        lines = direct.get("/metrics").text.splitlines()
        rows = [line for line in lines if line.startswith("aviso_auth_requests_total{")]
        return {
            row.split('outcome="')[1].split('"')[0]: float(row.split()[-1]) for row in rows if 'mode="direct"' in row
        }

    before = counted()
    assert set(before) == {"success", "unauthorized", "forbidden", "service_unavailable"}
    for shown in (basic("alice"), "Bearer nobody", "Bearer 403", "Bearer 500", None):
        notify(direct, shown, "public", n=1)
    assert {name: counted()[name] - before[name] for name in before} == dict.fromkeys(before, 1.0)


# -- the other surfaces


def test_users_and_keys_are_two_things(proxied: httpx.Client, direct: httpx.Client) -> None:
    user, key = {"Authorization": f"Bearer {token_of('carol')}"}, {"Authorization": "Bearer key"}
    assert proxied.get("/v0/topics", headers=key).status_code == 200
    assert proxied.get("/v0/topics", headers=user).status_code == 401
    assert notify(proxied, "Bearer key", "public", n=1).status_code == 401
    # Where there are no keys, nobody has one: asking users of one surface must not leave the others open.
    for headers in ({}, user, key):
        assert direct.get("/v0/topics", headers=headers).status_code == 401
        assert direct.get("/raw/a", headers=headers).status_code == 401
        assert direct.get("/health", headers=headers).status_code == 200


def test_without_auth_keys_govern_this_surface_too(tmp_path: Path) -> None:
    schema = {
        "a": {"topic": {"base": "a", "key_order": ["n"]}, "identifier": {"n": {"type": "IntHandler", "required": True}}}
    }
    content = {"notification_schema": schema}
    with (
        server(tmp_path, content, SEAMARK_API_KEYS="reads:read,writes:write") as process,
        browsing(process) as client,
    ):
        assert notify(client, "Bearer writes", "a", n=1).status_code == 200
        assert notify(client, "Bearer reads", "a", n=1).status_code == 403
        assert replay(client, "Bearer reads", "a", n=1).status_code == 200
        assert client.get("/api/v1/schema").status_code == 200
        assert refused(notify(client, None, "a", n=1), 401, "UNAUTHORIZED",
                       "an API key is required: send it as 'Authorization: Bearer <key>'")  # fmt: skip


# -- the whole file


def test_the_file_starts_a_server_as_it_stands(tmp_path: Path) -> None:
    """Nothing but the file says what this server is; streams speak with its numbers."""
    content = document(
        metrics={"enabled": True, "port": 0}, application={"host": "127.0.0.1", "base_url": "localhost:8000"}
    )
    content["metrics"] = {"enabled": True, "port": free_port()}
    with server(tmp_path, content) as process, browsing(process) as client:
        carol = f"Bearer {token_of('carol')}"
        for step in (1, 2):
            identifier: dict[str, Any] = {**MARS, "step": step}
            assert notify(client, carol, **identifier).status_code == 200
        with client.stream(
            "POST",
            "/api/v1/watch",
            json={"event_type": "mars", "identifier": {"class": "od", "step": {"gte": 2}}, "from_id": "1"},
            headers={"Authorization": carol},
        ) as answer:
            lines = answer.iter_lines()
            events = [json.loads(line[6:]) for line in (next(lines) for _ in range(12)) if line.startswith("data: ")]
        assert events[0]["type"] == "replay_started"
        assert events[0]["batch_size"] == 50
        found = next(event for event in events if "specversion" in event)
        assert (found["source"], found["dataschema"]) == ("localhost:8000", "localhost:8000/schema/mars")
        assert found["data"]["identifier"] == {
            "class": "od", "expver": "0001", "date": "20260101", "time": "1200", "step": "2", "level": "2.5", "region": "north",
        }  # fmt: skip
        scraped = httpx.get(f"http://127.0.0.1:{content['metrics']['port']}/metrics", trust_env=False)
        assert scraped.status_code == 200
        assert len(scraped.headers["x-request-id"]) == 36
        assert "aviso_build_info" in scraped.text
        assert client.get("/metrics").status_code == 404


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_what_cannot_start_says_so_in_one_line(tmp_path: Path) -> None:
    for content, says in (
        ({"notification_backend": {"kind": "jetstream"}}, "notification_backend.kind (file config.yaml): the engine jetstream"),
        (document(auth=None), "notification_schema.closed.auth.required (file config.yaml): auth is globally disabled"),
        (document(auth=auth(mode="trusted_proxy", jwt_secret='{"kty":"oct","k":"YQ"}')), "auth.jwt_secret"),
    ):  # fmt: skip
        written(tmp_path, content)
        done = run("serve", "--config", "config.yaml", "--port", "0", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith(f"seamark: {says}")
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "var").exists()
        judged = run("doctor", "--config", "config.yaml", "--port", "0", cwd=tmp_path)
        assert f'"check":"settings","level":"fail","found":"{says}' in judged.stdout


def test_a_key_that_nobody_reads_is_told_in_the_log(tmp_path: Path) -> None:
    content = {"watch_endpoint": {"replay_batchsize": 5}}
    with server(tmp_path, content) as process:
        rows = [json.loads(line) for line in process.stderr.read_text().splitlines() if line.startswith("{")]
    assert [row["key"] for row in rows if row["event"] == "setting.ignored"] == ["watch_endpoint.replay_batchsize"]


@pytest.mark.parametrize(("strict", "told"), [(False, ["thing"]), (True, None)])
def test_a_schema_that_is_not_strict_is_told_in_the_log(tmp_path: Path, strict: bool, told: list[str] | None) -> None:
    thing = {
        "topic": {"base": "thing", "key_order": ["n"]},
        "identifier": {"n": {"type": "IntHandler", "required": True}},
    }
    with server(tmp_path, {"notification_schema": {"thing": thing}, "notification_schema_strict": strict}) as process:
        rows = [json.loads(line) for line in process.stderr.read_text().splitlines() if line.startswith("{")]
    assert [row["event_types"] for row in rows if row["event"] == "schema.not_strict"] == ([told] if told else [])


def test_config_shows_what_the_file_and_the_variables_say(tmp_path: Path) -> None:
    file = written(tmp_path, yaml.safe_dump(document()))
    done = run("config", "--config", str(file), cwd=tmp_path, AVISOSERVER_WATCH_ENDPOINT__REPLAY_BATCH_SIZE="9")
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert (rows["port"]["value"], rows["port"]["source"], rows["port"]["where"]) == (8000, "file", str(file))
    size = rows["watch_endpoint.replay_batch_size"]
    assert (size["value"], size["source"]) == (9, "environment")
    assert size["where"] == "AVISOSERVER_WATCH_ENDPOINT__REPLAY_BATCH_SIZE"
    assert rows["watch_endpoint.sse_heartbeat_interval_sec"]["value"] == 7
    assert rows["ecpds.cache_ttl_seconds"] == {
        "name": "ecpds.cache_ttl_seconds",
        "value": 300,
        "source": "default",
        "where": "",
    }
    assert rows["auth.jwt_secret"]["value"] == "********"
    assert rows["auth.admin_roles"]["source"] == rows["notification_schema"]["source"] == "file"
    assert SECRET not in done.stdout
