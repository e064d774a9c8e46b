"""What the OpenAPI document says about watching topics."""

from __future__ import annotations

from seamark.topics.docs import PERFORMANCE, Operation, body, each, events, header, json, query

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

_RECORD = {"$seq": 4097, "$ts": 1_748_467_200_111, "$node": "node-B", "data": {"sku": "AEROPRESS-GO", "qty": 1}}
_FRAMES = (
    (
        "eyJvcmRlcnMiOjQwOTZ9",
        "tombstone",
        {
            "topic": "orders", "reason": "from_seq_too_old", "gap_from": 3001, "gap_to": 4096, "earliest_seq": 4097,
            "head_seq": 4097,
        },
    ),
    (
        "eyJvcmRlcnMiOjQwOTd9",
        "record",
        {"topic": "orders", "records": [_RECORD], "from_seq": 4096, "to_seq": 4097, "head_seq": 4097},
    ),
    ("eyJvcmRlcnMiOjQwOTd9", "caught-up", {"topic": "orders", "head_seq": 4097}),
    ("eyJvcmRlcnMiOjQwOTd9", "topic-deleted", {"topic": "orders", "head_seq": 4097, "reason": "deleted"}),
)  # fmt: skip

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
                "200": events(
                    "`record`, `tombstone`, `caught-up` and `topic-deleted`, each with the places in all topics as its id; "
                    "`error` when the server ends the stream; a comment when there is nothing to say",
                    *_FRAMES,
                )
            },
        },
    ),
}
