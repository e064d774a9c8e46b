"""Where a manifest keeps what: one file for the namespace, one for each flag and each segment."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

NAMESPACE_FILE = "namespace.toml"
FLAGS = "flags"
SEGMENTS = "segments"
SUFFIX = ".toml"
CATCH_ALL = "_"  # the block of a flag that answers where no environment's own does

_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_SLUG = re.compile(r"[a-z][a-z0-9-]{0,62}")
_PLACE = re.compile(r"(flags|segments)/([a-z][a-z0-9_-]{0,62})\.toml")


class Place(NamedTuple):
    """What a path holds. The key of the namespace file is empty."""

    kind: Literal["namespace", "flag", "segment"]
    key: str


_NAMESPACE = Place("namespace", "")


def flag_path(key: str) -> str:
    return f"{FLAGS}/{key}{SUFFIX}"


def segment_path(key: str) -> str:
    return f"{SEGMENTS}/{key}{SUFFIX}"


def place_of(path: str) -> Place | None:
    """None where a manifest holds no such path."""
    if path == NAMESPACE_FILE:
        return _NAMESPACE
    found = _PLACE.fullmatch(path)
    if found is None:
        return None
    return Place("flag" if found[1] == FLAGS else "segment", found[2])


def is_slug(text: str) -> bool:
    """Of a tenant or a namespace."""
    return _SLUG.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Of a flag or a segment. Unlike a slug it may have underscores."""
    return _KEY.fullmatch(text) is not None


def is_environment(text: str) -> bool:
    """Of one that can be evaluated in, which the catch-all cannot."""
    return _SLUG.fullmatch(text) is not None
