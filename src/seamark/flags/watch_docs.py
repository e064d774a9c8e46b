"""What the OpenAPI document says about the event stream and the closures that it leads to."""

from __future__ import annotations

from typing import Any

from seamark.flags.docs import Described, header, query
from seamark.flags.table import NO_TOKEN, Operation

_HASH_A = "sha256:48e7d9b8e70e689891646e7f9e458d58d1d20ca431988fbbf0a3d09aa7c42771"
_HASH_B = "sha256:ae5b0efac75079ffb0feed74a200eac1955a7e75e26fc8436ba7f6adb0603888"
_EVENT = (
    "event: version\nid: billing:42\n"
    'data: {"protocol":"v2","namespace":"billing","version":42,"prev_version":41,'
    f'"prev_closure_hash":"{_HASH_A}","closure_hash":"{_HASH_B}","delivery":"inline",'
    '"files":[{"path":"segments/employees.toml","op":"leave"}]}\n\n'
)


def _required(described: Described) -> dict[str, Any]:
    return {**described, "required": True}


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api/v1/events"): (
        "Follow the manifests of one or several namespaces: each first as a snapshot, then as what changed",
        "manifest.read",
        {
            "parameters": [
                _required(
                    {
                        "name": "ns",
                        "in": "query",
                        "schema": {"type": "array", "items": {"type": "string"}},
                        "explode": True,
                        "description": "`<namespace>:<flags>`, once for each namespace; flags are `*`, or keys with commas"
                        " between them. A superadmin writes `<tenant>/<namespace>:<flags>`",
                    }
                ),
                query("since", "string", "`<namespace>:<version>`, comma-separated; advisory: it changes nothing"),
                header("Last-Event-ID", "`<namespace>:<version>`; likewise"),
            ],
            "responses": {
                "200": {
                    "description": "`version` and `resync` events, and `:keepalive` comments in silence",
                    "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EVENT}},
                }
            },
        },
    ),
    ("GET", "/api/v1/tenants/{tenant}/namespaces/{namespace}/closure"): (
        "What a subscription holds at a version, as tar.gz. A token of an event opens it, or one with `manifest.read`",
        NO_TOKEN,
        {
            "parameters": [
                _required(query("version", "integer", "of the manifest, from 1 on")),
                _required(query("subscription", "string", "the list of flags, in base64 for URLs without padding")),
                query("token", "string", "from an event; where it is given, it alone decides"),
                header("If-None-Match", "the tag of an answer that is at hand"),
            ],
            "responses": {
                "200": {
                    "description": "the archive, compressed; the tag is `v<version>-<closure_hash>`",
                    "content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}},
                },
                "304": {"description": "the tag still holds"},
            },
        },
    ),
}
