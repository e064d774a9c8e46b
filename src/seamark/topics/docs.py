"""What the OpenAPI document says about topics and their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.json import encode

from seamark.topics.model import TopicConfig
from seamark.wire.shape import Schema, of_example, of_type

Operation = Mapping[str, Any]

_WHEN: Schema = {"type": ["integer", "null"]}
_NAMED: dict[str, Schema] = {  # of which no example says all
    "config": of_type(TopicConfig), "data": {}, "meta": {}, "last_write_ts": _WHEN, "last_read_ts": _WHEN,
    "filter": {"type": ["array", "null"], "items": {"type": "string"}},
}  # fmt: skip


_ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "detail": {"type": "object", "additionalProperties": {}},
    },
}
_PROBLEM: Operation = {
    "description": "Not done; `code` says why, and `detail` what there is to know.",
    "content": {
        "application/json": {
            "schema": {"type": "object", "required": ["error"], "properties": {"error": _ERROR}},
            "example": {
                "error": {
                    "code": "topic_not_found",
                    "message": "there is no topic orders",
                    "detail": {"topic": "orders"},
                }
            },
        }
    },
}


def query(name: str, kind: str, text: str) -> Operation:
    return {"name": name, "in": "query", "required": False, "schema": {"type": kind}, "description": text}


def header(name: str, text: str) -> Operation:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": text}


def json(example: object, text: str, **named: Schema) -> Operation:
    """An answer; `named` are the members of which the example does not say all."""
    schema = of_example(example, _NAMED | named)
    return {"description": text, "content": {"application/json": {"schema": schema, "example": example}}}


def events(text: str, *frames: tuple[str, str, object]) -> Operation:
    """A stream; `frames` are an id, an event and its data each."""
    shown = "".join(f"id: {place}\nevent: {event}\ndata: {encode(data).decode()}\n\n" for place, event, data in frames)
    content = {"schema": {"type": "string"}, "example": f"retry: 2000\n\n{shown}: hb\n\n"}
    return {"description": text, "content": {"text/event-stream": content}}


def body(example: object, *, required: bool = True) -> Operation:
    """What a request holds. Its schema comes from the type that it is read as, where the row is made."""
    return {"required": required, "content": {"application/json": {"example": example}}}


def whole(operation: Operation, reads: type | None = None) -> Operation:
    """An operation with what all of the surface have in common, and with the type that its body is read as."""
    made = {**operation, "responses": {"default": _PROBLEM, **operation["responses"]}}
    if reads is not None:
        media = {**operation["requestBody"]["content"]["application/json"], "schema": of_type(reads)}
        made["requestBody"] = {**operation["requestBody"], "content": {"application/json": media}}
    return made


def nullable(example: object) -> Schema:
    """Something of this form, or null."""
    return {"anyOf": [of_example(example), {"type": "null"}]}


def each(example: object) -> Schema:
    """Any names, and for each of them something of this form."""
    return {"type": "object", "additionalProperties": of_example(example)}


PERFORMANCE = {"server_total_ms": 0.09}
_TOMBSTONE = {
    "gap_from": 1, "gap_to": 3, "reason": "cap", "missed_estimate": 3, "earliest_seq": 4, "head_seq": 6,
}  # fmt: skip
_QUEUE = {"ready": 10, "in_flight": 1, "dead_lettered": 0}
_CONFIG = {
    "type": "log", "ttl_ms": 0, "cap_records": 100_000, "cap_bytes": 0, "discard": "old", "durable": False,
    "durability": "disk", "priority": None, "auto_priority": True, "auto_create": True, "idempotency_window_ms": 120_000,
    "dedupe_node": True, "lease_ms": 30_000, "claim_jitter_ms": 0, "max_deliveries": 0, "dead_letter": None,
    "leases_durable": False,
}  # fmt: skip
_STATE = {
    "topic": "orders", "type": "log", "head_seq": 2, "earliest_seq": 1, "next_seq": 3, "count": 2, "bytes": 54,
    "config": _CONFIG, "effective_priority": 500, "last_write_ts": 1_780_000_000_000, "last_read_ts": 1_780_000_000_100,
    "queue": _QUEUE, "performance": PERFORMANCE,
}  # fmt: skip
_ROW = {
    "topic": "orders", "head_seq": 2, "earliest_seq": 1, "count": 2, "bytes": 54, "durable": False, "effective_priority": 0,
}  # fmt: skip
_WRITE = {
    "node": "web-1", "idempotency_key": "order-7731",
    "records": [{"data": {"sku": "AEROPRESS-GO"}, "tag": "order-7731", "meta": {"trace": "4f1d"}}, {"data": None}],
}  # fmt: skip
_RECEIPT = {
    "topic": "orders", "first_seq": 1, "last_seq": 2, "seqs": [1, 2], "head_seq": 2, "count": 2, "created": True,
    "deduped": False, "performance": {"server_total_ms": 0.31, "wal_append_ms": 0.05, "fsync_ms": 0.0},
}  # fmt: skip
_DIFF = {
    "topic": "orders",
    "records": [
        {"$seq": 1, "$ts": 1_780_000_000_000, "$node": "web-1", "$tag": "order-7731", "data": {"sku": "AEROPRESS-GO"}, "meta": {"trace": "4f1d"}},
        {"$seq": 2, "$ts": 1_780_000_000_000, "$node": "web-1", "data": None},
    ],
    "next_from_seq": 2, "head_seq": 2, "earliest_seq": 1, "caught_up": True, "tombstone": None, "lag": 0,
    "performance": {"server_total_ms": 0.07, "records_scanned": 2},
}  # fmt: skip
_DELETED = {
    "topic": "orders", "deleted": 1, "earliest_seq": 2, "head_seq": 2, "count": 1, "bytes": 4, "performance": PERFORMANCE,
}  # fmt: skip

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("GET", "/v0/topics"): (
        "List topics in byte order of name",
        {
            "parameters": [
                query("prefix", "string", "only names that start with this"),
                query("page_size", "integer", "topics in a page: 100 unless given, at most 1000"),
                query("cursor", "string", "the `next_cursor` of the page before"),
                query("touch", "boolean", "count this as reading the topics that are shown; false unless given"),
            ],
            "responses": {
                "200": json(
                    {"topics": [_ROW], "next_cursor": "eyJhZnRlciI6Im9yZGVycyJ9", "performance": PERFORMANCE},
                    "`next_cursor` is there when more follow",
                )
            },
        },
    ),
    ("PUT", "/v0/topics/{topic}"): (
        "Make a topic, or replace its settings: what is left out goes back to its default",
        {
            "requestBody": body({"cap_records": 100_000, "durability": "disk"}, required=False),
            "responses": {
                "200": json(
                    {"topic": "orders", "created": False, "config": _CONFIG, "performance": PERFORMANCE}, "replaced"
                ),
                "201": json(
                    {"topic": "orders", "created": True, "config": _CONFIG, "performance": PERFORMANCE}, "made"
                ),
            },
        },
    ),
    ("GET", "/v0/topics/{topic}"): (
        "Where a topic stands",
        {
            "parameters": [query("touch", "boolean", "count this as reading the topic; true unless given")],
            "responses": {"200": json(_STATE, "only a queue has `queue`, with its jobs by state")},
        },
    ),
    ("DELETE", "/v0/topics/{topic}"): (
        "Remove a topic with its records and the routers that name it",
        {
            "parameters": [query("if_empty", "boolean", "only if it holds no records")],
            "responses": {
                "200": json(
                    {
                        "topic": "orders",
                        "deleted": True,
                        "routers_removed": ["orders->audit"],
                        "performance": PERFORMANCE,
                    },
                    "`deleted` is false when there was none",
                )
            },
        },
    ),
    ("POST", "/v0/topics/{topic}"): (
        "Write records, all or none; makes the topic when there is none",
        {
            "parameters": [
                query("return_seqs", "boolean", "whether the answer lists every seq; true unless given"),
                header("Idempotency-Key", "instead of `idempotency_key` in the body"),
            ],
            "requestBody": body(_WRITE),
            "responses": {
                "200": json(_RECEIPT | {"created": False}, "acknowledged as the topic's durability says"),
                "201": json(_RECEIPT, "and the topic was made"),
            },
        },
    ),
    ("POST", "/v0/topics/{topic}/diff"): (
        "What a topic holds after a cursor, at once or when there is something",
        {
            "requestBody": body(
                {
                    "from_seq": 0,
                    "limit": 256,
                    "node": "web-2",
                    "include_tags": False,
                    "include_meta": True,
                    "wait_ms": 0,
                },
                required=False,
            ),
            "responses": {
                "200": json(
                    _DIFF,
                    "go on from `next_from_seq` until `caught_up`; a `tombstone` states what was lost",
                    tombstone=nullable(_TOMBSTONE),
                )
            },
        },
    ),
    ("POST", "/v0/topics/{topic}/delete"): (
        "Delete records, silently and for good",
        {
            "requestBody": body({"before_seq": 100, "match": ["tag", "Glob", "order-*"]}),
            "responses": {"200": json(_DELETED, "all given conditions had to hold")},
        },
    ),
}
