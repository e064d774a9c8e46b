"""Random lives over a store that refuses now and then, and sometimes says so of a write that it took."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from seamark.clock import ManualClock
from seamark.errors import SeamarkError, WriteFailed
from seamark.log import meta as metas
from seamark.log.engines.memory import MemoryStore
from seamark.log.findings import Report
from seamark.log.inspection import Inspection
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Put, Receipt, Selector
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Change, Space, StoreFailed
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

CLASSES = (Durability.FSYNC, Durability.DISK, Durability.MEMORY, Durability.EPHEMERAL)


class MoodyStore(MemoryStore):
    """`well` takes writes, `ill` refuses them, `odd` takes one and says that it did not. Whoever writes next learns of
    that, and is refused once more."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.mood = "well"
        self._ahead = False
        self._returned = False

    def write(self, changes: Sequence[Change]) -> float:
        if self.mood == "ill":
            raise StoreFailed("ill")
        if self._ahead:
            self._ahead, self._returned = False, True
            raise StoreFailed("it came back in another state")
        sync = super().write(changes)
        if self.mood == "odd":
            self._ahead, self.mood = True, "ill"
            raise StoreFailed("odd")
        return sync

    def returned(self) -> bool:
        returned, self._returned = self._returned, False
        return returned

    def close(self) -> None:
        """What it holds stays, for the next log."""


class Life:
    """What was asked of a log, and what it answered."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.store = MoodyStore()
        self.log = LocalLog(self.store, ManualClock(), Metrics(), ephemeral=MemoryStore())
        self.number = 0
        self.kept: dict[str, dict[int, bytes]] = {kind.value: {} for kind in CLASSES}  # acknowledged and not deleted
        self.keys: dict[tuple[str, str], Receipt] = {}
        self.values: dict[bytes, bytes] = {}
        self.refused: set[bytes] = set()
        self.doubtful: dict[str, set[int]] = {kind.value: set() for kind in CLASSES}  # deleted, perhaps

    async def start(self) -> None:
        for kind in CLASSES:
            await self.log.configure(kind.value, StreamSettings(durability=kind))

    def append(self) -> None:
        self.number += 1
        name = self.random.choice(CLASSES).value
        payloads = [b"%d/%d" % (self.number, index) for index in range(self.random.randint(1, 3))]
        key = f"k{self.number}" if self.random.random() < 0.3 else None
        puts = [Put("s", b"%d" % self.number, payloads[0])] if self.random.random() < 0.3 else []
        append = Append(stream=name, drafts=[Draft(payload) for payload in payloads], key=key, puts=puts)
        self.log.writer.submit(append, partial(self.answered, append))

    def answered(self, append: Append, answer: Receipt | SeamarkError) -> None:
        payloads = [draft.payload for draft in append.drafts]
        if not isinstance(answer, Receipt):
            assert isinstance(answer, WriteFailed)
            self.refused.update(payloads)
            return
        assert answer.last - answer.first + 1 == len(payloads)
        for seq, payload in enumerate(payloads, answer.first):
            assert seq not in self.kept[append.stream], "a seq was given twice"
            self.kept[append.stream][seq] = payload
        if append.key is not None:
            self.keys[append.stream, append.key] = answer
        for put in append.puts:
            self.values[put.key] = payloads[0]

    async def delete(self) -> None:
        name = self.random.choice(CLASSES).value
        chosen = set(self.random.sample(range(1, 40), 5))
        try:
            await self.log.delete(name, Selector(seqs=tuple(chosen)))
        except WriteFailed:
            self.doubtful[name] |= chosen
            return
        self.kept[name] = {seq: payload for seq, payload in self.kept[name].items() if seq not in chosen}

    async def move(self) -> None:
        """Another durability class, which may mean another store."""
        name = self.random.choice(CLASSES).value
        wanted = StreamSettings(durability=self.random.choice(CLASSES))
        try:
            await self.log.configure(name, wanted)
        except WriteFailed:
            if wanted.durability is Durability.EPHEMERAL:
                # If it happened after all, the store let go of records and keys, and memory never had them.
                self.doubtful[name] |= set(self.kept[name])
                self.keys = {place: first for place, first in self.keys.items() if place[0] != name}

    async def recover(self) -> None:
        self.store.mood = "well"
        while self.log.health()["writable"] is False:
            self.log.sweep()
        await asyncio.sleep(0)

    async def check(self) -> None:
        """Everything acknowledged is where its receipt says, and what else is there was refused and happened."""
        for name, kept in self.kept.items():
            read = {r.seq: r.payload for r in (await self.log.read(name, Cursor(), records_max=10_000)).records}
            missing = {seq for seq, payload in kept.items() if read.get(seq) != payload}
            assert missing <= self.doubtful[name], f"{name} lost {missing}"
            for seq in missing:
                del kept[seq]
            self.doubtful[name].clear()
            found = {payload for seq, payload in read.items() if seq not in kept}
            assert found <= self.refused, f"{name} shows {found}"
            state = await self.log.state(name)
            assert (state.count, state.bytes) == (len(read), sum(map(len, read.values())))
            assert state.marks.synced == state.marks.head

    async def reopen(self) -> None:
        for state in await self.log.streams():
            if state.settings.durability is Durability.EPHEMERAL:
                self.kept[state.name].clear()
        await self.log.close()
        report = Report()
        for key, value in self.store.scan(Space.STREAMS, b""):
            Inspection(key.decode(), metas.decode(key, value), self.store, report).run()
        assert not report.findings
        self.log = LocalLog(self.store, ManualClock(), Metrics(), ephemeral=MemoryStore())

    async def repeat(self) -> None:
        for (name, key), first in self.keys.items():
            again = await self.log.append(Append(stream=name, drafts=[Draft(b"again")], key=key))
            assert again.deduped
            assert (again.first, again.last) == (first.first, first.last)
        for place, value in self.values.items():
            assert self.log.fetch("s", place) == value


async def live(random: Random) -> None:
    life = Life(random)
    await life.start()
    for _ in range(40):
        step = random.random()
        if step < 0.6:
            for _ in range(random.randint(1, 4)):
                life.append()
        elif step < 0.7:
            life.store.mood = random.choice(["well", "ill", "odd"])
        elif step < 0.8:
            life.log.sweep()
        elif step < 0.88:
            await life.delete()
        elif step < 0.93:
            await life.move()
        await asyncio.sleep(0)
        if random.random() < 0.1:
            await life.recover()
            await life.check()
    await life.recover()
    await life.check()
    await life.repeat()
    await life.reopen()
    await life.check()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**64))
def test_nothing_acknowledged_is_lost_and_nothing_is_given_twice(seed: int) -> None:
    asyncio.run(live(Random(seed)))
