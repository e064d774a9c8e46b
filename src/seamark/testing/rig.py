"""What a contract needs of an engine: how to open it, close it, and break it. Differences between engines are declared
here as capabilities; no test asks an engine for its name."""

from __future__ import annotations

import abc
from typing import ClassVar

from seamark.clock import ManualClock
from seamark.log.protocol import Log


class LogRig(abc.ABC):
    """One engine on a bench. Subclasses declare what it can do and say how to open it."""

    keeps_records: ClassVar[bool] = False  # what was committed is there after close() and open()
    survives_crash: ClassVar[bool] = False  # crash() is honest: what was synced is there after it
    follows_clock: ClassVar[bool] = True  # stamps and retention follow `clock`
    shares_turn: ClassVar[bool] = True  # store and readers share the event loop: an acknowledgement is never late
    has_quota: ClassVar[bool] = False  # open(quota_bytes=...) bounds the sum of live bytes
    has_shelf: ClassVar[bool] = True  # the log is a Shelf and commits `puts`

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._log: Log | None = None

    @property
    def log(self) -> Log:
        assert self._log is not None, "the rig is closed"
        return self._log

    async def open(self, *, quota_bytes: int = 0) -> Log:
        assert self._log is None, "the rig is open"
        self._log = await self.start(quota_bytes)
        return self._log

    async def close(self) -> None:
        """Close the log as a user would. Closing twice is no error, so that a fixture can always do it."""
        log, self._log = self._log, None
        if log is not None:
            await log.close()

    async def reopen(self) -> Log:
        await self.close()
        return await self.open()

    def freeze(self) -> None:
        """Take what the engine would leave behind if it were killed at this moment, for `crash` to open. Runs between
        two turns of the event loop, so whatever is queued in memory is lost."""
        raise NotImplementedError("this engine declares survives_crash = False")

    async def crash(self) -> Log:
        """Stop the engine as if its process had been killed when `freeze` was called (or now), and open what it left."""
        raise NotImplementedError("this engine declares survives_crash = False")

    @abc.abstractmethod
    async def start(self, quota_bytes: int) -> Log:
        """Open the engine with `self.clock`; on the same data as the last time if it keeps records."""
