"""Which topic a path is about, asked where the route table does not say: for paths that lead nowhere."""

from __future__ import annotations

from urllib.parse import unquote

ROOT = "/v0"
_TOPICS = f"{ROOT}/topics/"


def topic_in(raw_path: str) -> str | None:
    """The decoded name of the topic in a raw path."""
    if not raw_path.startswith(_TOPICS):
        return None
    segment = raw_path.removeprefix(_TOPICS).partition("/")[0]
    return unquote(segment, errors="replace") or None
