"""How long to wait before something is tried again: longer each time, and for every client another time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from seamark.limits import (
    CLIENT_CONNECT_SECONDS,
    CLIENT_RETRY_AFTER_SECONDS_MAX,
    CLIENT_RETRY_SECONDS,
    CLIENT_RETRY_SECONDS_MAX,
    CLIENT_RETRY_SLOW_SECONDS,
    CLIENT_SILENCE_SECONDS,
    CLIENT_SNAPSHOT_SECONDS,
)

Chance = Callable[[], float]  # evenly from 0 up to, not including, 1


def system_chance() -> float:
    return int.from_bytes(os.urandom(6), "big") / 2**48


@dataclass(frozen=True, slots=True)
class Pace:
    """All the waiting of a client, in seconds."""

    first: float = CLIENT_RETRY_SECONDS
    most: float = CLIENT_RETRY_SECONDS_MAX
    slow: float = CLIENT_RETRY_SLOW_SECONDS
    connect: float = CLIENT_CONNECT_SECONDS
    silence: float = CLIENT_SILENCE_SECONDS
    snapshot: float = CLIENT_SNAPSHOT_SECONDS

    def delay(self, failures: int, chance: Chance, *, asked: float = 0.0) -> float:
        """Before the try that follows so many failures, at least one. All of the range is used, so that clients which were
        cut off together come back one by one. A server may ask for more."""
        most = min(self.most, self.first * 2.0 ** min(failures - 1, 30))
        return max(chance() * most, min(asked, CLIENT_RETRY_AFTER_SECONDS_MAX))


def retry_after(value: str | None) -> float:
    """What a Retry-After header asks for; 0 where it says nothing, or a date, which our servers never say."""
    text = (value or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0.0
