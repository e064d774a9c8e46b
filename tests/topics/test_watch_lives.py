"""Random lives of a watch session: topics are written to, trimmed, emptied, removed and made again, while its client loses
its connection at any moment, and with it whatever was on the way. What it has seen in the end is all there was, once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from tests.topics.rig import TopicsRig
from tests.topics.viewing import Frame, Viewer, frames_of, id_of, settle, watch

pytestmark = pytest.mark.slow  # long lives

TOPICS = ("a", "b", "c")
STEPS = 60


class Client:
    """What a careful client does: it keeps its place, and takes nothing that does not follow it."""

    def __init__(self) -> None:
        self.place = dict.fromkeys(TOPICS, 0)
        self.seen: dict[str, list[int]] = {name: [] for name in TOPICS}
        self.over: set[str] = set()  # on this connection

    def take(self, frame: Frame) -> None:
        if frame.event in {"hb", "error"}:
            return
        name = frame.body["topic"]
        assert name not in self.over
        made_again = frame.event == "tombstone" and frame.body["reason"] == "recreated"
        if made_again:
            self.place[name] = 0
            self.seen[name] = []
        assert all(frame.place[other] >= place for other, place in self.place.items())  # some of it in silence
        getattr(self, f"_{frame.event.replace('-', '_')}")(name, frame.body)
        self.place = frame.place

    def _record(self, name: str, body: dict[str, Any]) -> None:
        seqs = [record["$seq"] for record in body["records"]]
        assert self.place[name] <= body["from_seq"] < seqs[0] <= seqs[-1] <= body["to_seq"] <= body["head_seq"]
        assert seqs == sorted(set(seqs))
        assert all(record.get("$node") != "me" for record in body["records"])
        self.seen[name] += seqs

    def _tombstone(self, name: str, body: dict[str, Any]) -> None:
        if body["reason"] == "recreated":
            assert body["gap_from"] == 1
        else:
            assert self.place[name] < body["gap_from"] <= body["gap_to"] < body["earliest_seq"]

    def _caught_up(self, name: str, body: dict[str, Any]) -> None:
        assert body["head_seq"] >= self.place[name]

    def _topic_deleted(self, name: str, body: dict[str, Any]) -> None:
        assert body["head_seq"] >= self.place[name]
        self.over.add(name)


class Life:
    """One session with its client and the world around it."""

    def __init__(self, rig: TopicsRig, viewer: Viewer, chance: random.Random) -> None:
        self.rig = rig
        self.viewer = viewer
        self.chance = chance
        self.client = Client()

    async def step(self) -> None:
        name = self.chance.choice(TOPICS)
        kind = self.chance.choices(("write", "cap", "delete", "drop", "cut", "stall"), weights=(12, 1, 2, 1, 4, 2))[0]
        await getattr(self, f"_{kind}")(name)
        if self.chance.random() < 0.5:
            await settle(self.chance.randrange(12))

    async def _write(self, name: str) -> None:
        node = self.chance.choice([None, "me", "you"])
        await self.rig.write(name, *range(self.chance.randrange(1, 6)), **({"node": node} if node else {}))

    async def _cap(self, name: str) -> None:
        await self.rig.call("PUT", f"/topics/{name}", {"cap_records": self.chance.choice([0, 3, 10])})

    async def _delete(self, name: str) -> None:
        head = (await self.rig.state(name))["head_seq"]
        await self.rig.call("POST", f"/topics/{name}/delete", {"before_seq": self.chance.randrange(head + 2)})

    async def _drop(self, name: str) -> None:
        await self.rig.call("DELETE", f"/topics/{name}")
        await self.rig.call("PUT", f"/topics/{name}", {})

    async def _stall(self, name: str) -> None:
        self.viewer.pipe.fill()
        for _ in range(self.chance.randrange(3)):
            await self._write(name)
        self.viewer.pipe.drain()

    async def _cut(self, name: str) -> None:
        """The connection breaks; some of what was handed over never comes."""
        blocks = self.viewer.pipe.taken
        self.viewer.session.settle()
        arrived = self.chance.randrange(len(blocks) + 1)
        if any(b'"recreated"' in block for block in blocks[arrived:]):
            arrived = len(blocks)  # two lives in one numbering: an id of the one may look like one of the other
        await self.reconnect(arrived)

    async def reconnect(self, arrived: int) -> None:
        for frame in frames_of(b"".join(self.viewer.pipe.taken[:arrived])):
            self.client.take(frame)
        if not self.viewer.pipe.ended:
            self.viewer.pipe.leave()
        self.client.over = set()
        # Without an id the session goes on from what it handed over: for a client that has all of it.
        needless = arrived == len(self.viewer.pipe.taken) and self.chance.random() < 0.3
        self.viewer = await self.viewer.again(b"" if needless else id_of(**self.client.place))


async def live(seed: int, *, strong: bool) -> None:
    chance = random.Random(seed)
    rig = TopicsRig()
    for name in TOPICS:
        await rig.call("PUT", f"/topics/{name}", {})
    consistency = "strong" if strong else "eventual"
    viewer = await watch(rig, *TOPICS, node="me", limit=chance.choice([1, 3, 256]), consistency=consistency)
    life = Life(rig, viewer, chance)
    for _ in range(STEPS):
        await life.step()
    await settle(200)
    await life.reconnect(len(life.viewer.pipe.taken))
    await settle(200)
    await life.reconnect(len(life.viewer.pipe.taken))
    for name in TOPICS:
        page = await rig.diff(name, 0, node="me", limit=1_000)
        seen = life.client.seen[name]
        assert seen == sorted(set(seen)), name
        assert {record["$seq"] for record in page["records"]} <= set(seen), name
        assert life.client.place[name] <= page["head_seq"]
    await rig.close()


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("strong", [False, True])
def test_everything_is_seen_once(seed: int, strong: bool) -> None:
    asyncio.run(live(seed, strong=strong))
