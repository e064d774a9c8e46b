"""What the OpenAPI document says about queues."""

from __future__ import annotations

from seamark.topics.docs import PERFORMANCE, Operation, body, each, events, json, query

_LEASE = "lease_9f3c0a7be1d24c55"
_JOB = {
    "$seq": 1, "lease_id": _LEASE, "deadline": 1_780_000_030_000, "$ts": 1_780_000_000_000, "$tag": "mail",
    "deliveries": 1, "data": {"to": "ada@example.org"}, "meta": {"trace": "4f1d"},
}  # fmt: skip
_CLAIMED = {"topic": "jobs", "claimed": [_JOB], "count": 1, "ready": 11, "performance": PERFORMANCE}
_HELD = {"node": "worker-1", "seqs": [1, 2], "lease_ids": [_LEASE, ""]}
_STANDING = {"ready": 10, "in_flight": 1, "performance": PERFORMANCE}

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("POST", "/v0/topics/{topic}/claim"): (
        "Claim jobs of a queue for a while",
        {
            "requestBody": body({"node": "worker-1", "max": 10, "lease_ms": 30_000}),
            "responses": {"200": json(_CLAIMED, "what came back goes first, then the oldest; fewer than `max` is no error")},
        },
    ),
    ("POST", "/v0/topics/{topic}/ack"): (
        "Jobs are done: they leave the queue",
        {
            "requestBody": body(_HELD),
            "responses": {
                "200": json({"topic": "jobs", "acked": 1, "skipped": [2], **_STANDING}, "`skipped`: not held by this node")
            },
        },
    ),
    ("POST", "/v0/topics/{topic}/nack"): (
        "Jobs are given back, for somebody else, at once or after a delay",
        {
            "requestBody": body({**_HELD, "delay_ms": 5_000}),
            "responses": {
                "200": json({"topic": "jobs", "nacked": 1, "skipped": [2], **_STANDING}, "`skipped`: not held by this node")
            },
        },
    ),
    ("POST", "/v0/topics/{topic}/extend"): (
        "Leases are to end so long from now",
        {
            "requestBody": body({**_HELD, "lease_ms": 60_000}),
            "responses": {
                "200": json(
                    {
                        "topic": "jobs", "extended": 1, "skipped": [2], "deadlines": {"1": 1_780_000_060_000},
                        "performance": PERFORMANCE,
                    },
                    "`skipped`: not held by this node",
                    deadlines=each(1_780_000_060_000),
                )
            },
        },
    ),
    ("GET", "/v0/topics/{topic}/work"): (
        "A stream of jobs, as server-sent events",
        {
            "parameters": [
                {**query("node", "string", "who holds the jobs, and acknowledges them"), "required": True},
                query("max", "integer", "jobs that the stream may hold at a time, at most 1000; 1 unless given"),
                query("lease_ms", "integer", "how long a job may take; what the queue says unless given"),
                query("token", "string", "the key, for browsers, which cannot send headers on an event stream"),
            ],
            "responses": {
                "200": events(
                    "`job`; `error` when the server ends the stream. What it holds when it ends is given to others at once",
                    ("1", "job", {"topic": "jobs", **_JOB}),
                )
            },
        },
    ),
}  # fmt: skip
