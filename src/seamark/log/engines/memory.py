"""The store that keeps nothing beyond the process: for tests, for throwaway servers, and for ephemeral streams."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from seamark.clock import Clock
from seamark.errors import Fault
from seamark.log.local import LocalLog
from seamark.log.seal import Buffer
from seamark.log.store import ID, Change, Space
from seamark.telemetry.metrics import Metrics

_BY_STREAM = frozenset({Space.RECORDS, Space.KEYS, Space.SUBJECTS, Space.COLUMNS})


class _Shelf:
    """An ordered map of bytes. Appending at the end, the common case, costs no search."""

    __slots__ = ("keys", "values")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.values: dict[bytes, Buffer] = {}

    def put(self, key: bytes, value: Buffer) -> None:
        if key not in self.values:
            if not self.keys or key > self.keys[-1]:
                self.keys.append(key)
            else:
                insort(self.keys, key)
        self.values[key] = value

    def remove(self, key: bytes) -> None:
        if self.values.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]


class MemoryStore:
    """Implements `Store` and, because nothing else runs between two writes, `View` as well.

    Spaces that are keyed by stream are kept apart per stream, so that no stream pays for the size of another.
    """

    durable = False

    def __init__(self) -> None:
        self._spaces: dict[tuple[Space, bytes], _Shelf] = {}

    @contextmanager
    def view(self) -> Iterator[MemoryStore]:
        yield self

    def get(self, space: Space, key: bytes) -> Buffer | None:
        shelf = self._shelf(space, key)
        return None if shelf is None else shelf.values.get(key)

    def scan(self, space: Space, start: bytes, stop: bytes | None = None) -> Iterator[tuple[bytes, Buffer]]:
        shelf = self._shelf(space, start)
        if shelf is not None:
            keys = shelf.keys
            end = len(keys) if stop is None else bisect_left(keys, stop)
            for index in range(bisect_left(keys, start), end):
                yield keys[index], shelf.values[keys[index]]

    def floor(self, space: Space, key: bytes) -> tuple[bytes, Buffer] | None:
        shelf = self._shelf(space, key)
        if shelf is None:
            return None
        index = bisect_right(shelf.keys, key)
        return (shelf.keys[index - 1], shelf.values[shelf.keys[index - 1]]) if index else None

    def beside(self, space: Space, key: bytes) -> list[tuple[bytes, Buffer]]:
        return []

    def write(self, changes: Sequence[Change]) -> float:
        for space, key, value in changes:
            part = (space, key[: ID.size] if space in _BY_STREAM else b"")
            shelf = self._spaces.get(part)
            if value is not None:
                if shelf is None:
                    shelf = self._spaces[part] = _Shelf()
                shelf.put(key, value)
            elif shelf is not None:
                shelf.remove(key)
                if not shelf.keys:
                    del self._spaces[part]
        return 0.0

    def returned(self) -> bool:
        return False

    def tend(self) -> None:
        pass

    def backup(self, path: str) -> None:
        raise Fault(f"the memory engine has nothing to copy to {path}")

    def facts(self) -> dict[str, str | int | float | bool]:
        return {"engine": "memory", "durability": "none: memory of one process"}

    def close(self) -> None:
        self._spaces.clear()

    def _shelf(self, space: Space, key: bytes) -> _Shelf | None:
        return self._spaces.get((space, key[: ID.size] if space in _BY_STREAM else b""))


def open_memory(clock: Clock, metrics: Metrics, *, quota_bytes: int = 0) -> LocalLog:
    """A log that lives as long as the process. Call it inside a running loop."""
    return LocalLog(MemoryStore(), clock, metrics, quota_bytes=quota_bytes)
