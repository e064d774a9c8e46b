"""Query strings. `parse` is strict: an unknown or repeated parameter is a mistake worth telling the client about."""

from __future__ import annotations

from urllib.parse import parse_qsl

from seamark import limits
from seamark.errors import BadRequest


def pairs_of(query: bytes) -> list[tuple[str, str]]:
    """Every parameter in its place, also repeated ones. Raises BadRequest."""
    if not query:
        return []
    try:
        return parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=limits.QUERY_FIELDS_MAX
        )
    except ValueError:
        raise BadRequest("the query string is not valid percent-encoded UTF-8, or has too many fields") from None


def parse(query: bytes, accepted: frozenset[str]) -> dict[str, str]:
    """The parameters of a query that takes each of these once at the most. Raises BadRequest."""
    pairs = pairs_of(query)
    fields = dict(pairs)
    for name in fields:
        if name not in accepted:
            raise BadRequest(f"unknown query parameter {name!r}; accepted: {', '.join(sorted(accepted))}", name=name)
    if len(fields) != len(pairs):
        raise BadRequest("a query parameter is given twice")
    return fields


def number(fields: dict[str, str], name: str, default: int, *, most: int = limits.SEQ_MAX) -> int:
    """A whole number from 0 to `most`."""
    text = fields.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > most:
        raise BadRequest(f"{name} must be a whole number from 0 to {most}, not {text!r}", name=name)
    return int(text)


def flag(fields: dict[str, str], name: str) -> bool:
    """A yes or no; absent means no."""
    text = fields.get(name, "false")
    if text not in {"true", "false", "1", "0"}:
        raise BadRequest(f"{name} must be true or false, not {text!r}", name=name)
    return text in {"true", "1"}
