"""What requests of this surface hold, read strictly: an unknown field may be a misspelt one, and then a token would live for
ever that was meant to expire."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

import msgspec

from seamark import limits
from seamark.errors import BadRequest, UnsupportedMedia
from seamark.manifest.paths import is_slug
from seamark.wire.exchange import Exchange
from seamark.wire.query import number, parse
from seamark.wire.strictjson import decode

T = TypeVar("T")
_JSON = re.compile(rb"application/json\s*(;.*)?", re.IGNORECASE | re.DOTALL)
_PAGING = frozenset({"limit", "cursor"})


class Wanted(NamedTuple):
    """Which part of a list, and what else its query says."""

    limit: int
    cursor: str
    fields: dict[str, str]


def json_body(exchange: Exchange, decoder: msgspec.json.Decoder[T]) -> T:
    """The body as the decoder's type. Raises UnsupportedMedia, BadRequest."""
    if not _JSON.fullmatch(exchange.header(b"content-type") or b""):
        raise UnsupportedMedia("the body must be sent as Content-Type: application/json")
    return decode(exchange.body, decoder)


def page_wanted(exchange: Exchange, *also: str) -> Wanted:
    """`limit`, `cursor`, and the parameters that are named. Raises BadRequest."""
    fields = parse(exchange.query, _PAGING | {*also})
    limit = number(fields, "limit", limits.FLAGS_LISTED_DEFAULT, most=limits.FLAGS_LISTED_MAX)
    if limit == 0:
        raise BadRequest(f"limit must be a whole number from 1 to {limits.FLAGS_LISTED_MAX}", name="limit")
    return Wanted(limit, fields.get("cursor", ""), fields)


def version_number(text: str, name: str, *, least: int = 1) -> int:
    """Raises BadRequest, which calls the text `name`."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or not least <= int(text) <= limits.SEQ_MAX:
        raise BadRequest(f"{name} must be a whole number from {least} on, not {text[:80]!r}", name=name)
    return int(text)


def check_slug(text: str) -> str:
    """Raises BadRequest."""
    if not is_slug(text):
        message = (
            "a slug begins with a letter from a to z, goes on with such letters, digits and '-', and has at most 63"
        )
        raise BadRequest(f"{message}; {text[:80]!r} is none", name="slug")
    return text


def check_line(text: str, name: str) -> str:
    """A text for people. Raises BadRequest."""
    most = limits.FLAGS_TEXT_CHARS_MAX
    if len(text) > most or not text.isprintable():
        raise BadRequest(f"{name} must be one line of at most {most} characters", name=name)
    return text
