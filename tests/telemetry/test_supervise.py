from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from seamark.telemetry.supervise import supervise


async def test_a_failing_task_is_logged_and_started_again() -> None:
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        if starts < 3:
            raise RuntimeError("no luck")

    with capture_logs() as lines:
        await supervise("lucky", work, pause_seconds=0)
    assert starts == 3
    assert [(line["event"], line["task"]) for line in lines] == [("task.failed", "lucky")] * 2


async def test_cancelling_ends_it() -> None:
    task = supervise("patient", lambda: asyncio.sleep(3600))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
