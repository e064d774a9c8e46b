"""Files that were read before: a manifest with one changed file is linted by reading one."""

from __future__ import annotations

from hashlib import sha256
from threading import Lock
from typing import TypeAlias

from seamark import limits
from seamark.manifest.reading import Piece

Key: TypeAlias = tuple[str, bytes]
_ENTRY_BYTES = 512  # of an entry beside what is in proportion to its file
_FINDING_BYTES = 256  # of what was found, which may be far more than the file


class Memo:
    """What single files say, by path and content, within a bound of the bytes they were read from. Used from any thread."""

    __slots__ = ("_bytes", "_bytes_max", "_lock", "_pieces")

    def __init__(self, bytes_max: int = limits.LINT_MEMO_BYTES_MAX) -> None:
        self._pieces: dict[Key, tuple[Piece, int]] = {}  # the one used longest ago comes first
        self._bytes = 0
        self._bytes_max = bytes_max
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._pieces)

    @staticmethod
    def key(path: str, content: bytes) -> Key:
        return path, sha256(content).digest()

    def find(self, key: Key) -> Piece | None:
        with self._lock:
            entry = self._pieces.pop(key, None)
            if entry is None:
                return None
            self._pieces[key] = entry
            return entry[0]

    def keep(self, key: Key, piece: Piece, size: int) -> None:
        cost = size + _ENTRY_BYTES + _FINDING_BYTES * len(piece.found)
        with self._lock:
            if key in self._pieces or cost > self._bytes_max:
                return
            self._pieces[key] = piece, cost
            self._bytes += cost
            while self._bytes > self._bytes_max:
                _, gone = self._pieces.pop(next(iter(self._pieces)))
                self._bytes -= gone
