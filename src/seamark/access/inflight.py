"""How many requests each key has in flight, and the most it may have: one client's flood must not be everybody's."""

from __future__ import annotations

from seamark.access.keys import KeyHolder
from seamark.access.principal import Principal
from seamark.errors import Busy


class InFlight:
    """Counted by the name of the key. Without keys nothing is counted, because there is nobody to tell apart."""

    __slots__ = ("_counts", "_most")

    def __init__(self, most: int = 0) -> None:
        self._most = most  # 0 sets no bound
        self._counts: dict[str, int] = {}

    def enter(self, principal: Principal) -> bool:
        """Count one more, or raise Busy. True: it is counted, and `leave` is owed once."""
        if not self._most or not isinstance(principal, KeyHolder):
            return False
        count = self._counts.get(principal.name, 0)
        if count >= self._most:
            message = f"this key has {count} requests in flight, which is the most it may have"
            raise Busy(message, limit="max_inflight_per_key", max=self._most)
        self._counts[principal.name] = count + 1
        return True

    def leave(self, principal: Principal) -> None:
        """One is answered, has become a stream, or lost its client."""
        count = self._counts[principal.name] - 1
        assert count >= 0
        if count:
            self._counts[principal.name] = count
        else:
            del self._counts[principal.name]

    def count(self, name: str) -> int:
        return self._counts.get(name, 0)
