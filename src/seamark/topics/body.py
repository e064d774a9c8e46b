"""Request bodies and queries, read the way this surface's clients expect: unknown fields are passed over, wrong types are
not, and numbers out of their range are moved into it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from seamark.errors import BadRequest, UnsupportedMedia
from seamark.wire.exchange import Exchange
from seamark.wire.query import pairs_of
from seamark.wire.strictjson import decode

T = TypeVar("T")
_JSON = b"application/json"


def check_media(exchange: Exchange) -> None:
    """Asked before the body is looked at. Raises UnsupportedMedia."""
    media = exchange.header(b"content-type")
    if media != _JSON and (media is None or not media.lower().startswith(_JSON)):
        raise UnsupportedMedia("the body must be sent as Content-Type: application/json")


def parse(exchange: Exchange, decoder: msgspec.json.Decoder[T]) -> T:
    """The body as the decoder's type. Raises UnsupportedMedia, BadRequest."""
    check_media(exchange)
    return decode(exchange.body, decoder)


def parse_or(exchange: Exchange, decoder: msgspec.json.Decoder[T], default: T) -> T:
    """The same where no body at all means `default`, whatever its content type."""
    return parse(exchange, decoder) if exchange.body else default


def clamped(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def or_default(value: int, default: int, high: int) -> int:
    """A bound that a client may lower: 0 means the default, and more than `high` means `high`."""
    return min(value, high) if value else default


def query_fields(query: bytes) -> dict[str, str]:
    """The parameters of a query, of repeated ones the first. Raises BadRequest."""
    return dict(reversed(pairs_of(query)))


def flag(fields: dict[str, str], name: str, default: bool) -> bool:
    """A yes or no; anything else means the default."""
    text = fields.get(name)
    if text in {"true", "1"}:
        return True
    return False if text in {"false", "0"} else default


def number(fields: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    """A whole number, moved into its range. Raises BadRequest for what is none."""
    text = fields.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        raise BadRequest(f"{name} must be a whole number, not {text!r}")
    return clamped(int(text), low, high)
