"""One tree of errors. Each has a stable `code`, an HTTP-aligned `status` and named fields; surfaces map them to
their own envelope in one place, and nothing ever parses a message.

SeamarkError
├── BadInput                 what was asked makes no sense
│   ├── BadConfig            a setting is unknown or ill-typed; start-up stops
│   ├── BadFilter            a constraint, pattern or geometry cannot be compiled
│   ├── BadField             a field of a notification, or of what is asked for, does not fit its schema
│   ├── UnknownEventType     only event types with a schema are taken, and this one has none
│   ├── BadRequest           an HTTP request is malformed, or asks for what cannot be given: NotJson, UnknownField, WrongShape
│   ├── InvalidSubscription  what a flags client wants to be told of cannot be told: too much of it, or nonsense
│   ├── LintFailed           a manifest has errors, or (SchemaVersionMismatch) is of another time
│   ├── MalformedList        a list of flags is not one; TooManyFlags: it is, and too long
│   ├── BadArchive           it is no tar.gz that holds a manifest; ArchiveTooLarge: it may be one, and is too big
│   ├── BadDelta             changes to a closure that contradict themselves or their hashes
│   ├── RecordTooLarge       a record or a batch is beyond its bound
│   └── BatchTooLarge        so many items do not fit one call
├── Denied                   Unauthenticated, Forbidden, ClosureTokenInvalid
├── Missing                  StreamNotFound, RouteNotFound, RouterNotFound, SessionNotFound, TenantNotFound, NamespaceNotFound,
│                            TokenNotFound, ManifestNotFound, VersionNotFound, ClosureUnavailable, FlagNotFound
├── Conflict                 HeadConflict, TopicIncompatible, NotEmpty, NotAQueue, RouterCycle, TenantExists, NamespaceExists,
│                            VersionConflict, SuperadminExists
├── Refused                  StreamFull, QuotaExceeded, Busy, NotReady, ShuttingDown, Unreachable: try later or make room
└── Fault                    the store failed
    ├── WriteFailed          nothing was acknowledged; reads still work
    ├── Corrupt              a stored byte changed; it is not served
    └── StoreLocked          another process owns the data directory
"""

from __future__ import annotations

from typing import Any, ClassVar


class SeamarkError(Exception):
    """Base of all. `fields` are facts for machines; the message is for people."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __str__(self) -> str:
        return self.message


class BadInput(SeamarkError):
    code = "bad_input"
    status = 400


class BadConfig(BadInput):
    """Fields: `name`, `place`, `accepts`."""

    code = "bad_config"


class BadFilter(BadInput):
    """Fields: `field` where known."""

    code = "bad_filter"


class BadField(BadInput):
    """Fields: `field` where known, `details` where the cause says more than the message."""

    code = "bad_field"


class UnknownEventType(BadInput):
    """Fields: `event_type`, `configured`."""

    code = "unknown_event_type"


class BadRequest(BadInput):
    code = "bad_request"


class NotJson(BadRequest):
    code = "not_json"


class UnknownField(BadRequest):
    """Fields: `field`."""

    code = "unknown_field"


class WrongShape(BadRequest):
    """It is JSON, but a field is missing or of another type."""

    code = "wrong_shape"


class BodyTooLarge(BadRequest):
    """Fields: `max`."""

    code = "body_too_large"
    status = 413


class UnsupportedMedia(BadRequest):
    code = "unsupported_media_type"
    status = 415


class NotAcceptable(BadRequest):
    """The answer has a media type that the client did not ask for. Fields: `media`."""

    code = "not_acceptable"
    status = 406


class MalformedList(BadInput):
    code = "malformed_list"


class TooManyFlags(BadInput):
    """Fields: `max`."""

    code = "too_many_flags"


class BadArchive(BadInput):
    """Fields: `member` where known."""

    code = "bad_archive"


class ArchiveTooLarge(BadInput):
    """Fields: `max`."""

    code = "archive_too_large"
    status = 413


class BadDelta(BadInput):
    """Fields: `reason`, `path`."""

    code = "bad_delta"


class QueryTooLong(BadRequest):
    """Fields: `max`."""

    code = "query_too_long"
    status = 414


class InvalidSubscription(BadInput):
    """Fields: `reason`, and `namespace` where one is to blame."""

    code = "invalid_subscription"


class LintFailed(BadInput):
    """A manifest has errors; nothing of it was taken. Fields: `lint`."""

    code = "manifest_lint_failed"
    status = 422


class SchemaVersionMismatch(BadInput):
    """A manifest is written for another major version than this server reads. Fields: `found`, `supported`."""

    code = "schema_version_mismatch"
    status = 422


class UnknownEnvironment(BadInput):
    """The namespace declares its environments, and not this one. Fields: `environment`."""

    code = "unknown_environment"


class RecordTooLarge(BadInput):
    """Fields: `bytes`, `max`."""

    code = "record_too_large"


class BatchTooLarge(BadInput):
    """Fields: what was counted (`records` or `seqs`), `max`."""

    code = "batch_too_large"


class Denied(SeamarkError):
    code = "denied"
    status = 403


class Unauthenticated(Denied):
    code = "unauthenticated"
    status = 401


class Forbidden(Denied):
    """Fields: `action`, `resource`."""

    code = "forbidden"


class ClosureTokenInvalid(Denied):
    """A signed address of a closure is made up, expired, or for something else. It does not say which."""

    code = "closure_token_invalid"
    status = 401


class Missing(SeamarkError):
    code = "missing"
    status = 404


class StreamNotFound(Missing):
    """Fields: `stream`."""

    code = "stream_not_found"


class RouteNotFound(Missing):
    code = "route_not_found"


class RouterNotFound(Missing):
    """Fields: `router`."""

    code = "router_not_found"


class SessionNotFound(Missing):
    """It never was, it ended, or it was given up. Its id is a secret and not repeated."""

    code = "session_not_found"


class TenantNotFound(Missing):
    """Fields: `tenant`."""

    code = "tenant_not_found"


class NamespaceNotFound(Missing):
    """Also what is said of a version that does not exist yet, where its number must not be told. Fields: `tenant`,
    `namespace`."""

    code = "namespace_not_found"


class TokenNotFound(Missing):
    """There is none, or it is none of the caller's business. Fields: `id`."""

    code = "token_not_found"


class ManifestNotFound(Missing):
    """The namespace is there, and nothing was ever pushed to it. Fields: `namespace`."""

    code = "manifest_not_found"


class VersionNotFound(Missing):
    """Fields: `namespace`, `version`."""

    code = "version_not_found"


class ClosureUnavailable(Missing):
    """The version was, but its files are no longer kept. Fields: `namespace`, `version`."""

    code = "closure_unavailable"
    status = 410


class FlagNotFound(Missing):
    """Fields: `flag`."""

    code = "flag_not_found"


class MethodNotAllowed(SeamarkError):
    """Fields: `allow`."""

    code = "method_not_allowed"
    status = 405


class Conflict(SeamarkError):
    code = "conflict"
    status = 409


class HeadConflict(Conflict):
    """The stream is not where the writer thought. Fields: `stream`, `expected`, `head`."""

    code = "head_conflict"

    @classmethod
    def at(cls, stream: str, *, expected: int, head: int) -> HeadConflict:
        return cls(f"{stream} is at {head}, not at {expected}", stream=stream, expected=expected, head=head)


class TopicIncompatible(Conflict):
    """A topic or router is already there and is of another kind. Fields: `topic`, and `existing_type` with
    `requested_type`, or `reason`."""

    code = "topic_exists_incompatible"


class NotEmpty(Conflict):
    """Only an empty one was to be removed. Fields: `stream`, `count`."""

    code = "not_empty"


class NotAQueue(Conflict):
    """Fields: `stream`."""

    code = "not_a_queue"


class RouterCycle(Conflict):
    """Fields: `cycle`, the topics from the new source back to itself."""

    code = "router_cycle"


class TenantExists(Conflict):
    """Fields: `tenant`."""

    code = "tenant_exists"


class NamespaceExists(Conflict):
    """Fields: `tenant`, `namespace`."""

    code = "namespace_exists"


class VersionConflict(Conflict):
    """The manifest is not at the version that the writer saw. Fields: `expected`, `current_version`."""

    code = "version_conflict"


class SuperadminExists(Conflict):
    """The first superadmin token was made before. Fields: `tokens`."""

    code = "superadmin_exists"


class Refused(SeamarkError):
    """Nothing is wrong with the request; there is no room for it now. Fields: `retry_after_seconds` where known."""

    code = "refused"
    status = 429


class StreamFull(Refused):
    """A `reject` stream is at its cap. Fields: `stream`, `cap_records`, `cap_bytes`, `head`, `earliest`."""

    code = "stream_full"
    status = 422


class QuotaExceeded(Refused):
    """Fields: `limit`, `max`."""

    code = "quota_exceeded"


class Busy(Refused):
    """A bounded resource is taken. Fields: `limit`, `max`, `retry_after_seconds`."""

    code = "busy"


class NotReady(Refused):
    """The server still gathers what it knows. Fields: `replay_progress` (0 to 1), `retry_after_seconds`."""

    code = "not_ready"
    status = 503


class ShuttingDown(Refused):
    code = "shutting_down"
    status = 503


class Unreachable(Refused):
    """A service that has to be asked first cannot be, or answers as it should not. Fields: `service`, and `cause` or
    `status`."""

    code = "unreachable"
    status = 503


class Fault(SeamarkError):
    code = "fault"
    status = 500


class WriteFailed(Fault):
    """The store refused a commit: nothing of it was acknowledged, reads go on. Fields: `cause`."""

    code = "write_failed"
    status = 503


class Corrupt(Fault):
    """A stored value fails its checksum or its structure. Fields: `stream`, `seq`, `where`."""

    code = "corrupt"


class StoreLocked(Fault):
    """Fields: `path`, `owner`."""

    code = "store_locked"
