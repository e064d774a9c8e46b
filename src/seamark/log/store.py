"""What the log asks of a store: an ordered map of bytes in a few spaces, read through consistent views, changed by
atomic and durable writes. All meaning is above; an engine only keeps bytes."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from seamark.log.seal import Buffer


class Space(enum.IntEnum):
    """The named maps of a store."""

    FACTS = 0  # format, next stream id
    STREAMS = 1  # name -> Meta
    RECORDS = 2  # stream id, first seq -> chunk
    KEYS = 3  # stream id, idempotency key -> first receipt
    EXPIRY = 4  # when, stream id, idempotency key
    SUBJECTS = 5  # stream id, subject, seq; only for streams with latest_per_subject
    SHELF = 6  # Put values
    DROPPED = 7  # stream ids whose data awaits purge
    COLUMNS = 8  # stream id, block, part -> a column; only for indexed streams


Change = tuple[Space, bytes, Buffer | None]

ID = struct.Struct(">I")
PLACE = struct.Struct(">IQ")
SEQ = struct.Struct(">Q")


class StoreFailed(Exception):
    """A write was refused and nothing of it remains. Never leaves the log: it becomes `WriteFailed`."""


class View(Protocol):
    """A consistent snapshot. What it returns may be memory of the store itself: use it before the view is left."""

    def get(self, space: Space, key: bytes) -> Buffer | None: ...

    def scan(self, space: Space, start: bytes, stop: bytes | None = None) -> Iterator[tuple[bytes, Buffer]]:
        """Keys in `[start, stop)`, in order."""
        ...

    def floor(self, space: Space, key: bytes) -> tuple[bytes, Buffer] | None:
        """The greatest key not above `key`."""
        ...

    def beside(self, space: Space, key: bytes) -> list[tuple[bytes, Buffer]]:
        """What a search for `key` ends between. A damaged key leads searches astray, and then it is one of these. A store
        in which nothing can be damaged gives nothing."""
        ...


class Store(Protocol):
    """One engine's keeper of bytes."""

    @property
    def durable(self) -> bool:
        """Whether what was written survives this process."""
        ...

    def view(self) -> AbstractContextManager[View]: ...

    def write(self, changes: Sequence[Change]) -> float:
        """All or nothing, durable on return. Returns the seconds that the sync took. Raises StoreFailed."""
        ...

    def returned(self) -> bool:
        """True once after the store came back by itself in a state that may differ from the last write's answer."""
        ...

    def tend(self) -> None:
        """Periodic care."""
        ...

    def backup(self, path: str) -> None:
        """A consistent copy. Raises Fault when the engine has nothing that could be copied."""
        ...

    def facts(self) -> dict[str, str | int | float | bool]:
        """What to say about the store on a health page."""
        ...

    def close(self) -> None: ...


def after(prefix: bytes) -> bytes | None:
    """The first key behind all keys that start with `prefix`; None when there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
