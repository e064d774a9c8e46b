"""Whatever is sent to whichever route: no answer is a fault of ours, and every one has the form that the OpenAPI document
gives it. SEAMARK_DEEP=1 sends more."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seamark.topics.surface import OPERATIONS
from tests.topics.rig import TopicsRig
from tests.topics.test_docs import misfit

pytestmark = pytest.mark.slow  # processes of their own

DEEP = bool(os.environ.get("SEAMARK_DEEP"))
CALLS_MAX = 12

NUMBERS = st.sampled_from([0, 1, 2, -1, 2**31, 2**32, 2**63, 2**64, 2**80, 1.0, 1e300, -0.0])
TEXTS = st.sampled_from(
    [
        "",
        "t",
        "q",
        "r",
        "log",
        "queue",
        "fsync",
        "strong",
        "tag",
        "Eq",
        "Glob",
        "a*",
        "*",
        "\x00",
        "é" * 200,
        "x" * 300,
        "-bad",
    ]
)
PLAIN = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
JSON = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(["data", "tag", "node", "meta", "x"]), JSON, max_size=4), max_size=3)
STARTS = st.dictionaries(TEXTS, st.dictionaries(st.sampled_from(["from_seq", "tail"]), PLAIN), max_size=3)
MATCHES = st.lists(st.sampled_from(["tag", "Eq", "Glob", "a*", "a", 1]), min_size=2, max_size=4)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "records": RECORDS | JSON,
        "topics": STARTS | JSON,
        "node": PLAIN | st.lists(PLAIN, max_size=2),
        "seqs": st.lists(NUMBERS, max_size=3) | JSON,
        "lease_ids": st.lists(TEXTS, max_size=3) | JSON,
        "match": MATCHES | JSON,
        "filter": MATCHES | JSON,
        "config": JSON,
        **dict.fromkeys(["source", "dest", "type", "durability", "discard", "guarantee", "consistency"], TEXTS | PLAIN),
        **dict.fromkeys(
            ["from_seq", "limit", "max_batch_bytes", "heartbeat_ms", "before_seq", "lease_ms", "max"], PLAIN
        ),
        **dict.fromkeys(["delay_ms", "ttl_ms", "cap_records", "cap_bytes", "priority", "max_deliveries"], PLAIN),
        **dict.fromkeys(["durable", "create", "create_dest", "include_data", "dead_letter", "idempotency_key"], PLAIN),
    },
)
RAW = st.sampled_from(
    [b"", b"{", b"null", b"[]", b"\xff", b'{"a":NaN}', b'{"a":"\\ud800"}', b"[" * 5_000, b'{"records":[{"data":' + b"9" * 400 + b"}]}"]
)  # fmt: skip
SEGMENTS = st.sampled_from(["t", "q", "r", "none", "-bad", "%2F", "%00", "a%20b", "%C3%A9", "x" * 300, "t%3Ar", ".."])
MEDIA = st.sampled_from([*["application/json"] * 6, "Application/JSON; charset=utf-8", "text/plain", ""])
QUERY = st.sampled_from(
    [
        "",
        "",
        "",
        "?touch=x&if_empty=2",
        "?page_size=0&cursor=!",
        "?cursor=%7B%7D",
        "?lenient=1",
        "?a=%ff",
        "?node=n&max=0",
    ]
)
CALL = st.tuples(
    st.sampled_from(sorted(OPERATIONS)), SEGMENTS, BODIES.map(json.dumps).map(str.encode) | RAW, MEDIA, QUERY
)


async def call(rig: TopicsRig, paths: Mapping[str, Any], asked: tuple[Any, ...]) -> None:
    (method, pattern), segment, body, media, query = asked
    headers = {"Content-Type": media, "Accept": "application/json"} if media else {"Accept": "application/json"}
    path = re.sub(r"\{[a-z]+\}", segment, pattern)
    url = httpx.URL("http://rig").copy_with(raw_path=f"{path}{query}".encode())
    answer = await rig.client.request(method, url, content=body, headers=headers)
    assert answer.status_code < 500, (asked, answer.text)
    responses = paths[pattern][method.lower()]["responses"]
    said = responses.get(str(answer.status_code), responses["default"])["content"]["application/json"]
    assert misfit(answer.json(), said["schema"]) is None, (asked, answer.text)


async def life(calls: list[tuple[Any, ...]]) -> None:
    rig = TopicsRig()
    paths = (await rig.client.get("/openapi.json")).json()["paths"]
    await rig.write("t", 1, 2)
    await rig.call("PUT", "/topics/q", {"type": "queue"})
    for asked in calls:
        await call(rig, paths, asked)
    await rig.close()


@settings(max_examples=1_500 if DEEP else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(CALL, min_size=1, max_size=CALLS_MAX))
def test_every_answer_is_an_answer(calls: list[tuple[Any, ...]]) -> None:
    asyncio.run(life(calls))
