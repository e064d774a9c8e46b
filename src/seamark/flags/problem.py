"""Errors as this surface words them: `{"error":{"code","message","details"?},"request_id"}`, the request id as a ULID."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from seamark import errors
from seamark.errors import SeamarkError
from seamark.flags import ulid
from seamark.wire.exchange import Headers
from seamark.wire.problem import ENCODER, RETRY_AFTER_SECONDS

_INTERNAL = "something went wrong on our side; the log has the request id"


class _Word(NamedTuple):
    """How one kind of error is said. `details` names the facts that are told."""

    status: int
    code: str
    details: tuple[str, ...] = ()
    retry: bool = False


# The nearest kind above an error that is not listed speaks for it.
_WORDS: Mapping[type[SeamarkError], _Word] = {
    SeamarkError: _Word(500, "internal"),
    errors.BadInput: _Word(400, "invalid_request"),
    errors.InvalidSubscription: _Word(400, "invalid_subscription", ("reason", "namespace")),
    errors.UnknownEnvironment: _Word(400, "unknown_environment", ("environment",)),
    errors.LintFailed: _Word(422, "manifest_lint_failed", ("lint",)),
    errors.SchemaVersionMismatch: _Word(422, "schema_version_mismatch", ("found", "supported")),
    errors.ArchiveTooLarge: _Word(413, "archive_too_large", ("max",)),
    errors.BodyTooLarge: _Word(413, "payload_too_large", ("max",)),
    errors.UnsupportedMedia: _Word(415, "unsupported_media_type"),
    errors.NotAcceptable: _Word(406, "not_acceptable"),
    errors.Unauthenticated: _Word(401, "unauthorized"),
    errors.ClosureTokenInvalid: _Word(401, "closure_token_invalid"),
    errors.Denied: _Word(403, "forbidden"),
    errors.Missing: _Word(404, "not_found"),
    errors.TenantNotFound: _Word(404, "tenant_not_found"),
    errors.NamespaceNotFound: _Word(404, "namespace_not_found"),
    errors.TokenNotFound: _Word(404, "token_not_found"),
    errors.ManifestNotFound: _Word(404, "manifest_not_found"),
    errors.VersionNotFound: _Word(404, "version_not_found"),
    errors.FlagNotFound: _Word(404, "flag_not_found", ("flag",)),
    errors.ClosureUnavailable: _Word(410, "closure_unavailable", ("version",)),
    errors.MethodNotAllowed: _Word(405, "method_not_allowed"),
    errors.Conflict: _Word(409, "conflict"),
    errors.TenantExists: _Word(409, "tenant_exists", ("tenant",)),
    errors.NamespaceExists: _Word(409, "namespace_exists", ("namespace",)),
    errors.VersionConflict: _Word(409, "version_conflict", ("current_version",)),
    errors.Refused: _Word(429, "rate_limit_exceeded", ("limit", "max"), retry=True),
    errors.NotReady: _Word(503, "unavailable", retry=True),
    errors.ShuttingDown: _Word(503, "unavailable", retry=True),
    errors.Unreachable: _Word(503, "unavailable", retry=True),
    errors.WriteFailed: _Word(503, "unavailable", retry=True),
}
_CHALLENGE = (b"WWW-Authenticate", b"Bearer")


def flags_problem(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    """Status, body and extra headers for an error. What is not a SeamarkError, or a fault of ours, says nothing of itself."""
    if isinstance(error, errors.QueryTooLong):
        return error.status, b"", ()  # the contract has no body here
    if not isinstance(error, SeamarkError):
        error = SeamarkError(_INTERNAL)
    word = next(_WORDS[kind] for kind in type(error).__mro__ if kind in _WORDS)
    body: dict[str, object] = {"code": word.code, "message": error.message if word.status != 500 else _INTERNAL}
    details = {name: error.fields[name] for name in word.details if name in error.fields}
    if details:
        body["details"] = details
    headers: list[tuple[bytes, bytes]] = []
    if word.retry:
        seconds = error.fields.get("retry_after_seconds", RETRY_AFTER_SECONDS)
        headers.append((b"Retry-After", b"%d" % max(1, int(seconds))))
    if word.status == 401:
        headers.append(_CHALLENGE)
    return word.status, ENCODER.encode({"error": body, "request_id": ulid.of_request(request_id)}), headers
