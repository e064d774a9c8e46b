"""Work that several ask for at the same time, done once: after a restart all clients come back together, and want the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Once(Generic[K, T]):
    """Nothing is kept: whoever asks when the work is done has it done again, unless it was remembered elsewhere."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        self._under_way: dict[K, asyncio.Task[T]] = {}

    async def share(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the work under way for `key` comes to, or else `work`. It goes on also when somebody who waits leaves."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(work())
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    def _ended(self, key: K, task: asyncio.Task[T]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # whoever waits is told; if nobody does any more, that is no fault
