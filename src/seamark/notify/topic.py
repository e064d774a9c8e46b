"""Topics: the base of an event type and the values of its key, as text.

Inside Seamark a topic is a stream (`notify:` and the base) and a subject (the values, not encoded). The encoded form names the
same thing in one word; the form for people is ambiguous when a value holds a dot.
"""

from __future__ import annotations

from collections.abc import Iterable

from seamark.match.subject import Pattern, Subject, display, format_topic, parse_topic

STREAM_PREFIX = "notify:"


def stream_of(base: str) -> str:
    """The log's name for the stream of a base."""
    return STREAM_PREFIX + base


def encode(base: str, values: Iterable[str]) -> str:
    """The wire form: each part percent-encoded where it holds `.`, `*`, `>` or `%`, joined by dots."""
    return format_topic((base, *values))


def decode(topic: str) -> tuple[str, Subject]:
    """Base and values of the wire form. Raises BadFilter when a `%` does not begin one of the four escapes."""
    base, *values = parse_topic(topic)
    return base, tuple(values)


def shown(base: str, pattern: Pattern) -> str:
    """For people, and for the `topic` of events and errors: `polygon.*.1200`."""
    return display((base, *pattern))
