"""Rigs for the engines that ship with Seamark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from seamark import limits
from seamark.log.engines.embedded import open_embedded
from seamark.log.engines.memory import open_memory
from seamark.log.protocol import Log
from seamark.telemetry.metrics import Metrics
from seamark.testing.rig import LogRig


class MemoryRig(LogRig):
    """Keeps nothing."""

    has_quota: ClassVar[bool] = True

    async def start(self, quota_bytes: int) -> Log:
        return open_memory(self.clock, Metrics(), quota_bytes=quota_bytes)


class EmbeddedRig(LogRig):
    """A store in a directory below `place`. A crash is a copy of its files, taken without closing it: the operating
    system keeps what was written when a process is killed, and nothing else."""

    keeps_records: ClassVar[bool] = True
    survives_crash: ClassVar[bool] = True
    has_quota: ClassVar[bool] = True

    def __init__(self, place: Path, *, map_bytes: int = limits.MAP_BYTES) -> None:
        super().__init__()
        self._place = place
        self._map_bytes = map_bytes
        self._life = 0
        self._frozen = False

    @property
    def path(self) -> Path:
        """The data directory now in use."""
        return self._place / f"life-{self._life}"

    async def start(self, quota_bytes: int) -> Log:
        return open_embedded(self.path, self.clock, Metrics(), quota_bytes=quota_bytes, map_bytes=self._map_bytes)

    def freeze(self) -> None:
        shutil.copytree(self.path, self._place / f"life-{self._life + 1}")
        self._frozen = True

    async def crash(self) -> Log:
        if not self._frozen:
            self.freeze()
        self._frozen = False
        left = self.path
        await self.close()
        shutil.rmtree(left)
        self._life += 1
        return await self.open()
