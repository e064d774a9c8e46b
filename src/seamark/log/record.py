"""A record: what is appended (`Draft`), and what it becomes once it has a place in a stream (`Record`)."""

from __future__ import annotations

import msgspec


class Geometry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a record is about: the producer's own text, and its bounds for cheap tests.

    `text` is None when only the bounds are known; such a record can fail a spatial filter but never pass one.
    """

    text: str | None
    min_lat: float
    min_lon: float
    max_lat: float
    max_lon: float


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A record before it has a place. `payload` and `meta` are kept byte for byte."""

    payload: bytes
    node: str | None = None
    tag: str | None = None
    meta: bytes | None = None
    subject: tuple[str, ...] | None = None
    geometry: Geometry | None = None


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record in its stream: immutable, at `seq`, stored at `ts` (nanoseconds since the epoch, never going back)."""

    seq: int
    ts: int
    payload: bytes
    node: str | None = None
    tag: str | None = None
    meta: bytes | None = None
    subject: tuple[str, ...] | None = None
    geometry: Geometry | None = None

    @property
    def size(self) -> int:
        """What the record counts against byte caps and quotas: payload plus meta."""
        meta = self.meta
        return len(self.payload) if meta is None else len(self.payload) + len(meta)
