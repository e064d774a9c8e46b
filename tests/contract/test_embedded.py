"""The embedded engine keeps the log contract, restarts and crashes included."""

from __future__ import annotations

from pathlib import Path

from seamark.testing.contract import LogContract
from seamark.testing.engines import EmbeddedRig
from seamark.testing.rig import LogRig


class TestEmbedded(LogContract):
    def make_rig(self, place: Path) -> LogRig:
        return EmbeddedRig(place)
