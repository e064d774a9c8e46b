"""What the OpenAPI document says about watching topics."""

from __future__ import annotations

from seamark.topics.docs import PERFORMANCE, Operation, body, each, header, json, query

_BODY = {
    "node": "web-1", "topics": {"orders": {"from_seq": 4096}, "notifications": {"tail": True}}, "limit": 256,
    "max_batch_bytes": 262_144, "heartbeat_ms": 15_000, "include_meta": True, "include_tags": False, "include_data": True,
    "consistency": "eventual",
}  # fmt: skip
_START = {"from_seq": 4096, "head_seq": 5210, "earliest_seq": 3001}
_CREATED = {
    "wid": "wid_BuRguGorNdVFWNQULz-rrw", "stream_url": "/v0/watch/wid_BuRguGorNdVFWNQULz-rrw", "session_ttl_ms": 300_000,
    "topics": {"orders": _START}, "performance": PERFORMANCE,
}  # fmt: skip

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("POST", "/v0/watch"): (
        "Make a watch session on up to 256 topics",
        {
            "parameters": [query("lenient", "boolean", "leave out topics that do not exist; false unless given")],
            "requestBody": body(_BODY),
            "responses": {"200": json(_CREATED, "open `stream_url` within `session_ttl_ms`", topics=each(_START))},
        },
    ),
    ("GET", "/v0/watch/{wid}"): (
        "The stream of a watch session, as server-sent events",
        {
            "parameters": [
                query("token", "string", "the key, for browsers, which cannot send headers on an event stream"),
                header("Last-Event-ID", "the last event that was seen: takes the session back to it, never forward"),
            ],
            "responses": {
                "200": {
                    "description": "events: record, tombstone, caught-up, topic-deleted, error",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                }
            },
        },
    ),
}
