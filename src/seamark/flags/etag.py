"""Entity tags: whether a client has already what it asks for."""

from __future__ import annotations

import re

from seamark.wire.exchange import Exchange

_TAG = re.compile(rb'[\s,]*(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)')


def matches(exchange: Exchange, tag: bytes) -> bool:
    """Whether `If-None-Match` names `tag`, weakly or not, or says `*`. What is malformed ends the list."""
    text = b",".join(value for name, value in exchange.headers if name == b"if-none-match")
    if text.strip() == b"*":
        return True
    at = 0
    while found := _TAG.match(text, at):
        if found[1] == tag:
            return True
        at = found.end()
    return False
