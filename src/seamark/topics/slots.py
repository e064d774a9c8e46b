"""How many streams of this surface are open, in all and for each key: an open stream is the dearest thing to hand out."""

from __future__ import annotations

from seamark.errors import Busy

_GLOBAL, _PER_KEY = "max_sse_connections", "max_sse_connections_per_key"


class StreamSlots:
    """Counted under the name of the key that made the stream possible; 0 sets no bound."""

    __slots__ = ("_most", "_most_per_key", "_of_key", "open")

    def __init__(self, most: int = 0, most_per_key: int = 0) -> None:
        self._most = most
        self._most_per_key = most_per_key
        self._of_key: dict[str, int] = {}
        self.open = 0

    def take(self, owner: str) -> None:
        """One more, or Busy. `release` is owed once, however the stream ends."""
        mine = self._of_key.get(owner, 0)
        if self._most and self.open >= self._most:
            raise Busy(f"there are {self.open} open streams, which is the most", limit=_GLOBAL, max=self._most)
        if self._most_per_key and mine >= self._most_per_key:
            raise Busy(
                f"this key has {mine} open streams, which is the most it may have",
                limit=_PER_KEY,
                max=self._most_per_key,
            )
        self.open += 1
        self._of_key[owner] = mine + 1

    def release(self, owner: str) -> None:
        left = self._of_key[owner] - 1
        assert left >= 0
        self.open -= 1
        if left:
            self._of_key[owner] = left
        else:
            del self._of_key[owner]
