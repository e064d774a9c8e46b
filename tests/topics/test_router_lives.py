"""Random lives of routers, restarts and crashes included, against a naive model: after every step each topic holds what
the model says, with the same seqs and the same gaps. SEAMARK_DEEP=1 looks for longer."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from seamark.errors import StreamFull
from seamark.log.protocol import Append, Selector, TagMatch
from seamark.log.record import Draft, Record
from seamark.log.settings import Discard, Durability
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.engines import EmbeddedRig
from seamark.testing.model import StreamModel
from seamark.testing.reading import read_all
from seamark.topics.model import TopicConfig, resolved, settings_of, stream_of
from tests.topics.routed import Routed

T = TypeVar("T")
DEEP = bool(os.environ.get("SEAMARK_DEEP"))
PROFILE = settings(
    max_examples=400 if DEEP else 15,
    stateful_step_count=60 if DEEP else 25,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)

DRAFTS = st.builds(
    Draft,
    st.binary(max_size=4),
    node=st.sampled_from([None, "n"]),
    tag=st.sampled_from([None, "x", "xy", "z"]),
    meta=st.sampled_from([None, b'{"m":1}', b"[]"]),
)
BATCHES = st.lists(DRAFTS, min_size=1, max_size=6)
SELECTORS = st.builds(Selector, before=st.integers(0, 30)) | st.builds(
    Selector, tag=st.builds(TagMatch, st.sampled_from(["x", "z"]), st.booleans())
)
CONFIGS = st.builds(
    lambda cap, ttl, discard: TopicConfig(cap_records=cap, ttl_ms=ttl, discard=discard, durability=Durability.FSYNC),
    st.sampled_from([0, 0, 1, 3, 8]),
    st.sampled_from([0, 0, 0, 1_000]),
    st.sampled_from([Discard.OLD, Discard.OLD, Discard.REJECT]),
)
HELD = st.lists(BATCHES | SELECTORS | st.just("wait"), min_size=1, max_size=4)


class Way(NamedTuple):
    """A router. No topic has two into it, so the order of copies is certain."""

    name: str
    source: str
    dest: str
    more: dict[str, Any]


WAYS = (
    Way("r1", "a", "b", {"filter": TagMatch("x", prefix=True)}),
    Way("r2", "a", "c", {"guarantee": "exactly_once", "preserve_node": False}),
    Way("r3", "b", "d", {"preserve_tag": False}),
)
TOPICS = "abcd"


class RouterMachine(RuleBasedStateMachine):
    ways: ClassVar = WAYS

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.place = Path(tempfile.mkdtemp(prefix="seamark-routers-"))
        self.rig = EmbeddedRig(self.place)
        self.models = {topic: StreamModel(self.settings(TopicConfig(durability=Durability.FSYNC))) for topic in TOPICS}
        self.passed = dict.fromkeys((way.name for way in WAYS), 0)
        self.forwarded = dict.fromkeys((way.name for way in WAYS), 0)
        self.run(self.begin())

    async def begin(self) -> None:
        self.life = Routed(await self.rig.open(), self.rig.clock)
        for topic in TOPICS:
            await self.life.topics.configure(topic, TopicConfig(durability=Durability.FSYNC))
        for way in WAYS:
            await self.life.route(way.name, way.source, way.dest, **way.more)

    def run(self, act: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(act)

    def settings(self, config: TopicConfig) -> Any:
        return settings_of(resolved(config, ""))

    @property
    def now(self) -> int:
        return self.rig.clock.now_ns()

    def teardown(self) -> None:
        self.run(self.life.close(log=False))
        self.run(self.rig.close())
        self.loop.close()
        shutil.rmtree(self.place)

    # -- what happens

    @rule(topic=st.sampled_from("aaab"), drafts=BATCHES)
    def write(self, topic: str, drafts: list[Draft]) -> None:
        self.run(self.append(topic, drafts))

    @rule(topic=st.sampled_from(TOPICS), selector=SELECTORS)
    def delete(self, topic: str, selector: Selector) -> None:
        self.run(self.life.log.delete(stream_of(topic), selector))
        self.models[topic].delete(selector, self.now)

    @rule(topic=st.sampled_from(TOPICS), config=CONFIGS)
    def configure(self, topic: str, config: TopicConfig) -> None:
        self.run(self.life.topics.configure(topic, config))
        self.models[topic].configure(self.settings(config), self.now)

    @rule(ms=st.sampled_from([400, 1_001]))
    def wait(self, ms: int) -> None:
        self.rig.clock.advance(ms / 1_000)

    @rule(acts=HELD)
    def lag(self, acts: list[Any]) -> None:
        """Much happens at the source before its routers come to it."""

        async def happen() -> None:
            async with self.life.forwarding.held(["r1", "r2"]):
                for act in acts:
                    if isinstance(act, Selector):
                        await self.life.log.delete(stream_of("a"), act)
                        self.models["a"].delete(act, self.now)
                    elif act == "wait":
                        self.rig.clock.advance(0.6)
                        self.models["a"].retain(self.now)
                    else:
                        await self.append("a", act)

        self.run(happen())

    @rule()
    def restart(self) -> None:
        async def again() -> None:
            await self.life.close(log=False)
            self.life = Routed(await self.rig.reopen(), self.rig.clock)

        self.run(again())

    @rule(drafts=BATCHES, turns=st.integers(0, 6))
    def crash(self, drafts: list[Draft], turns: int) -> None:
        """The process dies while copies are under way."""

        async def die() -> None:
            await self.append("a", drafts)
            for _ in range(turns):
                await asyncio.sleep(0)
            self.rig.freeze()
            await self.life.close(log=False)
            self.life = Routed(await self.rig.crash(), self.rig.clock)

        self.run(die())

    async def append(self, topic: str, drafts: list[Draft]) -> None:
        try:
            self.models[topic].append(drafts, self.now)
        except StreamFull:
            return
        await self.life.log.append(Append(stream=stream_of(topic), drafts=drafts))

    # -- what the model makes of it

    def forward(self, way: Way) -> None:
        """Go through what the source tells beyond the router's place; stop where the dest has no room."""
        source, dest = self.models[way.source], self.models[way.dest]
        source.retain(self.now)
        dest.retain(self.now)
        story = source.read(Cursor(self.passed[way.name]), instance="")
        told: list[tuple[int, Gap | Record]] = [(gap.first, gap) for gap in story.gaps]
        told += [(record.seq, record) for record in story.records]
        for _, what in sorted(told, key=lambda one: one[0]):
            if isinstance(what, Gap):
                dest.declare_lost(dest.head + what.missed, Loss.SOURCE)
                self.passed[way.name] = what.last
                continue
            if way.name != "r1" or (what.tag or "").startswith("x"):
                node = what.node if way.name != "r2" else None
                tag = what.tag if way.name != "r3" else None
                try:
                    dest.append([Draft(what.payload, node, tag, what.meta)], self.now)
                except StreamFull:
                    self.passed[way.name] = (
                        what.seq - 1
                    )  # what was deleted or not wanted before it is behind the router
                    return
                self.forwarded[way.name] += 1
            self.passed[way.name] = what.seq
        self.passed[way.name] = source.head

    @invariant()
    def topics_are_as_the_model_says(self) -> None:
        for topic in TOPICS:
            self.run(self.life.forwarding.catch_up(topic))
        for way in WAYS:
            self.forward(way)
        for topic, model in self.models.items():
            model.retain(self.now)
            story = model.read(Cursor(), instance="")
            got = self.run(read_all(self.life.log, stream_of(topic)))
            assert [seen(record) for record in got.records] == [seen(record) for record in story.records], topic
            assert got.gaps == story.gaps, topic
            if topic == "c":
                check_stamps(got.records)
            else:
                assert [record.meta for record in got.records] == [record.meta for record in story.records], topic
        for way in WAYS:
            assert self.life.forwarded(way.name) == self.forwarded[way.name], way.name


def seen(record: Record) -> tuple[object, ...]:
    return record.seq, record.payload, record.node, record.tag


def check_stamps(records: list[Record]) -> None:
    """Keys are in the source's order, and none is there twice."""
    seqs = [msgspec.json.decode(record.meta or b"")["_topics_router"]["source_seq"] for record in records]
    assert seqs == sorted(set(seqs))


TestRouters = RouterMachine.TestCase
TestRouters.settings = PROFILE
