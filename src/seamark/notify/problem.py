"""Errors in the words of the contract. Which shape a body has depends on what went wrong and where; docs call them A to G."""

from __future__ import annotations

import enum

from seamark.errors import (
    BadInput,
    BodyTooLarge,
    Denied,
    MethodNotAllowed,
    NotJson,
    Refused,
    RouteNotFound,
    SeamarkError,
    StreamFull,
    Unauthenticated,
    UnknownEventType,
    UnknownField,
    WrongShape,
)
from seamark.notify.scalars import ENCODER
from seamark.wire.exchange import Headers
from seamark.wire.problem import RETRY_AFTER_SECONDS

ROOT = "/api/v1"  # what is below it and nobody's is answered in the words of this surface
Answer = tuple[int, bytes, Headers]
PARSE_CODES: dict[type[BadInput], str] = {
    NotJson: "INVALID_JSON",
    UnknownField: "UNKNOWN_FIELD",
    WrongShape: "INVALID_REQUEST_SHAPE",
}
_TEXT = ((b"Content-Type", b"text/plain; charset=utf-8"),)
INTERNAL_MESSAGE = "something went wrong on our side; the log has the request id"


class Endpoint(enum.StrEnum):
    """The three that share a request; the value is how their names begin in labels and codes."""

    NOTIFICATION = "Notification"
    WATCH = "Watch"
    REPLAY = "Replay"

    @property
    def label(self) -> str:
        return f"Invalid {self.value} Request"

    @property
    def code(self) -> str:
        return f"INVALID_{self.value.upper()}_REQUEST"


def request_problem(endpoint: Endpoint, error: Exception, request_id: str) -> Answer:
    """Status, body and headers, for notification, watch and replay."""
    if isinstance(error, BodyTooLarge | RouteNotFound | MethodNotAllowed):
        return bare(error)
    if isinstance(error, UnknownEventType):
        return 400, _unknown_event_type(error, request_id), ()
    if isinstance(error, BadInput):
        code = PARSE_CODES.get(type(error), endpoint.code)
        return 400, _detailed(code, endpoint.label, error, request_id), ()
    if isinstance(error, Denied) or not isinstance(error, SeamarkError):
        return plain(error, request_id)
    if isinstance(error, Refused) and not isinstance(error, StreamFull):
        return plain(error, request_id)
    if endpoint is Endpoint.NOTIFICATION:
        return 500, _detailed("NOTIFICATION_STORAGE_FAILED", "Notification Storage Failed", error, request_id), ()
    return 500, _no_stream(error, request_id), ()


def plain(error: Exception, request_id: str) -> Answer:
    """Shape C: who may not, what is not there now, and what nobody expected. What is no SeamarkError says nothing about
    itself."""
    if isinstance(error, Unauthenticated):
        # One line for each scheme, as the contract has it.
        challenges = [(b"WWW-Authenticate", scheme.encode()) for scheme in error.fields.get("schemes", ("Bearer",))]
        return 401, _body("UNAUTHORIZED", "unauthorized", error.message, request_id), challenges
    if isinstance(error, Denied):
        return 403, _body("FORBIDDEN", "forbidden", error.message, request_id), ()
    if isinstance(error, Refused):
        seconds = int(error.fields.get("retry_after_seconds", RETRY_AFTER_SECONDS))
        headers = [(b"Retry-After", b"%d" % max(1, seconds))]
        return 503, _body("SERVICE_UNAVAILABLE", "service_unavailable", error.message, request_id), headers
    message = error.message if isinstance(error, SeamarkError) else INTERNAL_MESSAGE
    return 500, _body("INTERNAL_ERROR", "internal_error", message, request_id), ()


def admin_problem(error: Exception, request_id: str) -> Answer:
    """Shape E; those who may not are told so in shape C. A body that cannot be read has no shape at all."""
    if isinstance(error, Denied):
        return plain(error, request_id)
    if isinstance(error, BodyTooLarge | RouteNotFound | MethodNotAllowed | NotJson | UnknownField | WrongShape):
        return bare(error)
    if not isinstance(error, SeamarkError):
        return 500, admin_body(False, INTERNAL_MESSAGE, request_id), ()
    status = error.status if error.status in {400, 404, 503} else 500
    return status, admin_body(False, error.message, request_id), ()


def catalogue_problem(error: Exception, request_id: str) -> Answer:
    """For schema discovery, where nobody is refused and nothing is asked for: only HTTP itself can go wrong."""
    return bare(error) if isinstance(error, BadInput | RouteNotFound | MethodNotAllowed) else plain(error, request_id)


def admin_body(success: bool, message: str, request_id: str, *, notification_id: str | None = None) -> bytes:
    """The one kind of body whose keys are not sorted."""
    parts = [
        ("success", success),
        ("message", message),
        *([] if notification_id is None else [("notification_id", notification_id)]),
        ("request_id", request_id),
    ]
    return b"{" + b",".join(b'"%b":%b' % (key.encode(), ENCODER.encode(value)) for key, value in parts) + b"}"


def bare(error: SeamarkError) -> Answer:
    """Shape G: text, or nothing; only the header carries the request id."""
    return error.status, b"" if isinstance(error, RouteNotFound) else error.message.encode(), _TEXT


def _detailed(code: str, label: str, error: SeamarkError, request_id: str, **more: str) -> bytes:
    """Shape A; with `topic` it is shape B."""
    details = error.fields.get("details", error.message)
    body = {"code": code, "details": details, "error": label, "message": error.message, "request_id": request_id}
    return ENCODER.encode(body | more)


def _no_stream(error: SeamarkError, request_id: str) -> bytes:
    topic = str(error.fields.get("topic", ""))
    return _detailed("SSE_STREAM_INITIALIZATION_FAILED", "SSE stream creation failed", error, request_id, topic=topic)


def _unknown_event_type(error: UnknownEventType, request_id: str) -> bytes:
    return ENCODER.encode(
        {
            "code": "UNKNOWN_EVENT_TYPE",
            "configured_event_types": sorted(error.fields["configured"]),
            "error": "unknown_event_type",
            "message": error.message,
            "request_id": request_id,
        }
    )


def _body(code: str, label: str, message: str, request_id: str) -> bytes:
    return ENCODER.encode({"code": code, "error": label, "message": message, "request_id": request_id})
