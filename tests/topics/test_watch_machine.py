"""A machine that does anything to topics, sessions and connections in any order, and knows exactly which frames every
watcher must get, with every seq, tombstone and caught-up mark in them. SEAMARK_DEEP=1 looks for longer."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from seamark.log.protocol import Declares, Selector, TagMatch
from seamark.log.record import Draft, Record
from seamark.log.watermarks import Loss
from seamark.topics.model import TopicConfig, stream_of
from tests.topics.rig import TopicsRig
from tests.topics.viewing import Frame, Viewer, frames_of, id_of, settle
from tests.topics.watch_model import NOBODY, Leg, Options, Told, Topic

T = TypeVar("T")
DEEP = bool(os.environ.get("SEAMARK_DEEP"))
PROFILE = settings(
    max_examples=600 if DEEP else 20,
    stateful_step_count=50 if DEEP else 25,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
NAMES = ("a", "b", "c")
WATCHERS_MAX = 3
TURNS = 60

NAME = st.sampled_from(["a", "a", "a", "b", "c"])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "data": st.integers(0, 4).map("x".__mul__),
            "node": st.sampled_from([None, "me", "you"]),
            "tag": st.sampled_from([None, "p", "pq"]),
        }
    ),
    min_size=1,
    max_size=6,
)
CONFIGS = st.builds(
    TopicConfig,
    cap_records=st.sampled_from([0, 0, 2, 5]),
    cap_bytes=st.sampled_from([0, 0, 0, 12]),
    ttl_ms=st.sampled_from([0, 300]),
    dedupe_node=st.sampled_from([True, True, False]),
)
WRITE = st.tuples(st.just("write"), NAME, RECORDS)
ACTS = st.lists(
    st.one_of(
        WRITE,
        WRITE,
        WRITE,
        WRITE,
        WRITE,
        st.tuples(st.just("configure"), NAME, CONFIGS),
        st.tuples(st.just("time_passes"), st.sampled_from([100, 300, 301])),
        st.tuples(st.just("delete_a_front"), NAME, st.integers(0, 30)),
        st.tuples(st.just("delete_a_tag"), NAME, st.sampled_from(["p", "pq"]), st.booleans()),
        st.tuples(st.just("lose_at_the_source"), NAME, st.integers(1, 4)),
        st.tuples(st.just("remove"), NAME, st.sampled_from([True, True, False])),
    ),
    min_size=1,
    max_size=8,
)
OPTIONS = st.builds(
    Options,
    limit=st.sampled_from([1, 2, 256]),
    max_batch_bytes=st.sampled_from([1, 9, 262_144]),
    node=st.sampled_from([None, "me"]),
    consistency=st.sampled_from(["eventual", "strong"]),
)
STARTS = st.dictionaries(NAME, st.none() | st.integers(0, 12), min_size=1)  # None: from the head on


class Watcher:
    """A session with its legs, and its connection while there is one."""

    def __init__(self, viewer: Viewer, legs: dict[str, Leg]) -> None:
        self.viewer = viewer
        self.legs = legs
        self.connected = False
        self.stalled = False
        self.heard: list[Sequence[Record]] = []
        self.blocks = 0  # of what the pipe took, checked
        self.said: dict[str, int] = {}  # the last place of each topic that the client was told of
        self.ids: list[dict[str, int]] = []  # places that the client may come back with

    @property
    def over(self) -> bool:
        return all(leg.over for leg in self.legs.values())

    @property
    def reads(self) -> bool:
        return self.connected and not self.stalled


class WatchMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self.topics = {name: Topic() for name in NAMES}
        self.watchers: list[Watcher] = []
        self.rig = self._run(self._rig())

    def teardown(self) -> None:
        self._run(self.rig.close())
        self._loop.close()
        super().teardown()

    # -- topics

    @initialize(configs=st.lists(CONFIGS, min_size=len(NAMES), max_size=len(NAMES)), options=OPTIONS)
    def begin(self, configs: list[TopicConfig], options: Options) -> None:
        for name, config in zip(NAMES, configs, strict=True):
            self._put(name, config)
        self.subscribe(dict.fromkeys(NAMES, 0), options)

    @rule(acts=ACTS)
    def live(self, acts: list[tuple[Any, ...]]) -> None:
        for act, *given in acts:
            getattr(self, act)(*given)

    @rule(data=st.data(), acts=ACTS)
    @precondition(lambda self: self.watchers)
    def live_while_one_stalls(self, data: st.DataObject, acts: list[tuple[Any, ...]]) -> None:
        self.stall(data)
        self.live(acts)
        self.flow()

    @rule(data=st.data(), acts=ACTS)
    @precondition(lambda self: self.watchers)
    def live_while_one_is_away(self, data: st.DataObject, acts: list[tuple[Any, ...]]) -> None:
        watcher = self._one(data)
        self._leave(watcher)
        self.live(acts)
        self._come_back(watcher, data)

    def write(self, name: str, records: list[dict[str, str | None]]) -> None:
        topic = self.topics[name]
        if topic.log is None:
            topic.make(TopicConfig(), name, self._now)
        drafts = [Draft(json.dumps(row["data"]).encode(), row["node"], row["tag"]) for row in records]
        written = topic.there.append(drafts, self._now)
        answer = self._call("POST", f"/topics/{name}", {"records": records})
        assert (answer["first_seq"], answer["last_seq"]) == (written.first, written.last)
        batch = [Record(seq, written.ts, draft.payload, draft.node) for seq, draft in enumerate(drafts, written.first)]
        self._check({name: batch})

    def configure(self, name: str, config: TopicConfig) -> None:
        self._put(name, config)
        self._check()

    def delete_a_front(self, name: str, before: int) -> None:
        self._delete(name, Selector(before=before), {"before_seq": before})

    def delete_a_tag(self, name: str, text: str, prefix: bool) -> None:
        self._delete(name, Selector(tag=TagMatch(text, prefix)), {"match": text + "*" * prefix})

    def lose_at_the_source(self, name: str, count: int) -> None:
        """As a router does in its dest."""
        log = self.topics[name].log
        if log is not None:
            assert isinstance(self.rig.log, Declares)
            log.retain(self._now)
            log.declare_lost(log.head + count, Loss.SOURCE)
            self._run(self.rig.log.lose(stream_of(name), log.head, Loss.SOURCE))
            self._check()

    def remove(self, name: str, again: bool) -> None:
        topic = self.topics[name]
        self._call("DELETE", f"/topics/{name}")
        log, topic.log = topic.log, None
        for watcher in self.watchers:
            if log is not None and watcher.connected and name in watcher.legs:
                watcher.legs[name].lose_topic(log.head)
        self._check()
        if again:
            self.configure(name, topic.config)

    def time_passes(self, ms: int) -> None:
        self.rig.clock.advance(ms / 1_000)
        self._do(self.rig.assembly.wheel.advance)
        self._check()

    # -- watchers

    @rule(starts=STARTS, options=OPTIONS)
    @precondition(lambda self: len(self.watchers) < WATCHERS_MAX)
    def subscribe(self, starts: dict[str, int | None], options: Options) -> None:
        starts = {name: start for name, start in starts.items() if self.topics[name].log is not None}
        if not starts:
            return
        topics = {name: {"tail": True} if start is None else {"from_seq": start} for name, start in starts.items()}
        answer = self._call("POST", "/watch", {"topics": topics, **options._asdict()})
        legs = {name: self._leg(name, start, options) for name, start in starts.items()}
        assert {name: row["from_seq"] for name, row in answer["topics"].items()} == {
            n: leg.seq for n, leg in legs.items()
        }
        watcher = Watcher(Viewer(self.rig, answer["wid"]), legs)
        self.watchers.append(watcher)
        self._connect(watcher, None)

    @rule(data=st.data())
    @precondition(lambda self: self.watchers)
    def cut(self, data: st.DataObject) -> None:
        """The connection breaks; what is on the way is lost, and may have been seen or not."""
        self._leave(self._one(data))

    @rule(data=st.data())
    @precondition(lambda self: self.watchers)
    def resume(self, data: st.DataObject) -> None:
        """Also in place of a connection that is still open."""
        self._come_back(self._one(data), data)

    @rule(data=st.data())
    @precondition(lambda self: self.watchers)
    def stall(self, data: st.DataObject) -> None:
        watcher = self._one(data)
        if watcher.reads:
            self._do(watcher.viewer.pipe.fill)
            watcher.stalled = True

    @rule()
    def flow(self) -> None:
        for watcher in self.watchers:
            if watcher.stalled:
                watcher.stalled = False
                self._do(watcher.viewer.pipe.drain)
        self._check()

    # -- inside

    @property
    def _now(self) -> int:
        return self.rig.clock.now_ns()

    def _run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(doing)

    def _do(self, doing: Callable[[], object]) -> None:
        """Something that is done inside the loop."""

        async def inside() -> None:
            doing()

        self._run(inside())

    async def _rig(self) -> TopicsRig:
        return TopicsRig()

    def _call(self, method: str, path: str, body: object = None) -> Any:
        return self._run(self.rig.call(method, path, body))

    def _put(self, name: str, config: TopicConfig) -> None:
        self.topics[name].make(config, name, self._now)
        fields = ("cap_records", "cap_bytes", "ttl_ms", "dedupe_node")
        self._call("PUT", f"/topics/{name}", {field: getattr(config, field) for field in fields})

    def _delete(self, name: str, selector: Selector, body: dict[str, Any]) -> None:
        log = self.topics[name].log
        if log is not None:
            count = log.delete(selector, self._now)
            assert self._call("POST", f"/topics/{name}/delete", body)["deleted"] == count
            self._check()

    def _one(self, data: st.DataObject) -> Watcher:
        return self.watchers[data.draw(st.integers(0, len(self.watchers) - 1))]

    def _leave(self, watcher: Watcher) -> None:
        if watcher.connected:
            self._do(watcher.viewer.pipe.leave)
            watcher.connected = watcher.stalled = False
            self._check()

    def _come_back(self, watcher: Watcher, data: st.DataObject) -> None:
        """Without an id, with one that was seen, or with one that nobody gave out."""
        seen = [st.sampled_from(watcher.ids[-20:])] * 2 if watcher.ids else []
        invented = st.dictionaries(st.sampled_from([*NAMES, "z"]), st.integers(0, 40))
        self._connect(watcher, data.draw(st.one_of(st.none(), *seen, invented)))

    def _leg(self, name: str, start: int | None, options: Options) -> Leg:
        topic = self.topics[name]
        seq = topic.there.head if start is None else start
        return Leg(topic, options, seq, topic.life if seq <= topic.there.head else NOBODY)

    def _connect(self, watcher: Watcher, given: dict[str, int] | None) -> None:
        if watcher.connected:
            watcher.viewer.pipe.stalled = False  # what it holds back is of no interest
            watcher.connected = False
        last_event_id = b"" if given is None else id_of(**given)
        for name, leg in watcher.legs.items():
            leg.connect((given or {}).get(name))
        watcher.viewer = self._run(watcher.viewer.again(last_event_id))
        watcher.connected, watcher.stalled = True, False
        watcher.blocks = 0
        watcher.said = {name: leg.seq for name, leg in watcher.legs.items()}
        self._check()

    def _check(self, written: dict[str, list[Record]] | None = None) -> None:
        """Every watcher got exactly what it must have got by now."""
        self._run(settle(TURNS))
        for watcher in self.watchers:
            if not watcher.reads:
                continue
            expected: dict[str, list[Told]] = {}
            for name, leg in watcher.legs.items():
                told: list[Told] = []
                batch = (written or {}).get(name)
                if batch and leg.follows(batch[0]):
                    told += leg.hear(batch)
                told += leg.read(self._now)
                if told:
                    expected[name] = told
            self._compare(watcher, expected)

    def _compare(self, watcher: Watcher, expected: dict[str, list[Told]]) -> None:
        taken = watcher.viewer.pipe.taken
        frames = frames_of(b"".join(taken[watcher.blocks :]))
        watcher.blocks = len(taken)
        got: dict[str, list[Told]] = {}
        for frame in frames:
            if frame.event == "hb":
                continue
            name = frame.body["topic"]
            got.setdefault(name, []).append(told_of(frame))
            self._check_id(watcher, name, frame)
        assert got == expected
        session = watcher.viewer.session
        session.settle()
        places = {
            stream.removeprefix("topics:"): seq
            for stream, seq in zip(session.topics.streams, session.seqs, strict=True)
        }
        assert places == {name: leg.seq for name, leg in watcher.legs.items()}
        assert watcher.viewer.pipe.ended == watcher.over
        if watcher.over:
            watcher.connected = False

    def _check_id(self, watcher: Watcher, name: str, frame: Frame) -> None:
        """The topic's own place is exact; the others are where they were said to be, or further in silence."""
        watcher.said[name] = place_of(frame)
        assert frame.place.keys() == watcher.legs.keys()
        assert frame.place[name] == watcher.said[name]
        for other, leg in watcher.legs.items():
            if other != name:
                place = frame.place[other]
                assert place == watcher.said[other] or watcher.said[other] < place <= leg.seq
        watcher.ids.append(frame.place)


def told_of(frame: Frame) -> Told:
    """A frame as the model says it."""
    body = frame.body
    if frame.event == "record":
        rows = tuple((row["$seq"], row["$ts"], row.get("$node"), row["data"]) for row in body["records"])
        return "record", rows, body["from_seq"], body["to_seq"], body["head_seq"]
    names = (
        ("reason", "gap_from", "gap_to", "earliest_seq", "head_seq") if frame.event == "tombstone" else ("head_seq",)
    )
    more = (body["reason"],) if frame.event == "topic-deleted" else ()
    return (frame.event, *(body[name] for name in names), *more)


def place_of(frame: Frame) -> int:
    """Where a frame takes its own topic."""
    field = {"record": "to_seq", "tombstone": "gap_to"}.get(frame.event, "head_seq")
    return int(frame.body[field])


WatchMachine.TestCase.settings = PROFILE
TestWatchMachine = WatchMachine.TestCase
