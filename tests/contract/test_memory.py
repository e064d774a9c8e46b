"""The memory engine keeps the log contract."""

from __future__ import annotations

from pathlib import Path

from seamark.testing.contract import LogContract
from seamark.testing.engines import MemoryRig
from seamark.testing.rig import LogRig


class TestMemory(LogContract):
    def make_rig(self, place: Path) -> LogRig:
        return MemoryRig()
