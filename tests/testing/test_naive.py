"""The contract can be kept: by a log that is simple enough to be believed, and by one at the end of a wire."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from seamark.log.protocol import Log
from seamark.testing.contract import LogContract
from seamark.testing.naive import NaiveLog
from seamark.testing.rig import LogRig


class NaiveRig(LogRig):
    has_quota: ClassVar[bool] = True
    laggy: ClassVar[bool] = False

    async def start(self, quota_bytes: int) -> Log:
        return NaiveLog(self.clock, quota_bytes=quota_bytes, laggy=self.laggy)


class LaggyRig(NaiveRig):
    shares_turn: ClassVar[bool] = False
    laggy: ClassVar[bool] = True


class TestNaive(LogContract):
    def make_rig(self, place: Path) -> LogRig:
        return NaiveRig()


class TestLaggy(LogContract):
    def make_rig(self, place: Path) -> LogRig:
        return LaggyRig()
