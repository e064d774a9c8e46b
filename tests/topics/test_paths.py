"""Paths under /v0 that lead nowhere: whose they are, and what they say."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection

import httpx
import pytest

from seamark.testing.server import ServerProcess
from seamark.topics.paths import topic_in
from tests.topics.rig import TopicsRig


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v0/topics/orders", "orders"),
        ("/v0/topics/tenant%3Ajobs/diff", "tenant:jobs"),
        ("/v0/topics/%zz", "%zz"),
        ("/v0/topics/%ff", "\ufffd"),
        ("/v0/topics/", None),
        ("/v0/topics", None),
        ("/v0/watch/orders", None),
    ],
)
def test_the_topic_of_a_path(path: str, name: str | None) -> None:
    assert topic_in(path) == name


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v0", 404, "not_found"),
        ("GET", "/v0/nowhere", 404, "not_found"),
        ("POST", "/v0/topics/a/nowhere", 404, "not_found"),
        ("PATCH", "/v0/topics/a", 405, "method_not_allowed"),
        ("OPTIONS", "/v0/topics/a", 405, "method_not_allowed"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_there_is_told_in_the_envelope(
    client: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert set(answer.json()) == {"error"}
    assert set(answer.json()["error"]) == {"code", "message"}
    assert answer.json()["error"]["code"] == code


async def test_strangers_do_not_learn_what_is_there() -> None:
    rig = TopicsRig({"SEAMARK_API_KEYS": "all,mine::mine-,reader:read"})
    await rig.call("GET", "/nowhere", status=401)
    await rig.call("GET", "/nowhere", key="all", status=404)
    await rig.call("PUT", "/topics/a/diff", key="reader", status=403)
    await rig.call("PUT", "/topics/a/diff", key="mine", status=403)
    await rig.call("PUT", "/topics/mine-a/diff", key="mine", status=405)
    await rig.close()


def test_a_body_beyond_every_bound_is_told_in_the_envelope(server: ServerProcess) -> None:
    for path in ("/v0/topics/a", "/v0/topics/a/delete", "/v0/watch"):
        connection = HTTPConnection(*server.address)
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", str(2**40))
        connection.endheaders()  # and not one byte of it: the number is enough
        with closing(connection), connection.getresponse() as answer:
            assert answer.status == 413
            assert json.loads(answer.read())["error"]["code"] == "payload_too_large"
