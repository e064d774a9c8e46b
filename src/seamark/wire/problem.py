"""The plain problem body, for surfaces whose contract names no other: `{"error":{code,message,detail?},"request_id"}`."""

from __future__ import annotations

import msgspec

from seamark.errors import Refused, SeamarkError, Unauthenticated
from seamark.wire.exchange import Headers

ENCODER = msgspec.json.Encoder(enc_hook=str)
RETRY_AFTER_SECONDS = 1


def plain_problem(error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
    """Status, body and extra headers for an error. What is not a SeamarkError says nothing about itself."""
    if not isinstance(error, SeamarkError):
        error = SeamarkError("something went wrong on our side; the log has the request id")
    body: dict[str, object] = {"code": error.code, "message": error.message}
    if error.fields:
        body["detail"] = error.fields
    headers: list[tuple[bytes, bytes]] = []
    if isinstance(error, Refused) or error.status == 503:
        seconds = error.fields.get("retry_after_seconds", RETRY_AFTER_SECONDS)
        headers.append((b"Retry-After", b"%d" % max(1, int(seconds))))
    if isinstance(error, Unauthenticated):
        headers.append((b"WWW-Authenticate", b"Bearer"))
    return error.status, ENCODER.encode({"error": body, "request_id": request_id}), headers
