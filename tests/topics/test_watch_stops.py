"""The machine of watchers on an engine that keeps everything, with a server that stops in order and starts again: whoever comes
back is told exactly what it would have been told without that. SEAMARK_DEEP=1 looks for longer."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.topics.rig import TopicsRig
from tests.topics.test_watch_machine import DEEP, PROFILE, WatchMachine
from tests.topics.viewing import Viewer, frames_of


class StoppingMachine(WatchMachine):
    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="seamark-watchers-"))
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self._place)

    async def _rig(self) -> TopicsRig:
        return TopicsRig(data=self._place)

    @rule(data=st.data())
    def stop_and_start(self, data: st.DataObject) -> None:
        self._run(self._again())
        for watcher in self.watchers:
            if watcher.reads:
                assert frames_of(b"".join(watcher.viewer.pipe.taken[watcher.blocks :]))[-1].body["code"] == 503
            for leg in watcher.legs.values():
                leg.before = None  # that is not kept
            watcher.connected = watcher.stalled = False
            watcher.viewer = Viewer(self.rig, watcher.viewer.wid)
        for watcher in self.watchers:
            if data.draw(st.booleans()):
                self._come_back(watcher, data)

    async def _again(self) -> None:
        await self.rig.close()
        self.rig = TopicsRig(data=self._place, clock=self.rig.clock)


StoppingMachine.TestCase.settings = settings(
    PROFILE, max_examples=200 if DEEP else 8, stateful_step_count=40 if DEEP else 15
)
TestStoppingMachine = StoppingMachine.TestCase
