"""Room for a few at a time, and for one of each owner: whoever asks for much waits for himself, and nobody else for him."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Seats:
    """Owners that wait come in turn, and what one owner asks for in the order in which it was asked. Belongs to one loop."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._seated: set[str] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def of(self, owner: str) -> AsyncIterator[None]:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        self._call()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(owner)  # called and gone in the same moment
            raise
        try:
            yield
        finally:
            self._leave(owner)

    def _leave(self, owner: str) -> None:
        self._seated.discard(owner)
        self._free += 1
        if owner in self._waiting:
            self._waiting.move_to_end(owner)
        self._call()

    def _call(self) -> None:
        for owner in [owner for owner in self._waiting if owner not in self._seated]:
            turns = self._waiting[owner]
            while turns and turns[0].cancelled():
                turns.popleft()
            if turns and self._free:
                self._free -= 1
                self._seated.add(owner)
                turns.popleft().set_result(None)
            if not turns:
                del self._waiting[owner]
