"""What the OpenAPI document says about the probes."""

from __future__ import annotations

from seamark.topics.docs import Operation, header, json

_HEALTH = {"status": "ok", "version": "0.1.0", "uptime_ms": 86_400_000}
_READY = {"status": "ready", "wal_replay_complete": True, "topics": 3}
_METRICS = {
    "topics": 3, "routers": 0, "records_live": 4_098, "bytes_live": 310_250, "queue_topics": 1,
    "queue_leases_in_flight": 2, "sse_connections": 1, "watch_sessions": 1, "topics_ephemeral": 0, "topics_memory": 0,
    "topics_disk": 2, "topics_fsync": 1, "ready": True, "replay_progress": 1.0, "uptime_ms": 86_400_000,
    "wal": {
        "fsyncs": 512, "frames": 4_098, "batches": 512, "bytes_written": 1_048_576, "rotations": 0, "queue_depth": 0,
        "queue_depth_peak": 16, "submit_full_total": 0, "read_only": False, "fsync_count": 512, "fsync_micros_total": 150_000,
    },
}  # fmt: skip
_METRICS_JSON = json(_METRICS, "topics that the key may not read have no series of their own")
_METRICS_ANSWER: Operation = {
    **_METRICS_JSON, "content": {**_METRICS_JSON["content"], "text/plain": {"schema": {"type": "string"}}},
}  # fmt: skip
_HEALTH_OPERATION: Operation = {"responses": {"200": json(_HEALTH, "the process answers")}}
_READY_OPERATION: Operation = {
    "responses": {
        "200": json(_READY, "requests are welcome"),
        "503": json({"error": {"code": "not_ready", "message": "...", "detail": {"replay_progress": 0.0}}}, "not yet, or no longer"),
    }
}  # fmt: skip

OPERATIONS: dict[tuple[str, str], tuple[str, Operation]] = {
    ("GET", "/v0/health"): ("Whether the server lives", _HEALTH_OPERATION),
    ("GET", "/healthz"): ("The same as `/v0/health`", _HEALTH_OPERATION),
    ("GET", "/v0/ready"): ("Whether requests are welcome", _READY_OPERATION),
    ("GET", "/readyz"): ("The same as `/v0/ready`", _READY_OPERATION),
    ("GET", "/v0/metrics"): (
        "What the topics surface counts, as Prometheus text, or as JSON when `Accept` says so",
        {
            "parameters": [header("Accept", "application/json for JSON; anything else for Prometheus text")],
            "responses": {"200": _METRICS_ANSWER},
        },
    ),
}
