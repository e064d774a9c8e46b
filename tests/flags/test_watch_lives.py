"""Random lives of event streams: clients come, stall, go on and leave while random manifests are committed. Whatever happens,
every chain of hashes holds, and who is there at the end holds exactly what it asked for."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seamark.manifest.closure import closure_of, index_of
from seamark.manifest.subscription import FlagList
from seamark.testing.engines import MemoryRig
from tests.flags.stage import Listener, Stage, settle
from tests.manifest.worlds import SLUG, World, commits, subscriptions, worlds

pytestmark = pytest.mark.slow  # long lives

STEPS = st.sampled_from(("commit", "commit", "commit", "come", "come", "stall", "go on", "leave", "fetch"))


class Life:
    """One server, and what its clients ought to hold."""

    def __init__(self, stage: Stage, data: st.DataObject) -> None:
        self.stage = stage
        self.data = data
        self.world: World | None = None
        self.listeners: list[tuple[Listener, FlagList]] = []

    async def step(self, what: str) -> None:
        if what == "commit":
            self.world = self.data.draw(worlds() if self.world is None else commits(self.world))
            await self.stage.commit(self.world.files, SLUG)
        elif what == "come":
            wanted = self.data.draw(subscriptions)
            self.listeners.append((await self.stage.watch(f"ns={SLUG}:{wanted.canonical}"), wanted))
        elif self.listeners:
            place = self.data.draw(st.integers(0, len(self.listeners) - 1))
            listener = self.listeners[place][0]
            if what == "stall":
                listener.pipe.fill()
            elif what == "go on":
                listener.pipe.drain()
                await settle()
            elif what == "fetch":
                await listener.mirrors()
            else:
                listener.pipe.leave()
                del self.listeners[place]

    async def end(self) -> None:
        for listener, wanted in self.listeners:
            listener.pipe.drain()
            await settle()
            files = await listener.mirrors()
            if self.world is None:
                assert files == {}
                continue
            closure = closure_of(self.world.manifest, index_of(self.world.files), wanted)
            assert files == {SLUG: {path: self.world.files[path] for path in closure}}
            told = [frame.body["version"] for frame in listener.frames]
            assert told == sorted(set(told)), "versions only grow"


async def live(data: st.DataObject) -> None:
    rig = MemoryRig()
    await rig.open()
    stage = await Stage.opened(rig, SLUG, flags_inline_files=str(data.draw(st.sampled_from((0, 1, 3)))))
    stage.reader = await stage.mint("tenant-admin")
    life = Life(stage, data)
    for what in data.draw(st.lists(STEPS, min_size=3, max_size=14)):
        await life.step(what)
    await life.end()
    stage.close()
    await rig.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_every_client_ends_with_what_it_asked_for(data: st.DataObject) -> None:
    asyncio.run(live(data))
