"""Topics as a client sees them, on our data plane; test_diff.py and the tests in this process run as plain ASGI too."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import httpx
import pytest

from seamark.testing.server import SERVE
from seamark.topics.surface import OPERATIONS

pytestmark = pytest.mark.parametrize("server", [SERVE], ids=["our server"], indirect=True, scope="module")
CONFIG_KEYS = [
    "type", "ttl_ms", "cap_records", "cap_bytes", "discard", "durable", "durability", "priority", "auto_priority",
    "auto_create", "idempotency_window_ms", "dedupe_node", "lease_ms", "claim_jitter_ms", "max_deliveries", "dead_letter",
    "leases_durable",
]  # fmt: skip
JSON = {"Content-Type": "application/json"}


def write(client: httpx.Client, name: str, *data: object, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": item} for item in data], **more})
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json()
    return body


def refusal(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) <= {"code", "message", "detail"}
    return answer.status_code, body["error"]["code"]


def put(client: httpx.Client, name: str, **config: Any) -> Any:
    answer = client.put(f"/v0/topics/{name}", json=config)
    assert answer.is_success, answer.text
    return answer.json()


# -- making and changing


def test_a_topic_is_made_with_all_defaults_by_an_empty_body(client: httpx.Client, name: str) -> None:
    answer = client.put(f"/v0/topics/{name}")
    assert answer.status_code == 201
    body = answer.json()
    assert list(body) == ["topic", "created", "config", "performance"]
    assert (body["topic"], body["created"]) == (name, True)
    assert body["config"] == {
        "type": "log", "ttl_ms": 0, "cap_records": 0, "cap_bytes": 0, "discard": "old", "durable": False,
        "durability": "disk", "priority": None, "auto_priority": True, "auto_create": True,
        "idempotency_window_ms": 120_000, "dedupe_node": True, "lease_ms": 30_000, "claim_jitter_ms": 0,
        "max_deliveries": 0, "dead_letter": None, "leases_durable": False,
    }  # fmt: skip
    assert list(body["config"]) == CONFIG_KEYS
    again = client.put(f"/v0/topics/{name}", json={})
    assert (again.status_code, again.json()["created"]) == (200, False)


def test_a_configuration_is_replaced_not_merged(client: httpx.Client, name: str) -> None:
    put(client, name, cap_records=9, priority=-5000)
    assert client.get(f"/v0/topics/{name}").json()["config"]["priority"] == -5000
    assert put(client, name, ttl_ms=7)["config"]["cap_records"] == 0
    config = client.get(f"/v0/topics/{name}").json()["config"]
    assert (config["ttl_ms"], config["cap_records"], config["priority"]) == (7, 0, None)


@pytest.mark.parametrize(
    ("given", "durable", "durability"),
    [
        ({}, False, "disk"),
        ({"durable": True}, True, "fsync"),
        ({"durable": False}, False, "disk"),
        ({"durable": True, "durability": "disk"}, False, "disk"),
        ({"durable": False, "durability": "fsync"}, True, "fsync"),
        ({"durability": "memory"}, False, "memory"),
        ({"durability": "ephemeral"}, False, "ephemeral"),
        ({"durable": True, "durability": None}, True, "fsync"),
    ],
)
def test_durable_and_durability_agree(
    client: httpx.Client, name: str, given: dict[str, Any], durable: bool, durability: str
) -> None:
    config = put(client, name, **given)["config"]
    assert (config["durable"], config["durability"]) == (durable, durability)
    receipt = write(client, name, 1)["performance"]
    assert list(receipt) == ["server_total_ms", "wal_append_ms", "fsync_ms"]
    assert (receipt["fsync_ms"] > 0) is durable
    assert client.get("/v0/topics", params={"prefix": name}).json()["topics"][0]["durable"] is durable


def test_some_numbers_are_moved_into_their_range_and_the_rest_is_echoed(client: httpx.Client, name: str) -> None:
    most = 2**64 - 1
    low = put(client, name, lease_ms=0, claim_jitter_ms=4_999)["config"]
    assert (low["lease_ms"], low["claim_jitter_ms"]) == (100, 4_999)
    wide = {
        "ttl_ms": most,
        "cap_records": most,
        "cap_bytes": most,
        "idempotency_window_ms": most,
        "max_deliveries": most,
    }
    high = put(client, name, lease_ms=most, claim_jitter_ms=most, **wide)["config"]
    assert (high["lease_ms"], high["claim_jitter_ms"]) == (86_400_000, 5_000)
    assert {key: high[key] for key in wide} == wide
    assert write(client, name, 1, idempotency_key="k")["first_seq"] == 1
    assert write(client, name, 1, idempotency_key="k")["deduped"] is True
    assert client.get(f"/v0/topics/{name}").json()["config"] == high


def test_a_topic_keeps_its_type(client: httpx.Client, name: str) -> None:
    put(client, name, type="queue")
    for config in ({}, {"type": "log"}):
        answer = client.put(f"/v0/topics/{name}", json=config)
        assert refusal(answer) == (409, "topic_exists_incompatible")
        assert answer.json()["error"]["detail"] == {"topic": name, "existing_type": "queue", "requested_type": "log"}
    assert put(client, name, type="queue", lease_ms=5_000)["config"]["lease_ms"] == 5_000
    state = client.get(f"/v0/topics/{name}").json()
    assert state["type"] == "queue"
    assert set(state["queue"]) == {"ready", "in_flight", "dead_lettered"}


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"null", b'"x"', b"1", b'{"ttl_ms":"1"}', b'{"ttl_ms":-1}', b'{"ttl_ms":1.0}', b'{"ttl_ms":true}',
        b'{"ttl_ms":null}', b'{"ttl_ms":18446744073709551616}', b'{"durable":1}', b'{"durability":"Disk"}', b'{"discard":"new"}',
        b'{"type":"stream"}', b'{"priority":2147483648}', b'{"priority":"1"}', b'{"priority":1.5}', b'{"dead_letter":""}',
        b'{"dead_letter":"-x"}', b'{"dead_letter":1}', b'{"type":"queue","dead_letter":"never-made"}', b'{"auto_create":0}',
        b'{"ttl_ms":NaN}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
    ],
)  # fmt: skip
def test_bad_configurations_make_nothing(client: httpx.Client, body: bytes) -> None:
    answer = client.put("/v0/topics/never-made", content=body, headers=JSON)
    assert refusal(answer) == (400, "invalid_request")
    assert client.get("/v0/topics/never-made").status_code == 404


@pytest.mark.parametrize("bad", ["-a", ".a", ":a", "_a", "a%20b", "a%3Eb", "%C3%BC", "a%00", "a" * 256, "a*", "a%2Fb"])
def test_a_bad_name_is_refused_where_it_would_be_made_and_absent_elsewhere(client: httpx.Client, bad: str) -> None:
    path = f"/v0/topics/{bad}"
    records = {"records": [{"data": 1}]}
    assert refusal(client.put(path)) == (400, "invalid_request")
    assert refusal(client.post(path, json=records)) == (400, "invalid_request")
    assert refusal(client.post(path, json={**records, "create": False})) == (404, "topic_not_found")
    assert refusal(client.get(path)) == (404, "topic_not_found")
    assert refusal(client.post(f"{path}/diff")) == (404, "topic_not_found")
    assert refusal(client.post(f"{path}/delete", json={"before_seq": 1})) == (404, "topic_not_found")
    assert client.delete(path).json()["deleted"] is False


@pytest.mark.parametrize("good", ["a", "0", "a.b:c_d-e", "A" * 255, "9:_"])
def test_good_names(client: httpx.Client, good: str) -> None:
    assert client.put(f"/v0/topics/{good}").is_success
    assert client.get(f"/v0/topics/{good}").json()["topic"] == good


def test_names_are_percent_decoded_and_case_sensitive(client: httpx.Client, name: str) -> None:
    write(client, f"{name}%3Ax", 1)
    assert client.get(f"/v0/topics/{name}:x").json()["topic"] == f"{name}:x"
    assert client.get(f"/v0/topics/{name}:X").status_code == 404


# -- looking


def test_a_fresh_topic(client: httpx.Client, name: str) -> None:
    put(client, name)
    state = client.get(f"/v0/topics/{name}", params={"touch": "false"}).json()
    assert list(state) == [
        "topic", "type", "head_seq", "earliest_seq", "next_seq", "count", "bytes", "config", "effective_priority",
        "last_write_ts", "last_read_ts", "performance",
    ]  # fmt: skip
    fresh = {"head_seq": 0, "earliest_seq": 1, "next_seq": 1, "count": 0, "bytes": 0, "effective_priority": 0}
    assert {key: state[key] for key in fresh} == fresh
    assert (state["last_write_ts"], state["last_read_ts"]) == (None, None)
    assert state["performance"]["server_total_ms"] >= 0


def test_bytes_are_those_of_data_and_meta(client: httpx.Client, name: str) -> None:
    client.post(f"/v0/topics/{name}", json={"records": [{"data": "ab", "meta": {"k": 1}, "tag": "t", "node": "n"}]})
    assert client.get(f"/v0/topics/{name}").json()["bytes"] == len('"ab"') + len('{"k":1}')


def test_the_list_pages_by_name(client: httpx.Client, name: str) -> None:
    for letter in "cab":
        write(client, f"{name}-{letter}", 1)
    query: dict[str, str] = {"prefix": f"{name}-", "page_size": "2"}
    first = client.get("/v0/topics", params=query).json()
    assert list(first) == ["topics", "next_cursor", "performance"]
    assert [topic["topic"] for topic in first["topics"]] == [f"{name}-a", f"{name}-b"]
    assert list(first["topics"][0]) == [
        "topic", "head_seq", "earliest_seq", "count", "bytes", "durable", "effective_priority",
    ]  # fmt: skip
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", first["next_cursor"])
    rest = client.get("/v0/topics", params={**query, "cursor": first["next_cursor"]}).json()
    assert [topic["topic"] for topic in rest["topics"]] == [f"{name}-c"]
    assert "next_cursor" not in rest
    assert "next_cursor" not in client.get("/v0/topics", params={**query, "page_size": "3"}).json()


def test_cursors_of_both_alphabets_padded_or_not(client: httpx.Client, name: str) -> None:
    write(client, f"{name}-b", 1)
    text = json.dumps({"after": f"{name}-a"}).encode()
    for cursor in (base64.b64encode(text), base64.urlsafe_b64encode(text).rstrip(b"="), b""):
        listed = client.get("/v0/topics", params={"prefix": f"{name}-", "cursor": cursor.decode()}).json()
        assert [topic["topic"] for topic in listed["topics"]] == [f"{name}-b"]


@pytest.mark.parametrize("cursor", ["!", "e30=", "WzFd", "eyJhZnRlciI6MX0=", "a"])
def test_a_cursor_that_is_none(client: httpx.Client, cursor: str) -> None:
    assert refusal(client.get("/v0/topics", params={"cursor": cursor})) == (400, "invalid_request")


@pytest.mark.parametrize(("given", "listed"), [("0", 1), ("1", 1), ("99999999", 2), ("", 2)])
def test_page_sizes_are_moved_into_their_range(client: httpx.Client, name: str, given: str, listed: int) -> None:
    for letter in "ab":
        write(client, f"sized-{letter}", 1)
    query = {"prefix": "sized-", "page_size": given, "unknown": "parameter"}
    assert len(client.get("/v0/topics", params=query).json()["topics"]) == listed
    assert refusal(client.get("/v0/topics", params={"page_size": "many"})) == (400, "invalid_request")


# -- removing


def test_a_removed_topic_begins_anew(client: httpx.Client, name: str) -> None:
    write(client, name, 1, 2)
    gone = client.delete(f"/v0/topics/{name}")
    assert gone.status_code == 200
    body = gone.json()
    assert list(body) == ["topic", "deleted", "routers_removed", "performance"]
    assert (body["topic"], body["deleted"], body["routers_removed"]) == (name, True, [])
    again = client.delete(f"/v0/topics/{name}")
    assert (again.status_code, again.json()["deleted"]) == (200, False)
    assert refusal(client.get(f"/v0/topics/{name}")) == (404, "topic_not_found")
    assert write(client, name, 3)["seqs"] == [1]


def test_only_an_empty_topic_is_removed_when_asked_so(client: httpx.Client, name: str) -> None:
    write(client, name, 1, 2)
    answer = client.delete(f"/v0/topics/{name}", params={"if_empty": "true"})
    assert refusal(answer) == (409, "topic_not_empty")
    assert answer.json()["error"]["detail"] == {"topic": name, "count": 2}
    client.post(f"/v0/topics/{name}/delete", json={"before_seq": 99})
    assert client.delete(f"/v0/topics/{name}", params={"if_empty": "1"}).json()["deleted"] is True
    assert client.delete(f"/v0/topics/{name}", params={"if_empty": "true"}).json()["deleted"] is False
    write(client, name, 1)
    assert client.delete(f"/v0/topics/{name}", params={"if_empty": "perhaps"}).json()["deleted"] is True


# -- deleting records


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"before_seq": 0}, [1, 2, 3, 4, 5]),
        ({"before_seq": 3}, [3, 4, 5]),
        ({"before_seq": 2**64 - 1}, []),
        ({"match": ["tag", "Eq", "a1"]}, [2, 3, 4, 5]),
        ({"match": ["tag", "Eq", "a*"]}, [1, 2, 4, 5]),
        ({"match": ["tag", "Glob", "a*"]}, [4, 5]),
        ({"match": ["tag", "Glob", "a**"]}, [1, 2, 4, 5]),
        ({"match": ["tag", "Glob", "*"]}, [5]),
        ({"match": "a1"}, [2, 3, 4, 5]),
        ({"match": "a*"}, [4, 5]),
        ({"match": "*"}, [5]),
        ({"match": "none"}, [1, 2, 3, 4, 5]),
        ({"before_seq": 2, "match": "a*"}, [2, 3, 4, 5]),
        ({"before_seq": 5, "match": None, "more": 1}, [5]),
    ],
)
def test_which_records_are_deleted(client: httpx.Client, name: str, body: dict[str, Any], left: list[int]) -> None:
    tags = ["a1", "a2", "a*", "b", None]
    client.post(f"/v0/topics/{name}", json={"records": [{"data": 1, "tag": tag} for tag in tags]})
    answer = client.post(f"/v0/topics/{name}/delete", json=body)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert list(told) == ["topic", "deleted", "earliest_seq", "head_seq", "count", "bytes", "performance"]
    assert (told["deleted"], told["count"], told["bytes"]) == (5 - len(left), len(left), len(left))
    assert (told["earliest_seq"], told["head_seq"]) == (min([*left, 6]), 5)
    diff = client.post(f"/v0/topics/{name}/diff", json={}).json()
    assert ([record["$seq"] for record in diff["records"]], diff["tombstone"]) == (left, None)
    assert diff["next_from_seq"] == 5


@pytest.mark.parametrize(
    "body",
    [
        b"{}", b'{"before_seq":null,"match":null}', b'{"before_seq":"1"}', b'{"before_seq":-1}', b'{"before_seq":1.0}',
        b'{"before_seq":18446744073709551616}', b'{"match":1}', b'{"match":[]}', b'{"match":["tag","Eq"]}', b'{"match":["node","Eq","a"]}',
        b'{"match":["tag","eq","a"]}', b'{"match":["tag","Glob","a"]}', b'{"match":["tag","Glob","a*b"]}', b'{"match":["tag","Glob",""]}',
        b'{"match":["tag","Eq",1]}', b'{"match":["tag","Eq","a","b"]}', b'{"match":{"tag":"a"}}', b"[]", b"{",
    ],
)  # fmt: skip
def test_deletions_that_say_nothing(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v0/topics/never-made/delete", content=body, headers=JSON)
    assert refusal(answer) == (400, "invalid_request")


# -- what goes for all routes


@pytest.mark.parametrize(
    ("method", "path"), [("POST", ""), ("POST", "/delete"), ("PUT", ""), ("POST", "/diff")]
)  # fmt: skip
@pytest.mark.parametrize("media", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_a_body_that_is_not_said_to_be_json_is_not_looked_at(
    client: httpx.Client, method: str, path: str, media: str
) -> None:
    headers = {"Content-Type": media} if media else {}
    answer = client.request(method, f"/v0/topics/never-made{path}", content=b"{", headers=headers)
    assert refusal(answer) == (415, "unsupported_media_type")
    for good in ("application/json; charset=utf-8", "Application/JSON"):
        answer = client.request(method, f"/v0/topics/never-made{path}", content=b"{", headers={"Content-Type": good})
        assert refusal(answer) == (400, "invalid_request")


@pytest.mark.parametrize(("path", "media", "status"), [("", "", 415), ("", "application/json", 400), ("/delete", "", 415), ("/delete", "application/json", 400)])  # fmt: skip
def test_only_where_there_are_defaults_may_the_body_be_empty(
    client: httpx.Client, path: str, media: str, status: int
) -> None:
    headers = {"Content-Type": media} if media else {}
    assert client.post(f"/v0/topics/never-made{path}", headers=headers).status_code == status
    assert client.post("/v0/topics/never-made/diff", headers=headers).status_code == 404


@pytest.mark.parametrize("method", ["PATCH", "OPTIONS"])
def test_other_methods(client: httpx.Client, method: str) -> None:
    answer = client.request(method, "/v0/topics/x")
    if method == "PATCH":
        assert refusal(answer) == (405, "method_not_allowed")
        assert "PUT" in answer.headers["allow"]


@pytest.mark.parametrize(("method", "path"), [row for row in OPERATIONS if row[0] in {"GET", "DELETE"}])
def test_a_body_that_nobody_asked_for_is_passed_over(client: httpx.Client, method: str, path: str) -> None:
    """Some clients send one with every request."""
    path = re.sub(r"\{[a-z]+\}", "never-made", path)
    answer = client.request(method, path, content=b"{}", headers={**JSON, "Accept": "application/json"})
    assert answer.status_code in {200, 404, 406}


def test_every_route_is_documented(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"get"} == set(paths["/v0/topics"])
    assert {"get", "put", "post", "delete"} == set(paths["/v0/topics/{topic}"])
    for path in ("/v0/topics", "/v0/topics/{topic}", "/v0/topics/{topic}/diff", "/v0/topics/{topic}/delete"):
        for operation in paths[path].values():
            assert operation["responses"]["200"]["content"]["application/json"]["example"]
