"""Three stages of reading, each with its own name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadRequest, NotJson, UnknownField, WrongShape
from seamark.notify.request import FIELDS, Request, parse

GOOD = b'{"event_type":"mars","identifier":{"class":"od","step":4},"from_id":"1","payload":{"a":1}}'


def test_a_request() -> None:
    assert parse(GOOD) == Request("mars", {"class": "od", "step": 4}, from_id="1", payload={"a": 1})


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        (b' {"event_type":"a","identifier":{}} ', Request("a", {})),
        (b'{"event_type":"a","identifier":{},"from_id":null,"from_date":null,"payload":null}', Request("a", {})),
        (b'{"event_type":"a","event_type":"b","identifier":{"x":1,"x":2},"payload":1,"payload":2}', Request("b", {"x": 2}, payload=2)),
        (b'{"event_type":5,"event_type":"b","identifier":[],"identifier":{},"from_id":1,"from_id":"1"}', Request("b", {}, from_id="1")),
        (b'{"event_type":"a","identifier":{"n":18446744073709551616}}', Request("a", {"n": 2.0**64})),
        ('{"event_type":"é","identifier":{"ü":"\\ud83d\\ude00"}}'.encode(), Request("é", {"ü": "😀"})),
        (b'{"to_id":"1","to_date":"2","from_date":"3","identifier":{},"event_type":""}', Request("", {}, from_date="3", to_id="1", to_date="2")),
        (b'{"event_type":"a","identifier":{"x":{"gte":4},"y":[1],"z":null}}', Request("a", {"x": {"gte": 4}, "y": [1], "z": None})),
    ],
)  # fmt: skip
def test_requests(body: bytes, request_: Request) -> None:
    assert parse(body) == request_


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{", b"not json", GOOD + b"x", GOOD + GOOD, b'{"event_type":"\xff","identifier":{}}',
        b'{"event_type":"a","identifier":{},"payload":NaN}', b'{"event_type":"a","identifier":{},"payload":Infinity}',
        b'{"event_type":"a","identifier":{},"payload":-Infinity}', b'{"event_type":"a","identifier":{},"payload":1e400}',
        b'{"event_type":"a","identifier":{},"payload":"\\ud800"}', b'{"event_type":"a","identifier":{"x":"\\udc00"}}',
        b'{"event_type":"a","identifier":{},"payload":"\\ud800\\u0041"}', b'{"event_type":"a","identifier":{},}',
        b'{"event_type":"a","identifier":{},"payload":01}', b"{'event_type':'a'}", b'\xef\xbb\xbf{"event_type":"a","identifier":{}}',
        b'{"event_type":"a","identifier":{},"payload":' + b"1" * 400 + b"}",
        b'{"event_type":"a","identifier":{},"payload":' + b"1" * 5_000 + b"}",
        b'{"event_type":"a","identifier":{},"payload":' + b"[" * 129 + b"]" * 129 + b"}",
        b"[" * 100_000,
        b'{"unknown":1,"payload":NaN}', b'{"unknown":' + b"1" * 400 + b"}", b'{"event_type":' + b"1" * 400 + b"}",
    ],
)  # fmt: skip
def test_no_json(body: bytes) -> None:
    with pytest.raises(NotJson, match=r"^JSON parsing failed: "):
        parse(body)


def test_deep_enough() -> None:
    deep = limits.JSON_DEPTH_MAX - 1
    body = b'{"event_type":"a","identifier":{},"payload":' + b"[" * deep + b"]" * deep + b"}"
    assert parse(body).payload is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"event_type":"a","identifier":{},"foo":1}', "foo"),
        (b'{"foo":1}', "foo"),  # before what is missing
        (b'{"event_type":5,"identifier":[],"request":1}', "request"),  # before what is of the wrong type
        (b'{"":1}', ""),
        (b'{"Event_type":"a","event_type":"a","identifier":{}}', "Event_type"),
    ],
)
def test_unknown_fields(body: bytes, field: str) -> None:
    with pytest.raises(UnknownField, match=r"^Request contains unknown fields: ") as caught:
        parse(body)
    assert caught.value.fields == {"field": field}
    assert f"Unknown field '{field}' in request" in caught.value.message
    for name in FIELDS:
        assert f'"{name}"' in caught.value.message


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{}", "missing field `event_type`"),
        (b'{"event_type":"a"}', "missing field `identifier`"),
        (b'{"identifier":{}}', "missing field `event_type`"),
        (b'{"event_type":null,"identifier":{}}', "invalid type: null, expected a string"),
        (b'{"event_type":1,"identifier":{}}', "invalid type: integer, expected a string"),
        (b'{"event_type":"a","identifier":null}', "invalid type: null, expected a map"),
        (b'{"event_type":"a","identifier":[]}', "invalid type: sequence, expected a map"),
        (b'{"event_type":"a","identifier":"x"}', "invalid type: string, expected a map"),
        (b'{"event_type":"a","identifier":{},"from_id":5}', "invalid type: integer, expected a string at `from_id`"),
        (b'{"event_type":"a","identifier":{},"from_id":true}', "invalid type: boolean, expected a string at `from_id`"),
        (
            b'{"event_type":"a","identifier":{},"from_date":5.5}',
            "invalid type: floating point number, expected a string",
        ),
        (b'{"event_type":"a","identifier":{},"from_date":{}}', "invalid type: map, expected a string at `from_date`"),
        (b'{"event_type":"a","identifier":{},"to_id":5}', "invalid type: integer, expected a string at `to_id`"),
        (b"[]", "invalid type: sequence"),
        (b'"x"', "invalid type: string"),
        (b"5", "invalid type: integer"),
        (b"null", "invalid type: null"),
        (b"true", "invalid type: boolean"),
    ],
)
def test_wrong_shapes(body: bytes, why: str) -> None:
    with pytest.raises(WrongShape, match=r"^Request deserialization failed: ") as caught:
        parse(body)
    assert why in caught.value.message


VALUES: st.SearchStrategy[Any] = st.sampled_from([None, 1, "a", 1.5, True, [], {}, {"x": {"eq": 1}}, "1"])
PAIRS = st.lists(st.tuples(st.sampled_from([*FIELDS, "event_type", "identifier", "foo"]), VALUES), max_size=7)


def slowly(pairs: list[tuple[str, Any]]) -> str | Request:
    """The stages as they are told, one after the other."""
    last = dict(pairs)
    if set(last) - set(FIELDS):
        return "UnknownField"
    if not isinstance(last.get("event_type"), str) or not isinstance(last.get("identifier"), dict):
        return "WrongShape"
    if any(not isinstance(last.get(name), str | None) for name in ("from_id", "from_date", "to_id", "to_date")):
        return "WrongShape"
    return Request(**last)


@given(PAIRS)
def test_stages_in_their_order_whatever_comes_twice(pairs: list[tuple[str, Any]]) -> None:
    body = "{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in pairs) + "}"
    outcome: str | Request
    try:
        outcome = parse(body.encode())
    except BadRequest as error:
        outcome = type(error).__name__
    assert outcome == slowly(pairs)
