"""Writing as a client sees it, on our data plane; test_diff.py and the tests in this process run as plain ASGI too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from seamark import limits
from seamark.testing.server import SERVE, ServerProcess
from tests.topics.test_routes import JSON, put, refusal, write

pytestmark = pytest.mark.parametrize("server", [SERVE], ids=["our server"], indirect=True, scope="module")
MOST = limits.RECORDS_PER_APPEND_MAX


def diff(client: httpx.Client, name: str, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/v0/topics/{name}/diff", json=more)
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_write_makes_the_topic_and_numbers_its_records(client: httpx.Client, name: str) -> None:
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}, {"data": 2}]})
    assert answer.status_code == 201
    body = answer.json()
    assert list(body) == [
        "topic", "first_seq", "last_seq", "seqs", "head_seq", "count", "created", "deduped", "performance",
    ]  # fmt: skip
    performance = body.pop("performance")
    assert body == {
        "topic": name, "first_seq": 1, "last_seq": 2, "seqs": [1, 2], "head_seq": 2, "count": 2, "created": True,
        "deduped": False,
    }  # fmt: skip
    assert list(performance) == ["server_total_ms", "wal_append_ms", "fsync_ms"]
    assert all(isinstance(value, float) for value in performance.values())
    second = client.post(f"/v0/topics/{name}", json={"records": [{"data": 3}]})
    assert (second.status_code, second.json()["created"], second.json()["seqs"]) == (200, False, [3])


@pytest.mark.parametrize(
    ("given", "listed"), [("true", True), ("1", True), ("false", False), ("0", False), ("no", True)]
)
def test_seqs_are_listed_unless_asked_not_to(client: httpx.Client, name: str, given: str, listed: bool) -> None:
    records = [{"data": 1}] * 3
    answer = client.post(f"/v0/topics/{name}?return_seqs={given}", json={"records": records, "return_seqs": not listed})
    assert answer.json().get("seqs") == ([1, 2, 3] if listed else None)
    assert answer.json()["last_seq"] == 3


def test_payloads_and_meta_come_back_as_they_were_sent(client: httpx.Client, name: str) -> None:
    data = '{ "b": 1.0,  "a":12345678901234567890123, "a":2, "ü": "\\u00fc\u2028" }'
    meta = '{"z": 1e2 ,"a":[]}'
    body = f'{{"records":[{{"data":{data},"meta":{meta},"tag":"t","node":"n"}},{{"data":null}}]}}'
    assert client.post(f"/v0/topics/{name}", content=body.encode(), headers=JSON).status_code == 201
    answer = client.post(f"/v0/topics/{name}/diff", json={"include_tags": True})
    assert data.encode() in answer.content
    assert meta.encode() in answer.content
    first, second = answer.json()["records"]
    assert list(first) == ["$seq", "$ts", "$node", "$tag", "data", "meta"]
    assert (first["$seq"], first["$tag"], first["$node"]) == (1, "t", "n")
    assert list(second) == ["$seq", "$ts", "data"]
    assert second["data"] is None
    assert first["$ts"] == second["$ts"]


@pytest.mark.parametrize(
    "data", ["null", "true", "0", "-1.5e-7", '""', "[]", "{}", '"\\u0000"', "18446744073709551616"]
)
def test_any_json_is_data(client: httpx.Client, name: str, data: str) -> None:
    body = f'{{"records":[{{"data":{data}}}]}}'.encode()
    assert client.post(f"/v0/topics/{name}", content=body, headers=JSON).status_code == 201
    assert f'"data":{data}}}'.encode() in client.post(f"/v0/topics/{name}/diff").content


def test_the_batch_s_node_is_for_records_without_one(client: httpx.Client, name: str) -> None:
    records = [{"data": 1}, {"data": 2, "node": "own"}, {"data": 3, "node": None}]
    client.post(f"/v0/topics/{name}", json={"records": records, "node": "batch"})
    assert [record.get("$node") for record in diff(client, name)["records"]] == ["batch", "own", "batch"]


def test_no_meta_and_null_are_the_same_and_any_json_is_meta(client: httpx.Client, name: str) -> None:
    metas: tuple[object, ...] = (None, 1, [], "x", {})
    records = [{"data": 1, "meta": meta} for meta in metas]
    client.post(f"/v0/topics/{name}", json={"records": records})
    assert [record.get("meta", "absent") for record in diff(client, name)["records"]] == ["absent", 1, [], "x", {}]


def test_unknown_fields_are_passed_over(client: httpx.Client, name: str) -> None:
    body = {"records": [{"data": 1, "more": 1}], "more": {}, "disable_backpressure": True}
    assert client.post(f"/v0/topics/{name}?more=1", json=body).status_code == 201


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_request"),
        (b"[]", "invalid_request"),
        (b"null", "invalid_request"),
        (b"{}", "invalid_request"),
        (b'{"records":[]}', "invalid_request"),
        (b'{"records":{}}', "invalid_request"),
        (b'{"records":[{}]}', "invalid_request"),
        (b'{"records":[1]}', "invalid_request"),
        (b'{"records":[{"tag":"t"}]}', "invalid_request"),
        (b'{"records":[{"data":NaN}]}', "invalid_request"),
        (b'{"records":[{"data":Infinity}]}', "invalid_request"),
        (b'{"records":[{"data":"\xff"}]}', "invalid_request"),
        (b'{"records":[{"data":"\\ud800"}]}', "invalid_request"),
        (b'{"records":[{"data":1,"tag":"\\ud800"}]}', "invalid_request"),
        (b'{"records":[{"data":1,"tag":1}]}', "invalid_request"),
        (b'{"records":[{"data":1,"node":[]}]}', "invalid_request"),
        (b'{"records":[{"data":1}],"node":1}', "invalid_request"),
        (b'{"records":[{"data":1}],"create":1}', "invalid_request"),
        (b'{"records":[{"data":1}],"config":[]}', "invalid_request"),
        (b'{"records":[{"data":1}],"config":{"ttl_ms":"1"}}', "invalid_request"),
        (b'{"records":[{"data":1}],"config":{"dead_letter":"-"}}', "invalid_request"),
        (b'{"records":[{"data":1}],"idempotency_key":1}', "invalid_request"),
        (b'{"records":[{"data":1}],"idempotency_key":""}', "invalid_request"),
        (b'{"records":[{"data":1}],"idempotency_key":"' + b"k" * 257 + b'"}', "invalid_request"),
        (b'{"records":[{"data":' + b"[" * 500 + b"]" * 500 + b"}]}", "invalid_request"),
        (b'{"records":[{"data":1,"tag":"' + b"t" * 257 + b'"}]}', "invalid_request"),
        (b'{"records":[{"data":1,"node":"' + b"n" * 129 + b'"}]}', "invalid_request"),
        (b'{"records":[{"data":1}],"node":"' + b"n" * 129 + b'"}', "invalid_request"),
        (b'{"records":[{"data":1,"meta":"' + b"m" * 16 * 1024 + b'"}]}', "invalid_request"),
        (b'{"records":[{"data":1,"meta":{' + b",".join(b'"k%d":1' % n for n in range(65)) + b"}}]}", "invalid_request"),
        (b'{"records":[{"data":"' + b"x" * limits.RECORD_BYTES_MAX + b'"}]}', "record_too_large"),
        (b'{"records":[' + b",".join([b'{"data":1}'] * (MOST + 1)) + b"]}", "batch_too_large"),
        (b'{"records":[' + b",".join([b'{"data":{}}'] * 1_000_000) + b"]}", "batch_too_large"),
    ],
    ids=lambda value: value[:60] if isinstance(value, bytes) else value,
)
def test_bad_writes_change_nothing(client: httpx.Client, body: bytes, code: str) -> None:
    answer = client.post("/v0/topics/never-made", content=body, headers=JSON)
    assert refusal(answer) == (400, code)
    assert answer.json()["error"]["message"]
    assert client.get("/v0/topics/never-made").status_code == 404


@pytest.mark.parametrize(
    "record",
    [
        b'{"data":"' + b"x" * (limits.RECORD_BYTES_MAX - 2) + b'"}',
        b'{"data":1,"tag":"' + b"t" * 256 + b'","node":"' + b"n" * 128 + b'"}',
        b'{"data":1,"meta":"' + b"m" * (16 * 1024 - 2) + b'"}',
        b'{"data":1,"meta":{' + b",".join(b'"k%d":1' % n for n in range(64)) + b"}}",
        b'{"data":1,"meta":[' + b",".join([b"11111"] * 999) + b"]}",
        b'{"data":1,"tag":"","node":""}',
    ],
    ids=["data", "tag and node", "meta", "meta keys", "meta list", "empty texts"],
)
def test_the_largest_that_fits(client: httpx.Client, name: str, record: bytes) -> None:
    body = b'{"records":[%b],"idempotency_key":"%b"}' % (record, b"k" * 256)
    assert client.post(f"/v0/topics/{name}", content=body, headers=JSON).status_code == 201


def test_the_most_records(client: httpx.Client, name: str) -> None:
    body = b'{"records":[' + b",".join([b'{"data":1}'] * MOST) + b"]}"
    answer = client.post(f"/v0/topics/{name}", content=body, headers=JSON).json()
    assert answer["seqs"] == list(range(1, MOST + 1))
    nested = b'{"records":[{"data":[' + b",".join([b'{"data":{}}'] * 20_000) + b"]}]}"
    assert client.post(f"/v0/topics/{name}", content=nested, headers=JSON).json()["last_seq"] == MOST + 1


# -- making the topic or not


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 201), ({"create": True}, 201), ({"create": False}, 404), ({"create": None}, 201), ({"config": {}}, 201),
        ({"config": None}, 201), ({"config": {"auto_create": False}}, 404), ({"config": {"auto_create": False}, "create": True}, 201),
        ({"config": {"auto_create": True}, "create": False}, 404),
    ],
)  # fmt: skip
def test_whether_a_write_makes_its_topic(client: httpx.Client, name: str, more: dict[str, Any], status: int) -> None:
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}], **more})
    assert answer.status_code == status
    if status == 404:
        assert answer.json()["error"]["detail"] == {"topic": name}
        put(client, name)
        assert client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}], **more}).status_code == 200


def test_a_configuration_in_a_write_is_for_a_new_topic_only(client: httpx.Client, name: str) -> None:
    write(client, name, 1, config={"cap_records": 2, "type": "queue"})
    write(client, name, 1, config={"cap_records": 9})
    config = client.get(f"/v0/topics/{name}").json()["config"]
    assert (config["cap_records"], config["type"]) == (2, "queue")


# -- once only


@pytest.mark.parametrize("durability", ["ephemeral", "memory", "disk", "fsync"])
def test_a_key_counts_once(client: httpx.Client, name: str, durability: str) -> None:
    put(client, name, durability=durability)
    first = write(client, name, 1, 2, idempotency_key="k")
    write(client, name, "between")
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 9}], "idempotency_key": "k"})
    assert answer.status_code == 200
    again = answer.json()
    assert (again["seqs"], again["head_seq"], again["created"], again["deduped"]) == ([1, 2], 2, False, True)
    assert list(again["performance"]) == ["server_total_ms"]
    assert first["deduped"] is False
    assert client.get(f"/v0/topics/{name}").json()["head_seq"] == 3


def test_the_header_will_do_but_the_body_is_first(client: httpx.Client, name: str) -> None:
    def post(header: str, **body: Any) -> bool:
        headers = {"Idempotency-Key": header}
        answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}], **body}, headers=headers)
        deduped: bool = answer.json()["deduped"]
        return deduped

    assert [post("a"), post("a"), post("a", idempotency_key="b"), post("b"), post("c", idempotency_key="a")] == [
        False, True, False, True, True,
    ]  # fmt: skip
    assert not post("", idempotency_key=None)
    assert not post("")
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}]}, headers=[(b"Idempotency-Key", b"\xff")])
    assert refusal(answer) == (400, "invalid_request")


def test_a_key_counts_once_at_the_same_time_too(client: httpx.Client, server: ServerProcess, name: str) -> None:
    def post(number: int) -> tuple[list[int], bool]:
        body = {"records": [{"data": number}], "idempotency_key": "k"}
        answer = httpx.post(f"{server.base_url}/v0/topics/{name}", json=body, timeout=30).json()
        return answer["seqs"], answer["deduped"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(8)))
    assert sorted(deduped for _, deduped in answers) == [False] + [True] * 7
    assert {tuple(seqs) for seqs, _ in answers} == {(1,)}


def test_concurrent_makers_of_one_name_make_it_once(server: ServerProcess, name: str) -> None:
    def make(number: int) -> bool:
        url = f"{server.base_url}/v0/topics/{name}"
        if number % 2:
            return bool(httpx.put(url, timeout=30).json()["created"])
        return bool(httpx.post(url, json={"records": [{"data": 1}]}, timeout=30).json()["created"])

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(make, range(8))) == [False] * 7 + [True]


# -- full


def test_a_topic_that_rejects(client: httpx.Client, name: str) -> None:
    put(client, name, cap_records=3, discard="reject")
    write(client, name, 1, 2, idempotency_key="k")
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}] * 2})
    assert refusal(answer) == (422, "topic_full")
    assert "retry-after" not in answer.headers
    full = {"topic": name, "cap_records": 3, "cap_bytes": 0, "head_seq": 2, "earliest_seq": 1}
    assert answer.json()["error"]["detail"] == full
    write(client, name, 3)
    assert write(client, name, 9, 9, idempotency_key="k")["deduped"] is True
    client.post(f"/v0/topics/{name}/delete", json={"before_seq": 3})
    assert write(client, name, 4, 5)["seqs"] == [4, 5]
    assert diff(client, name)["tombstone"] is None


def test_a_topic_that_rejects_counts_bytes_of_data_and_meta(client: httpx.Client, name: str) -> None:
    put(client, name, cap_bytes=10, discard="reject")
    write(client, name, 12345)
    one = {"records": [{"data": 12, "meta": [1]}]}
    assert client.post(f"/v0/topics/{name}", json=one).json()["seqs"] == [2]
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": 1}]})
    assert refusal(answer) == (422, "topic_full")
    assert answer.json()["error"]["detail"]["cap_bytes"] == 10


@pytest.mark.parametrize(("cap", "data"), [({"cap_records": 2}, [1, 2, 3]), ({"cap_bytes": 4}, [12345]), ({"cap_bytes": 4}, [12, 34, 5])])  # fmt: skip
def test_what_never_fits_is_too_large_rather_than_too_late(
    client: httpx.Client, name: str, cap: dict[str, int], data: list[int]
) -> None:
    put(client, name, discard="reject", **cap)
    answer = client.post(f"/v0/topics/{name}", json={"records": [{"data": one} for one in data]})
    assert refusal(answer) == (400, "record_too_large")
    assert client.get(f"/v0/topics/{name}").json()["head_seq"] == 0


def test_a_batch_is_all_or_nothing(client: httpx.Client, name: str) -> None:
    records = [{"data": 1}, {"data": 2, "tag": "t" * 257}]
    assert refusal(client.post(f"/v0/topics/{name}", json={"records": records})) == (400, "invalid_request")
    assert client.get(f"/v0/topics/{name}").status_code == 404
