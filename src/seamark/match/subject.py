"""A subject: the path of tokens a record is about, its wire form (the topic), and patterns over it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from seamark.errors import BadFilter

Subject: TypeAlias = tuple[str, ...]
Pattern: TypeAlias = tuple[str | None, ...]
"""None stands for any one token."""

WILDCARD = "*"

_ENCODED = {".": "%2E", "*": "%2A", ">": "%3E", "%": "%25"}
_DECODED = {code: char for char, code in _ENCODED.items()}
_RESERVED = re.compile(r"[.*>%]")
_ESCAPE = re.compile(r"%.{0,2}", re.DOTALL)


def encode_token(token: str) -> str:
    """One token as it stands in a topic: only `.`, `*`, `>` and `%` are escaped."""
    return _RESERVED.sub(lambda found: _ENCODED[found[0]], token)


def decode_token(text: str) -> str:
    """The reverse, in one pass; any other use of `%` is an error."""
    if "%" not in text:
        return text
    return _ESCAPE.sub(_decode_escape, text)


def format_topic(tokens: Iterable[str]) -> str:
    return ".".join(map(encode_token, tokens))


def parse_topic(text: str) -> Subject:
    return tuple(map(decode_token, text.split(".")))


def pattern_of(tokens: Iterable[str]) -> Pattern:
    """A pattern from decoded tokens. A value that is literally `*` is a wildcard: the wire has no other word for it."""
    return tuple(None if token == WILDCARD else token for token in tokens)


def parse_pattern(text: str) -> Pattern:
    return pattern_of(parse_topic(text))


def display(pattern: Pattern) -> str:
    """For people: decoded tokens joined by dots, which is ambiguous when a value holds a dot."""
    return ".".join(WILDCARD if token is None else token for token in pattern)


def covers(pattern: Pattern, subject: Subject | None) -> bool:
    """Equal length, and each token equal or left open."""
    if subject is None or len(pattern) != len(subject):
        return False
    return all(want is None or want == token for want, token in zip(pattern, subject, strict=True))


def _decode_escape(found: re.Match[str]) -> str:
    char = _DECODED.get(found[0])
    if char is None:
        raise BadFilter(f"topic has a malformed escape {found[0]!r}", field="topic")
    return char
