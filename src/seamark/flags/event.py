"""The events of the stream, to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from seamark.manifest.delta import FileChange
from seamark.stream import sse

PROTOCOL = "v2"
KEEPALIVE = sse.comment("keepalive")

_encode = msgspec.json.Encoder().encode


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    protocol: str = PROTOCOL
    namespace: str
    version: int
    prev_version: int | None
    prev_closure_hash: str | None
    closure_hash: str


class Inline(_Version, frozen=True, kw_only=True):
    """A new version as what is different from the one before. Its members are in the order of the contract."""

    delivery: Literal["inline"] = "inline"
    files: Sequence[FileChange]


class Snapshot(_Version, frozen=True, kw_only=True):
    """A new version as a place to fetch it whole."""

    delivery: Literal["snapshot"] = "snapshot"
    snapshot_url: str
    snapshot_size_bytes: int


class Resync(msgspec.Struct, frozen=True, kw_only=True):
    """What this connection said before no longer leads to where the namespace is."""

    protocol: str = PROTOCOL
    namespace: str
    current_version: int
    reason: Literal["unknown_since"]  # the others cannot happen here: what a connection was told is kept with it
    snapshot_url: str


def version_data(event: Inline | Snapshot) -> bytes:
    """The JSON alone, which has a bound."""
    return _encode(event)


def version_event(namespace: str, version: int, data: bytes) -> bytes:
    return sse.event(data, event="version", id=f"{namespace}:{version}", id_first=False)


def resync_event(event: Resync) -> bytes:
    name = f"{event.namespace}:{event.current_version}"
    return sse.event(_encode(event), event="resync", id=name, id_first=False)
