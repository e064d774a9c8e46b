"""A pipe for the plain ASGI path: bytes wait here, within bounds, for a coroutine that sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from seamark.limits import PIPE_HIGH_WATER_BYTES, PIPE_LOW_WATER_BYTES
from seamark.stream.pipe import Block, PipeOwner


class BufferPipe:
    """Raw bytes (the ASGI server does the framing). One coroutine drains it: `async for chunk in pipe: await send(...)`.

    A chunk counts as taken when the next one is asked for, so `buffered` includes what is being sent.
    """

    __slots__ = ("_closing", "_ended", "_in_flight", "_paused", "_size", "_waiter", "_waiting", "high", "low", "owner")

    def __init__(self, *, high: int = PIPE_HIGH_WATER_BYTES, low: int = PIPE_LOW_WATER_BYTES) -> None:
        assert 0 <= low < high
        self.owner: PipeOwner | None = None
        self.high = high
        self.low = low
        self._waiting: list[bytes] = []
        self._size = 0  # of what waits
        self._in_flight = 0
        self._paused = False
        self._closing = False  # nothing more may be written
        self._ended = False  # the owner was told that it is over
        self._waiter: asyncio.Future[None] | None = None

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def buffered(self) -> int:
        return self._size + self._in_flight

    def write(self, block: Block) -> None:
        if not self._closing:
            self._put(block.raw)
            if not self._paused and self.buffered > self.high:
                self._paused = True
                if self.owner is not None:
                    self.owner.pause()

    def close(self, last: Block | None = None) -> None:
        if self._closing:
            return
        if last is not None:
            self._put(last.raw)
        self._closing = True
        self._wake()

    def abort(self) -> None:
        """Also for the ASGI side to call when the peer disconnected."""
        self._closing = True
        self._waiting.clear()
        self._size = self._in_flight = 0
        self._wake()
        self._end()

    async def next(self) -> bytes | None:
        """All that waits, as one piece; None at the end of the body."""
        self._in_flight = 0
        self._maybe_resume()
        while not self._waiting:
            if self._closing:
                self._end()
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunk = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        self._waiting = []
        self._size = 0
        self._in_flight = len(chunk)
        return chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self.next()) is not None:
            yield chunk

    def _put(self, raw: bytes) -> None:
        self._waiting.append(raw)
        self._size += len(raw)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _maybe_resume(self) -> None:
        if self._paused and not self._closing and self.buffered <= self.low:
            self._paused = False
            if self.owner is not None:
                self.owner.resume()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self.owner is not None:
                self.owner.gone()
