"""Time, passed in. Nothing else in Seamark asks the operating system what time it is."""

from __future__ import annotations

import time
from typing import Protocol

NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000


class Clock(Protocol):
    """Two clocks: one that says when (and may step), one that only measures how long."""

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    now_ns = staticmethod(time.time_ns)
    monotonic = staticmethod(time.monotonic)


class ManualClock:
    """A clock that moves only when told: for tests and for replaying a schedule."""

    __slots__ = ("_monotonic", "_now_ns")

    def __init__(self, now_ns: int = 1_700_000_000 * NS_PER_SECOND) -> None:
        self._now_ns = now_ns
        self._monotonic = 0.0

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let both clocks run for a while."""
        assert seconds >= 0
        self._now_ns += round(seconds * NS_PER_SECOND)
        self._monotonic += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP would; time itself does not pass."""
        self._now_ns += round(seconds * NS_PER_SECOND)
