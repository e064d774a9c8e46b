"""Request ids: fresh random UUIDs, cheap enough for every request."""

from __future__ import annotations

import os
from collections.abc import Callable

_BATCH = 256  # one system call for so many ids
_VARIANT = "89ab"


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
        text = self._entropy(16 * _BATCH).hex()
        return [_format(text[at : at + 32]) for at in range(0, len(text), 32)]


def _format(h: str) -> str:
    variant = _VARIANT[int(h[16], 16) & 3]
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{variant}{h[17:20]}-{h[20:]}"
