"""Errors as this surface words them: `{"error":{"code","message","detail"?}}`, nothing beside it and nothing more in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from seamark import errors
from seamark.errors import SeamarkError
from seamark.topics.model import topic_of
from seamark.wire.exchange import Headers
from seamark.wire.problem import ENCODER

RETRY_AFTER_SECONDS = 1
_INTERNAL = "something went wrong on our side; the server's log says what"


class _Word(NamedTuple):
    """How one kind of error is said. `detail` names the facts that are told, by their names here."""

    status: int
    code: str
    detail: Mapping[str, str] = {}
    retry: bool = False


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_TOPIC = {"stream": "topic"}
_FULL = {"stream": "topic", "cap_records": "cap_records", "cap_bytes": "cap_bytes", "head": "head_seq", "earliest": "earliest_seq"}  # fmt: skip

# The nearest kind above an error that is not listed speaks for it.
_WORDS: dict[type[SeamarkError], _Word] = {
    SeamarkError: _Word(500, "internal"),
    errors.BadInput: _Word(400, "invalid_request"),
    errors.RecordTooLarge: _Word(400, "record_too_large", _same("bytes", "max")),
    errors.BatchTooLarge: _Word(400, "batch_too_large", _same("records", "seqs", "max")),
    errors.BodyTooLarge: _Word(413, "payload_too_large", _same("max")),
    errors.UnsupportedMedia: _Word(415, "unsupported_media_type"),
    errors.NotAcceptable: _Word(406, "not_acceptable"),
    errors.Unauthenticated: _Word(401, "unauthorized"),
    errors.Denied: _Word(403, "forbidden", _same("topic")),
    errors.Missing: _Word(404, "not_found"),
    errors.StreamNotFound: _Word(404, "topic_not_found", _TOPIC),
    errors.RouterNotFound: _Word(404, "router_not_found", _same("router")),
    errors.MethodNotAllowed: _Word(405, "method_not_allowed"),
    errors.Conflict: _Word(409, "topic_exists_incompatible", _TOPIC),
    errors.TopicIncompatible: _Word(
        409, "topic_exists_incompatible", _same("topic", "existing_type", "requested_type", "reason")
    ),
    errors.NotEmpty: _Word(409, "topic_not_empty", {**_TOPIC, "count": "count"}),
    errors.NotAQueue: _Word(409, "not_a_queue", _TOPIC),
    errors.RouterCycle: _Word(409, "router_cycle", _same("cycle")),
    errors.Refused: _Word(429, "throttled", _same("limit", "max"), retry=True),
    errors.StreamFull: _Word(422, "topic_full", _FULL),
    errors.NotReady: _Word(503, "not_ready", _same("replay_progress"), retry=True),
    errors.ShuttingDown: _Word(503, "shutting_down", retry=True),
}
_LIMITS = {  # the core's names for what clients of this surface know by others
    "quota_bytes": "max_total_bytes", "STREAMS_MAX": "max_topics", "SESSIONS_MAX": "max_sse_connections",
}  # fmt: skip


def topics_problem(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    """Status, body and extra headers for an error. What is not a SeamarkError, or a fault of ours, says nothing of itself."""
    if not isinstance(error, SeamarkError):
        error = SeamarkError(_INTERNAL)
    word = next(_WORDS[kind] for kind in type(error).__mro__ if kind in _WORDS)
    message = error.message if word.status != 500 else _INTERNAL
    stream = error.fields.get("stream")
    if isinstance(stream, str):
        message = message.replace(f"stream {stream}", f"topic {topic_of(stream)}").replace(stream, topic_of(stream))
    body: dict[str, object] = {"code": word.code, "message": message}
    detail = {name: _named(field, error.fields[field]) for field, name in word.detail.items() if field in error.fields}
    if detail:
        body["detail"] = detail
    headers: list[tuple[bytes, bytes]] = []
    if word.retry:
        seconds = error.fields.get("retry_after_seconds", RETRY_AFTER_SECONDS)
        headers.append((b"Retry-After", b"%d" % max(1, int(seconds))))
    return word.status, ENCODER.encode({"error": body}), headers


def _named(field: str, value: Any) -> Any:
    """A fact in the words of this surface."""
    if field == "stream":
        return topic_of(value)
    return _LIMITS.get(value, value) if field == "limit" else value
