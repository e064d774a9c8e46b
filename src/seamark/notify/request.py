"""The body that notification, watch and replay share, read in three stages of which each has a name: it is not JSON, it has a
field that nobody knows, it is of the wrong shape.

Nearly every body is right, so it is decoded once, as a whole. Only when that fails are the stages gone through one by one;
they decide, because they know what a decoder that stops at the first fault cannot: that the last of two equal keys counts,
and that an unknown field comes before a missing one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.errors import BadRequest, NotJson, UnknownField, WrongShape
from seamark.notify.scalars import has_long_numbers, within_64_bits
from seamark.wire.strictjson import decode


class Request(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What was asked. `payload` None means null or absent: there is no difference."""

    event_type: str
    identifier: dict[str, Any]
    from_id: str | None = None
    from_date: str | None = None
    to_id: str | None = None
    to_date: str | None = None
    payload: Any = None


FIELDS = tuple(field.name for field in msgspec.structs.fields(Request))
_WHOLE = msgspec.json.Decoder(Request)
_ANY = msgspec.json.Decoder(Any)


def parse(body: bytes) -> Request:
    """Raises NotJson, UnknownField or WrongShape."""
    try:
        request = decode(body, _WHOLE)
    except BadRequest:
        request = _staged(body)
    if has_long_numbers(body):
        request.identifier = within_64_bits(request.identifier)
        request.payload = within_64_bits(request.payload)
    return request


def _staged(body: bytes) -> Request:
    try:
        document = decode(body, _ANY)
    except BadRequest as error:
        raise NotJson(f"JSON parsing failed: {error.message}") from None
    if has_long_numbers(body):
        document = within_64_bits(document)
    if not isinstance(document, dict):
        raise _wrong(f"invalid type: {_kind(document)}, expected struct NotificationRequest")
    for key in document:
        if key not in FIELDS:
            allowed = ", ".join(f'"{name}"' for name in FIELDS)
            why = f"Unknown field '{key}' in request. Allowed fields: [{allowed}]"
            raise UnknownField(f"Request contains unknown fields: {why}", field=key)
    _check_shape(document)
    return Request(**document)


def _check_shape(document: dict[str, Any]) -> None:
    for name, kind, expected in (("event_type", str, "a string"), ("identifier", dict, "a map")):
        if name not in document:
            raise _wrong(f"missing field `{name}`")
        if not isinstance(document[name], kind):
            raise _wrong(f"invalid type: {_kind(document[name])}, expected {expected} at `{name}`")
    for name in ("from_id", "from_date", "to_id", "to_date"):
        if not isinstance(document.get(name), str | None):
            raise _wrong(f"invalid type: {_kind(document[name])}, expected a string at `{name}`")


def _wrong(why: str) -> WrongShape:
    return WrongShape(f"Request deserialization failed: {why}")


def _kind(value: object) -> str:
    """A JSON value in words. A bool is an int in Python, and not on the wire."""
    for kind, word in (
        (str, "string"),
        (bool, "boolean"),
        (int, "integer"),
        (float, "floating point number"),
        (list, "sequence"),
    ):
        if isinstance(value, kind):
            return word
    return "null" if value is None else "map"
