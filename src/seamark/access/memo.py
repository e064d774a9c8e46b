"""Answers of others that are believed for a while, and asked for once however many want them at the same time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from seamark import limits
from seamark.clock import Clock
from seamark.errors import Busy

T = TypeVar("T")


class _Kept(NamedTuple, Generic[T]):
    value: T
    until: float  # monotonic


class Memo(Generic[T]):
    """By name. Failures are not kept: whoever comes next asks again."""

    def __init__(self, clock: Clock, *, seconds: float, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._kept: OrderedDict[str, _Kept[T]] = OrderedDict()  # the one used longest ago first
        self._asked: dict[str, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def known(self, name: str) -> T | None:
        """What is still believed."""
        kept = self._kept.get(name)
        if kept is None or kept.until <= self._clock.monotonic():
            return None
        self._kept.move_to_end(name)
        return kept.value

    async def ask(self, name: str, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to `question`, or to the same one that somebody asked just before. Raises what it raises, or Busy."""
        task = self._asked.get(name)
        if task is None:
            if len(self._asked) >= limits.AUTH_ASKING_MAX:
                most = limits.AUTH_ASKING_MAX
                raise Busy("too many callers wait to be known", limit="auth_asking", max=most)
            task = self._asked[name] = asyncio.ensure_future(question())
            task.add_done_callback(partial(self._answered, name))
        # Whoever leaves must not take the answer from those who wait with them.
        return await asyncio.shield(task)

    async def close(self) -> None:
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _answered(self, name: str, task: asyncio.Task[T]) -> None:
        del self._asked[name]
        if task.cancelled() or task.exception() is not None:
            return
        self._kept[name] = _Kept(task.result(), self._clock.monotonic() + self._seconds)
        self._kept.move_to_end(name)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
