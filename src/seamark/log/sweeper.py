"""The log's own chores, once a second: expiry, forgotten keys, purges, care of the store, and the retry of a failed
commit. Each chore is short, and one that fails is logged and comes again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from seamark.errors import WriteFailed
from seamark.telemetry import events, logs

PERIOD_SECONDS = 1.0

_log = logs.logger("log")

Chore = Callable[[], bool]


class Sweeper:
    """Runs chores from timers. A chore returns True when it has more to do at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, chores: Sequence[tuple[str, Chore]]) -> None:
        self._loop = loop
        self._chores = chores
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._arm(PERIOD_SECONDS)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sweep(self) -> bool:
        """One round of all chores. Returns whether there is more to do at once."""
        more = False
        for name, chore in self._chores:
            try:
                more = chore() or more
            except WriteFailed:
                pass  # told when it began; the retry is a chore itself
            except Exception as error:
                _log.error(events.TASK_FAILED, task=name, error=repr(error), exc_info=True)
        return more

    def _arm(self, seconds: float) -> None:
        if not self._stopped:
            self._timer = self._loop.call_later(seconds, self._fire)

    def _fire(self) -> None:
        more = False
        try:
            more = self.sweep()
        finally:
            self._arm(0.0 if more else PERIOD_SECONDS)
