"""Claimers that come within one window are served in one pass, so that whoever asks first does not take all."""

from __future__ import annotations

import asyncio

from seamark.stream.wheel import Timer, Wheel
from seamark.topics.queue import Job, Queue, Want

_MS_PER_SECOND = 1_000


class Cohort:
    """The claimers of one queue that wait for the window to close."""

    def __init__(self, queue: Queue, wheel: Wheel) -> None:
        self._queue = queue
        self._wheel = wheel
        self._waiting: list[tuple[Want, asyncio.Future[list[Job]]]] = []
        self._timer: Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def claim(self, want: Want) -> list[Job]:
        """The first claimer opens the window."""
        future: asyncio.Future[list[Job]] = asyncio.get_running_loop().create_future()
        self._waiting.append((want, future))
        if self._timer is None:
            self._timer = self._wheel.add(self._queue.config.claim_jitter_ms / _MS_PER_SECOND, self.close)
        return await future

    def close(self) -> None:
        """The window is over, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if waiting:
            task = asyncio.create_task(self._serve(waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, waiting: list[tuple[Want, asyncio.Future[list[Job]]]]) -> None:
        try:
            hands = await self._queue.take([want for want, _ in waiting])
        except Exception as error:
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), jobs in zip(waiting, hands, strict=True):
            if future.done():
                self._queue.undo(jobs)  # the claimer did not wait
            else:
                future.set_result(jobs)
