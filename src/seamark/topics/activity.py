"""When each topic was last read, and how much attention that earns it. In memory only: after a restart nobody reads."""

from __future__ import annotations

from seamark.clock import NS_PER_MS, Clock
from seamark.topics.model import TopicConfig

PRIORITY_MAX = 1_000
_FRESH = 500
_HALVES_EACH_MS = 30_000
_FORGOTTEN_MS = 300_000


class Activity:
    """By the log's names of the streams. A name that goes is forgotten with its stream."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: dict[str, int] = {}

    def touch(self, stream: str) -> None:
        """Somebody reads this now."""
        self._read[stream] = self._clock.now_ns()

    def forget(self, stream: str) -> None:
        self._read.pop(stream, None)

    def last_read_ms(self, stream: str) -> int | None:
        read = self._read.get(stream)
        return None if read is None else read // NS_PER_MS

    def priority(self, stream: str, config: TopicConfig) -> int:
        """What was set by hand, else by how recently the topic was read."""
        if config.priority is not None:
            return min(max(config.priority, -PRIORITY_MAX), PRIORITY_MAX)
        read = self._read.get(stream)
        if not config.auto_priority or read is None:
            return 0
        idle_ms = max(self._clock.now_ns() - read, 0) / NS_PER_MS
        return 0 if idle_ms >= _FORGOTTEN_MS else int(_FRESH * 2 ** (-idle_ms / _HALVES_EACH_MS) + 0.5)
