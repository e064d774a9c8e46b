"""Writers inside the process: each submits its next append as soon as the last is acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from seamark.bench import wire
from seamark.errors import SeamarkError
from seamark.log.protocol import Append, Log, Receipt
from seamark.log.record import Draft

T = TypeVar("T")


def run_on_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run on the loop that the server runs on."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    result: T = uvloop.run(main)
    return result


class Pump:
    """`writers` writers that append `batch` records at a time until `enough` or until time is up."""

    def __init__(self, log: Log, stream: str, *, batch: int, writers: int, data: bytes | None = None) -> None:
        draft = Draft(wire.payload() if data is None else data)
        self._append = Append(stream=stream, drafts=[draft] * batch)
        self._writer = log.writer
        self._batch = batch
        self._writers = writers
        self._under_way = 0
        self._end = 0.0
        self._enough = 0
        self._idle = asyncio.Event()
        self.records = 0
        self.error: SeamarkError | None = None

    async def run(self, *, seconds: float = 3600.0, enough: int = 2**62) -> float:
        """Records acknowledged per second."""
        self._idle.clear()
        self.records, self._enough = 0, enough
        began = time.perf_counter()
        self._end = began + seconds
        for _ in range(self._writers):
            self._under_way += 1
            self._writer.submit(self._append, self._done)
        await self._idle.wait()
        if self.error is not None:
            raise self.error
        return self.records / (time.perf_counter() - began)

    def _done(self, outcome: Receipt | SeamarkError) -> None:
        if isinstance(outcome, SeamarkError):
            self.error = outcome
            self._end = 0.0
        else:
            self.records += self._batch
        if self.records + self._batch * (self._under_way - 1) < self._enough and time.perf_counter() < self._end:
            self._writer.submit(self._append, self._done)
            return
        self._under_way -= 1
        if self._under_way == 0:
            self._idle.set()
