"""What the OpenAPI document says about the raw routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Operation = Mapping[str, Any]


def _query(name: str, kind: str, text: str) -> Operation:
    return {"name": name, "in": "query", "required": False, "schema": {"type": kind}, "description": text}


def _json(example: object, text: str) -> Operation:
    return {"description": text, "content": {"application/json": {"schema": {"type": "object"}, "example": example}}}


def _body(example: object, *, required: bool = True) -> Operation:
    return {"required": required, "content": {"application/json": {"schema": {"type": "object"}, "example": example}}}


_RECEIPT = {
    "stream": "demo", "instance": "9f3c0a7be1d24c55", "first": 1, "last": 1, "head": 1, "ts_ms": 1780000000000,
    "created": True, "deduped": False, "write_ms": 0.05, "sync_ms": 0.31,
}  # fmt: skip
_PAGE = {
    "instance": "9f3c0a7be1d24c55", "next": 1, "caught_up": True, "head": 1, "synced": 1, "earliest": 1, "evict_floor": 1,
    "gap": None, "records": [{"seq": 1, "ts_ms": 1780000000000, "data": {"hello": "world"}}],
}  # fmt: skip
_STATE = {
    "stream": "demo", "instance": "9f3c0a7be1d24c55", "head": 1, "synced": 1, "earliest": 1, "evict_floor": 1, "count": 1,
    "bytes": 17, "last_ts_ms": 1780000000000, "settings": {"durability": "fsync", "cap_records": 0},
}  # fmt: skip

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("GET", "/raw"): (
        "List raw streams in byte order of name",
        {
            "parameters": [
                _query("prefix", "string", "only names that start with this"),
                _query("after", "string", "only names after this one: the `next` of the page before"),
                _query("limit", "integer", "names in a page, at most 1000"),
            ],
            "responses": {"200": _json({"streams": [_STATE], "next": None}, "`next` is null on the last page")},
        },
    ),
    ("POST", "/raw/{name}"): (
        "Append records, all or none; creates the stream when it does not exist",
        {
            "requestBody": _body({"records": [{"data": {"hello": "world"}, "tag": "greeting"}], "key": "once-only"}),
            "responses": {
                "200": _json(_RECEIPT, "acknowledged as the stream's class says"),
                "201": _json(_RECEIPT, "and the stream was created"),
            },
        },
    ),
    ("GET", "/raw/{name}"): (
        "Where a stream stands",
        {"responses": {"200": _json(_STATE, "marks, counts and settings")}},
    ),
    ("PUT", "/raw/{name}"): (
        "Create a stream, or replace its settings",
        {
            "requestBody": _body({"durability": "disk", "cap_records": 100_000, "ttl_ms": 86_400_000}, required=False),
            "responses": {
                "200": _json({"created": False, **_STATE}, "replaced"),
                "201": _json({"created": True, **_STATE}, "created"),
            },
        },
    ),
    ("DELETE", "/raw/{name}"): (
        "Remove a stream with all its records",
        {"responses": {"200": _json({"stream": "demo", "existed": True, "head": 1}, "watchers are told at once")}},
    ),
    ("GET", "/raw/{name}/records"): (
        "Read records after a cursor",
        {
            "parameters": [
                _query("after", "integer", "seq of the last record already seen; 0 for the beginning"),
                _query("limit", "integer", "most records in a page, at most 10000"),
                _query("bytes", "integer", "most payload bytes in a page; one record is always given"),
                _query("synced", "boolean", "only what is durable"),
            ],
            "responses": {"200": _json(_PAGE, "`next` is the cursor of the next page; a gap comes before the records")},
        },
    ),
    ("GET", "/raw/{name}/seq"): (
        "First seq stored at or after a time",
        {
            "parameters": [{**_query("at_ms", "integer", "milliseconds since the epoch"), "required": True}],
            "responses": {"200": _json({"stream": "demo", "seq": 1}, "head + 1 when nothing is that new")},
        },
    ),
    ("POST", "/raw/{name}/delete"): (
        "Delete records, silently and for good",
        {
            "requestBody": _body({"before": 100, "tag_prefix": "order-"}),
            "responses": {"200": _json({"deleted": 3, **_STATE}, "all given conditions had to hold")},
        },
    ),
    ("GET", "/raw/{name}/watch"): (
        "Watch a stream as server-sent events",
        {
            "parameters": [
                _query("after", "integer", "start after this seq; without it only new records come"),
                _query("synced", "boolean", "only what is durable"),
                _query("filter", "string", "JSON: subject pattern with constraints, polygon or point, exclude_nodes"),
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "required": False,
                    "schema": {"type": "string"},
                    "description": "resume after this event",
                },
            ],
            "responses": {
                "200": {
                    "description": "events: record, gap, caught-up, dropped, closing",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                }
            },
        },
    ),
}
