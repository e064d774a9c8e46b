"""Requests that wait for something new in a topic."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType

from seamark.errors import Busy
from seamark.limits import LONG_POLLS_MAX
from seamark.log.protocol import News, Wakeup


class Waiter:
    """One request's ear. It listens from the moment it is made, so what comes between a look and a `wait` is not missed."""

    __slots__ = ("_future", "_heard", "_waiting", "stream")

    def __init__(self, waiting: Waiting, stream: str) -> None:
        self.stream = stream
        self._waiting = waiting
        self._heard = False
        self._future: asyncio.Future[None] | None = None

    def __enter__(self) -> Waiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.remove(self)

    async def wait(self, deadline: float) -> bool:
        """Whether there was news since the last call, or is before `deadline` (the loop's time)."""
        if not self._heard and not self._waiting.closed:
            loop = asyncio.get_running_loop()
            future = self._future = loop.create_future()
            timer = loop.call_at(deadline, _end, future)
            try:
                await future
            finally:
                timer.cancel()
                self._future = None
        heard, self._heard = self._heard, False
        return heard and not self._waiting.closed

    def wake(self, *, heard: bool = True) -> None:
        self._heard = self._heard or heard
        if self._future is not None:
            _end(self._future)


class Waiting:
    """All that wait, by stream. `close` lets them go, and nobody waits after it."""

    def __init__(self, wakeup: Wakeup) -> None:
        self.closed = False
        self._waiters: dict[str, set[Waiter]] = {}
        self._count = 0
        self._unsubscribe = wakeup.subscribe(self._hear)

    def __len__(self) -> int:
        return self._count

    def add(self, stream: str) -> Waiter:
        """A new waiter, to be used as a context. Raises Busy."""
        if self._count >= LONG_POLLS_MAX:
            raise Busy("too many requests wait for news", limit="max_long_polls", max=LONG_POLLS_MAX)
        waiter = Waiter(self, stream)
        self._waiters.setdefault(stream, set()).add(waiter)
        self._count += 1
        return waiter

    def remove(self, waiter: Waiter) -> None:
        waiters = self._waiters.get(waiter.stream, set())
        if waiter in waiters:
            waiters.remove(waiter)
            self._count -= 1
            if not waiters:
                del self._waiters[waiter.stream]

    def close(self) -> None:
        self.closed = True
        self._unsubscribe()
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.wake(heard=False)

    def _hear(self, news: Sequence[News]) -> None:
        if not self._waiters:
            return
        for one in news:
            if one.visible or one.dropped:
                for waiter in self._waiters.get(one.stream, ()):
                    waiter.wake()


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
