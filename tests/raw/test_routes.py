"""The raw surface as a client sees it, on our data plane and as plain ASGI under another server."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from seamark import limits


def append(client: httpx.Client, name: str, *data: object, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/raw/{name}", json={"records": [{"data": item} for item in data], **more})
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json()
    return body


def code(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert body["request_id"] == answer.headers["x-request-id"]
    return answer.status_code, body["error"]["code"]


def test_append_creates_and_numbers(client: httpx.Client, name: str) -> None:
    first = client.post(f"/raw/{name}", json={"records": [{"data": 1}]})
    assert first.status_code == 201
    assert first.json()["created"] is True
    second = append(client, name, 2, 3)
    assert (second["first"], second["last"], second["head"]) == (2, 3, 3)
    assert second["sync_ms"] > 0


def test_payloads_come_back_byte_for_byte(client: httpx.Client, name: str) -> None:
    data = '{ "b": 1.0,  "a":12345678901234567890123, "a":2, "ü": "\\u00fc\u2028" }'
    body = f'{{"records":[{{"data":{data},"tag":"t","node":"n","subject":["a","1"]}}]}}'
    assert client.post(f"/raw/{name}", content=body.encode()).status_code == 201
    answer = client.get(f"/raw/{name}/records")
    assert data.encode() in answer.content
    (record,) = answer.json()["records"]
    assert (record["seq"], record["tag"], record["node"], record["subject"]) == (1, "t", "n", ["a", "1"])


def test_errors_name_the_stream_as_the_client_does(client: httpx.Client, name: str) -> None:
    for path in (f"/raw/{name}", f"/raw/{name}/watch", f"/raw/{name}/records"):
        answer = client.get(path)
        assert code(answer) == (404, "stream_not_found")
        error = answer.json()["error"]
        assert error["detail"] == {"stream": name}
        assert error["message"] == f"there is no stream {name}"


def test_polygons_of_one_append_are_bounded_together(client: httpx.Client, name: str) -> None:
    ring = ",".join(["1.25,1.25", *["2.125,1.0625"] * 9_000, "1.25,1.25"])
    fits = limits.GEOMETRY_BYTES_PER_APPEND_MAX // len(ring)
    record = {"data": 1, "polygon": ring}
    answer = client.post(f"/raw/{name}", json={"records": [record] * (fits + 1)})
    assert code(answer) == (400, "record_too_large")
    assert client.get(f"/raw/{name}").status_code == 404
    assert client.post(f"/raw/{name}", json={"records": [record] * fits}).json()["last"] == fits


def test_millions_of_records_are_counted_before_an_object_is_made_for_each(client: httpx.Client, name: str) -> None:
    body = b'{"records":[' + b",".join([b'{"data":{}}'] * 1_000_000) + b"]}"
    answer = client.post(f"/raw/{name}", content=body)
    assert code(answer) == (400, "record_too_large")
    assert answer.json()["error"]["detail"] == {"records": 1_000_000, "max": limits.RECORDS_PER_APPEND_MAX}
    nested = b'{"records":[{"data":[' + b",".join([b'{"data":{}}'] * 20_000) + b"]}]}"
    assert client.post(f"/raw/{name}", content=nested).json()["last"] == 1


def test_the_greatest_settings_work_and_greater_ones_are_refused(client: httpx.Client, name: str) -> None:
    most = {"cap_records": limits.SEQ_MAX, "cap_bytes": limits.SEQ_MAX, "latest_per_subject": limits.SEQ_MAX}
    most |= {"ttl_ms": limits.SPAN_MS_MAX, "dedupe_window_ms": limits.SPAN_MS_MAX}
    for setting, value in most.items():
        assert code(client.put(f"/raw/{name}", json={setting: value + 1})) == (400, "bad_request")
    assert client.put(f"/raw/{name}", json=most).status_code == 201
    record = {"data": 1, "subject": ["a"]}
    for deduped in (False, True):
        answer = client.post(f"/raw/{name}", json={"records": [record], "key": "k"})
        assert answer.json()["deduped"] is deduped, answer.text
    assert client.get(f"/raw/{name}/records").json()["records"][0]["seq"] == 1


def test_durations_are_for_people(client: httpx.Client, name: str) -> None:
    text = client.post(f"/raw/{name}", json={"records": [{"data": 1}]}).text
    for field in ("write_ms", "sync_ms"):
        digits = text.partition(f'"{field}":')[2].partition(".")[2].rstrip("}").partition(",")[0]
        assert len(digits) == 3


def test_pages_chain(client: httpx.Client, name: str) -> None:
    append(client, name, *range(10))
    seen: list[int] = []
    after, caught_up = 0, False
    while not caught_up:
        page = client.get(f"/raw/{name}/records", params={"after": after, "limit": 3}).json()
        seen += [record["data"] for record in page["records"]]
        after, caught_up = page["next"], page["caught_up"]
    assert seen == list(range(10))


def test_a_key_counts_once(client: httpx.Client, name: str) -> None:
    first = append(client, name, "a", key="k")
    again = append(client, name, "b", key="k")
    assert again["deduped"] is True
    assert (again["first"], again["head"]) == (first["first"], first["head"])
    assert append(client, name, "c")["first"] == 2


def test_eviction_is_said(client: httpx.Client, name: str) -> None:
    assert client.put(f"/raw/{name}", json={"cap_records": 3}).status_code == 201
    append(client, name, *range(6))
    page = client.get(f"/raw/{name}/records").json()
    assert page["gap"] == {"first": 1, "last": 3, "loss": "cap"}
    assert [record["seq"] for record in page["records"]] == [4, 5, 6]
    assert client.get(f"/raw/{name}").json()["evict_floor"] == 4


def test_deletion_is_not(client: httpx.Client, name: str) -> None:
    append(client, name, *range(5))
    answer = client.post(f"/raw/{name}/delete", json={"before": 3}).json()
    assert (answer["deleted"], answer["earliest"], answer["evict_floor"]) == (2, 3, 1)
    page = client.get(f"/raw/{name}/records").json()
    assert page["gap"] is None
    assert [record["seq"] for record in page["records"]] == [3, 4, 5]


def test_delete_by_tag(client: httpx.Client, name: str) -> None:
    client.post(f"/raw/{name}", json={"records": [{"data": tag, "tag": tag} for tag in ("a1", "a2", "b")]})
    assert client.post(f"/raw/{name}/delete", json={"tag_prefix": "a"}).json()["deleted"] == 2
    assert client.post(f"/raw/{name}/delete", json={"tag": "b", "seqs": [1]}).json()["deleted"] == 0
    assert client.get(f"/raw/{name}").json()["count"] == 1


def test_settings_are_replaced_and_shown(client: httpx.Client, name: str) -> None:
    client.put(f"/raw/{name}", json={"durability": "disk", "cap_records": 9})
    assert append(client, name, 1)["sync_ms"] == 0
    answer = client.put(f"/raw/{name}")
    assert answer.status_code == 200
    assert answer.json()["settings"]["durability"] == "fsync"
    assert answer.json()["settings"]["cap_records"] == 0


def test_seq_at_a_time(client: httpx.Client, name: str) -> None:
    stamp = append(client, name, 1)["ts_ms"]
    assert client.get(f"/raw/{name}/seq", params={"at_ms": stamp}).json()["seq"] == 1
    assert client.get(f"/raw/{name}/seq", params={"at_ms": stamp + 60_000}).json()["seq"] == 2


def test_listing_pages_by_name(client: httpx.Client, name: str) -> None:
    for letter in "cab":
        append(client, f"{name}-{letter}", 1)
    first = client.get("/raw", params={"prefix": f"{name}-", "limit": 2}).json()
    assert [stream["stream"] for stream in first["streams"]] == [f"{name}-a", f"{name}-b"]
    rest = client.get("/raw", params={"prefix": f"{name}-", "limit": 2, "after": first["next"]}).json()
    assert [stream["stream"] for stream in rest["streams"]] == [f"{name}-c"]
    assert rest["next"] is None


def test_a_dropped_stream_begins_anew(client: httpx.Client, name: str) -> None:
    before = append(client, name, 1, 2)
    assert client.delete(f"/raw/{name}").json() == {"stream": name, "existed": True, "head": 2}
    assert client.delete(f"/raw/{name}").json()["existed"] is False
    assert code(client.get(f"/raw/{name}")) == (404, "stream_not_found")
    after = append(client, name, 3)
    assert after["first"] == 1
    assert after["instance"] != before["instance"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'{"records":[]}', b'{"records":[{}]}', b'{"records":[{"data":NaN}]}', b'{"records":[{"data":1}],"more":1}',
        b'{"records":[{"data":"\xff"}]}', b'{"records":[{"data":"\\ud800"}]}', b'{"records":[{"data":1,"tag":1}]}', b'{"records":[{"data":1,"polygon":"0,0"}]}',
        b'{"records":[{"data":' + b"[" * 500 + b"]" * 500 + b"}]}", b'{"records":[{"data":1}],"key":""}', b'{"records":[{"data":1,"tag":"' + b"x" * 300 + b'"}]}',
        b'{"records":[' + b",".join([b'{"data":1}'] * (limits.RECORDS_PER_APPEND_MAX + 1)) + b"]}",
        b'{"records":[{"data":"' + b"x" * (limits.RECORD_BYTES_MAX + 1) + b'"}]}',
    ],
)  # fmt: skip
def test_bad_appends_change_nothing(client: httpx.Client, body: bytes) -> None:
    name = "never-made"
    answer = client.post(f"/raw/{name}", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert client.get(f"/raw/{name}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/raw/none", 404),
        ("GET", "/raw/none/records", 404),
        ("GET", "/raw/none/watch", 404),
        ("POST", "/raw/-bad", 400),
        ("PUT", "/raw/" + "x" * 256, 400),
        ("PATCH", "/raw/none", 405),
        ("GET", "/raw/none/other", 404),
        ("GET", "/raw/none/records?afer=1", 400),
        ("GET", "/raw/none/records?after=-1", 400),
        ("GET", "/raw/none/records?limit=99999999", 400),
        ("GET", "/raw/none/seq", 400),
        ("GET", "/raw/none/watch?filter=%7B", 400),
        ("GET", "/raw/none/watch?synced=maybe", 400),
    ],
)
def test_bad_requests(client: httpx.Client, method: str, path: str, status: int) -> None:
    content = b'{"records":[{"data":1}]}' if method == "POST" else None
    answer = client.request(method, path, content=content)
    assert code(answer)[0] == status


def test_names_are_percent_decoded(client: httpx.Client, name: str) -> None:
    append(client, f"{name}%3Ax", 1)
    assert client.get(f"/raw/{name}:x").json()["stream"] == f"{name}:x"


def test_every_route_is_documented(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {path for path in paths if path.startswith("/raw")} == {
        "/raw", "/raw/{name}", "/raw/{name}/records", "/raw/{name}/seq", "/raw/{name}/delete", "/raw/{name}/watch",
    }  # fmt: skip
    for path, operations in paths.items():
        for operation in operations.values():
            assert operation["responses"], path
    json.dumps(paths)
