"""Background tasks that must not die quietly: logged when they fail, started again after a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from seamark.telemetry import events
from seamark.telemetry.logs import logger

PAUSE_SECONDS = 1.0
_log = logger("task")


def supervise(
    name: str, work: Callable[[], Awaitable[None]], *, pause_seconds: float = PAUSE_SECONDS
) -> asyncio.Task[None]:
    """A task that runs `work` until it returns or is cancelled, however often it fails."""
    return asyncio.create_task(_run(name, work, pause_seconds), name=name)


async def _run(name: str, work: Callable[[], Awaitable[None]], pause_seconds: float) -> None:
    while True:
        try:
            await work()
        except Exception as error:
            _log.error(events.TASK_FAILED, task=name, exc_info=error)
            await asyncio.sleep(pause_seconds)
        else:
            return
