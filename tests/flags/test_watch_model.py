"""Ten thousand random commits under random subscriptions: every chain of hashes holds, and whenever somebody looks, each client
that keeps up holds exactly its closure, file by file."""

from __future__ import annotations

import random

import pytest

from seamark.manifest.closure import closure_of, index_of
from seamark.manifest.lint import lint
from seamark.manifest.memo import Memo
from seamark.manifest.subscription import EVERY_FLAG, FlagList
from seamark.testing.engines import MemoryRig
from tests.flags.stage import Listener, Stage, settle
from tests.manifest.worlds import KEYS, SLUG, World

COMMITS = 10_000
CLIENTS = 16  # what one token may have
LOOK_EVERY = 50

Refs = dict[str, tuple[frozenset[str], int]]


class Chance:
    """Random worlds, one after the other, and random subscriptions; all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def commit(self, world: World) -> World:
        """A few changes, or none."""
        flags, segments, namespace = dict(world.flags), dict(world.segments), world.namespace
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 5))):
            key = self.random.choice(KEYS)
            what = self.random.randrange(6)
            if what < 2:
                flags[key] = self._some(sorted(segments)), self.random.randrange(4)
            elif what == 2:
                flags.pop(key, None)
            elif what == 3:
                below = [other for other in KEYS[: KEYS.index(key)] if other in segments]
                segments[key] = self._some(below), self.random.randrange(4)
            elif what == 4 and key in segments:
                del segments[key]
                flags, segments = _without(flags, key), _without(segments, key)
            elif what == 5:
                namespace = self.random.choice((None, 0, 1))
        return World(namespace, flags, segments)

    def _some(self, keys: list[str]) -> frozenset[str]:
        return frozenset(self.random.sample(keys, self.random.randint(0, min(2, len(keys)))))

    def subscription(self) -> FlagList:
        if self.random.random() < 0.2:
            return EVERY_FLAG
        return FlagList.of(self.random.sample((*KEYS, "unknown"), self.random.randint(1, 3)))


def _without(refs: Refs, key: str) -> Refs:
    return {name: (of - {key}, mark) for name, (of, mark) in refs.items()}


class Crowd:
    """Clients that come, lag and leave."""

    def __init__(self, stage: Stage, chance: Chance) -> None:
        self.stage = stage
        self.chance = chance
        self.clients: list[tuple[Listener, FlagList]] = []
        self.events = 0

    async def live(self, world: World | None) -> None:
        """One of them does something."""
        what = self.chance.random.random()
        if what < 0.1 or len(self.clients) < CLIENTS // 2:
            if len(self.clients) >= CLIENTS:
                self._leave()
            wanted = self.chance.subscription()
            self.clients.append((await self.stage.watch(f"ns={SLUG}:{wanted.canonical}"), wanted))
            await self.look(world, *self.clients[-1])
        elif what < 0.15:
            self.chance.random.choice(self.clients)[0].pipe.fill()
        elif what < 0.3:
            self.chance.random.choice(self.clients)[0].pipe.drain()

    def _leave(self) -> None:
        listener, _ = self.clients.pop(self.chance.random.randrange(len(self.clients)))
        listener.pipe.leave()

    async def look(self, world: World | None, listener: Listener, wanted: FlagList) -> None:
        """A client goes on, if it lagged, and holds what it should; what it took so far is done with."""
        listener.pipe.drain()
        await settle(12)
        self.events += len(listener.frames)
        mirrors = await listener.mirrors()
        listener.forget()
        if world is None:
            assert mirrors == {}
            return
        files = world.files
        closure = closure_of(world.manifest, index_of(files), wanted)
        assert mirrors[SLUG] == {path: files[path] for path in closure}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
async def test_ten_thousand_commits(seed: int) -> None:
    rig = MemoryRig()
    await rig.open()
    stage = await Stage.opened(rig, SLUG, flags_inline_files="3")
    chance, memo = Chance(seed), Memo()
    crowd = Crowd(stage, chance)
    await crowd.live(None)
    world = World(None, {}, {})
    for number in range(1, COMMITS + 1):
        world = chance.commit(world)
        files = world.files
        await stage.versions.commit("acme", SLUG, files, lint(files, slug=SLUG, memo=memo), by="tests")
        await settle(2)
        await crowd.live(world)
        if number % LOOK_EVERY == 0:
            for listener, wanted in crowd.clients:
                await crowd.look(world, listener, wanted)
    assert crowd.events > COMMITS
    for kind in ("inline", "snapshot"):
        assert stage.count("seamark_flags_events_total", kind) > COMMITS / 10
    for op in ("added", "modified", "removed", "enter", "leave"):
        assert stage.count("seamark_flags_delta_files_total", op) > COMMITS / 10
    stage.close()
    await rig.close()
