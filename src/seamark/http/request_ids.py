"""Request ids: fresh random UUIDs, cheap enough for every request."""

from __future__ import annotations

import os
from collections.abc import Callable
from struct import Struct
from uuid import UUID

_BATCH = 256  # one system call, and one stroke over the fixed bits, for so many ids
_GROUPS = Struct("8s4s4s4s12s")
_RANDOM = int.from_bytes(UUID("ffffffff-ffff-0fff-3fff-ffffffffffff").bytes * _BATCH)
_FIXED = int.from_bytes(UUID("00000000-0000-4000-8000-000000000000").bytes * _BATCH)


class RequestIds:
    """Call it for a lower-case, hyphenated UUID version 4. What a client sends as X-Request-ID is never used."""

    __slots__ = ("_entropy", "_ready")

    def __init__(self, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._entropy = entropy
        self._ready: list[str] = []

    def __call__(self) -> str:
        if not self._ready:
            self._ready = self._batch()
        return self._ready.pop()

    def _batch(self) -> list[str]:
        bits = int.from_bytes(self._entropy(16 * _BATCH)) & _RANDOM | _FIXED
        digits = b"%0*x" % (32 * _BATCH, bits)
        return [b"-".join(groups).decode() for groups in _GROUPS.iter_unpack(digits)]
