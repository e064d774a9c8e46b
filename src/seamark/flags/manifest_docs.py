"""What the OpenAPI document says about manifests and evaluation."""

from __future__ import annotations

from typing import Any

from seamark.flags.docs import REQUEST_ID, Described, body, header, json, paging
from seamark.flags.table import NO_TOKEN, Operation

BASE = "/api/v1/tenants/{tenant}/namespaces/{namespace}/manifest"
EVALUATE = "/api/v1/tenants/{tenant}/namespaces/{namespace}/evaluate"

_TOKEN_ID = "tok_01HV5XJ8W2Z4K6M8P0R2T4V6X8"
_WARNING = {
    "code": "W003", "severity": "warning", "path": "flags/banner.toml",
    "message": "flag 'banner': no rules in any environment",
}  # fmt: skip
_LINT: dict[str, object] = {"errors": [], "warnings": [_WARNING], "infos": []}
_PUSHED = {
    "version": 42, "uploaded_at": "2026-02-25T19:04:00.250Z", "flag_count": 12, "segment_count": 3, "lint": _LINT,
    "request_id": REQUEST_ID,
}  # fmt: skip
_VERSION = {
    "version": 42, "uploaded_at": "2026-02-25T19:04:00.250Z", "uploaded_by": _TOKEN_ID, "flag_count": 12,
    "segment_count": 3, "file_count": 16, "bytes": 4711,
    "closure_hash": "sha256:48e7d9b8e70e689891646e7f9e458d58d1d20ca431988fbbf0a3d09aa7c42771", "warning_count": 1,
    "restored_version": None, "files_available": True,
}  # fmt: skip
_RESULT = {"variant": "on", "value": True, "rule_matched": "rule:0"}
_IF_VERSION = header(
    "If-Version", "the current version must be this one; 0: there is none yet. Without it, whatever there is"
)
_CONTEXT = {"environment": "production", "context": {"user.email": "jo@example.com"}, "include_testing": False}


def _archive(text: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": ["archive"],
        "properties": {"archive": {"type": "string", "format": "binary", "description": text}},
    }
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def _evaluated(flags: dict[str, object]) -> Described:
    facts = {"version": 42, "environment": "production", **flags, "request_id": REQUEST_ID}
    return json(facts, "`rule_matched` is `rule:<i>`, or `default`")


_PREFLIGHT: Operation = (
    "What a browser asks before a page may evaluate",
    NO_TOKEN,
    {
        "parameters": [header("Origin", "the page's")],
        "responses": {
            "204": {"description": "`Access-Control-Allow-Origin` is there when a token of the namespace allows it"}
        },
    },
)

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", BASE): (
        "The current manifest as tar.gz",
        "manifest.read",
        {
            "parameters": [header("If-None-Match", "the tag of an answer that is at hand")],
            "responses": {
                "200": {
                    "description": "the archive; its version is in `ETag` and in `Exd-Manifest-Version`",
                    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
                },
                "304": {"description": "the tag still holds"},
            },
        },
    ),
    ("PUT", BASE): (
        "Push a manifest: it becomes the next version if it has no errors",
        "manifest.write",
        {
            "parameters": [_IF_VERSION],
            "requestBody": _archive("the manifest as tar.gz"),
            "responses": {"200": json(_PUSHED, "the new version, which is durable")},
        },
    ),
    ("GET", f"{BASE}/versions"): (
        "List versions, the newest first",
        "manifest.read",
        {
            "parameters": paging(),
            "responses": {
                "200": json(
                    {"versions": [_VERSION], "next_cursor": "42", "request_id": REQUEST_ID},
                    "`files_available` is false when the files of a version are no longer kept",
                )
            },
        },
    ),
    ("GET", f"{BASE}/versions/{{version}}"): (
        "A version",
        "manifest.read",
        {"responses": {"200": json({**_VERSION, "request_id": REQUEST_ID}, "`restored_version` is set by a rollback")}},
    ),
    ("POST", f"{BASE}/lint"): (
        "Check a manifest without pushing it",
        "manifest.read",
        {
            "requestBody": _archive("the manifest as tar.gz"),
            "responses": {
                "200": json({"passed": True, "lint": _LINT, "request_id": REQUEST_ID}, "also when it has errors")
            },
        },
    ),
    ("POST", f"{BASE}/rollback"): (
        "Make the files of an earlier version the newest version",
        "rollback",
        {
            "parameters": [_IF_VERSION],
            "requestBody": body({"version": 41}),
            "responses": {
                "200": json({**_PUSHED, "version": 43, "restored_version": 41}, "history is kept: the number goes up")
            },
        },
    ),
    ("POST", EVALUATE): (
        "Evaluate some flags",
        "evaluate",
        {
            "requestBody": body({"flags": ["checkout-redesign", "gone"], **_CONTEXT}),
            "responses": {
                "200": _evaluated({"results": {"checkout-redesign": _RESULT}, "errors": {"gone": "flag_not_found"}})
            },
        },
    ),
    ("POST", f"{EVALUATE}/all"): (
        "Evaluate every flag",
        "evaluate",
        {
            "requestBody": body(_CONTEXT),
            "responses": {"200": _evaluated({"results": {"checkout-redesign": _RESULT}, "errors": {}})},
        },
    ),
    ("OPTIONS", EVALUATE): _PREFLIGHT,
    ("OPTIONS", f"{EVALUATE}/all"): _PREFLIGHT,
}
