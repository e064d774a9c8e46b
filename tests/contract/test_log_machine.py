"""A state machine that does anything to a log in any order, crashes included, and compares it with the model after
every step. Quick by default; SEAMARK_DEEP=1 looks for longer. A failure prints the steps that lead to it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from seamark.clock import NS_PER_MS
from seamark.errors import HeadConflict, SeamarkError, StreamFull, StreamNotFound
from seamark.log.protocol import Append, Receipt, Selector, StreamState, TagMatch
from seamark.log.record import Draft, Geometry
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.testing.engines import EmbeddedRig, MemoryRig
from seamark.testing.model import StreamModel, Written
from seamark.testing.reading import read_all
from seamark.testing.rig import LogRig

T = TypeVar("T")
DEEP = bool(os.environ.get("SEAMARK_DEEP"))
PROFILE = settings(
    max_examples=1_500 if DEEP else 40,
    stateful_step_count=80 if DEEP else 30,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
HISTORY_MAX = 40  # earlier states of a stream that a crash may bring back

NAMES = st.sampled_from(["a", "b", "c"])
TAGS = st.sampled_from([None, None, "x", "xy", "z"])
SUBJECTS = st.sampled_from([None, ("s",), ("s", "t"), ("u",)])
DRAFTS = st.builds(
    Draft,
    st.binary(max_size=12),
    node=st.sampled_from([None, "n1", "n2"]),
    tag=TAGS,
    meta=st.sampled_from([None, b"", b"{}"]),
    subject=SUBJECTS,
    geometry=st.sampled_from([None, Geometry("POINT(1 2)", 1.0, 2.0, 1.0, 2.0)]),
)
SMALL_BATCHES = st.lists(DRAFTS, min_size=1, max_size=6)
BATCHES = st.builds(lambda drafts, times: drafts * times, SMALL_BATCHES, st.sampled_from([1, 1, 1, 1, 90]))
KEYS = st.sampled_from([None, None, "k1", "k2", "k3"])
SELECTORS = st.builds(
    Selector,
    before=st.none() | st.integers(0, 40),
    tag=st.none() | st.builds(TagMatch, st.sampled_from(["x", "z", ""]), st.booleans()),
    seqs=st.none() | st.lists(st.integers(0, 40), max_size=6).map(tuple),
    subject=st.none() | st.sampled_from([("s",), ("u",)]),
).filter(lambda selector: selector != Selector())
BOUNDS = st.fixed_dictionaries(
    {
        "cap_records": st.sampled_from([0, 0, 1, 3, 8, 300]),
        "cap_bytes": st.sampled_from([0, 0, 0, 20, 100]),
        "ttl_ms": st.sampled_from([0, 0, 0, 500, 5_000]),
        "discard": st.sampled_from([Discard.OLD, Discard.OLD, Discard.REJECT]),
    }
)
SETTINGS = st.builds(
    lambda bounds, durability, latest, sparse: StreamSettings(
        durability=durability, latest_per_subject=latest, sparse=sparse, dedupe_window_ms=3_000, **bounds
    ),
    BOUNDS,
    st.sampled_from(Durability),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.booleans(),
)


@dataclass(slots=True)
class Twin:
    """One stream of the engine, its model, and the models a crash may go back to."""

    instance: str
    model: StreamModel
    synced: int = 0
    history: list[StreamModel] = field(default_factory=list)

    @property
    def durability(self) -> Durability:
        return self.model.settings.durability

    @property
    def depends_on_grouping(self) -> bool:
        """Whether appends that arrive together may be replaced before they count against a cap: both are right."""
        chosen = self.model.settings
        return bool(chosen.latest_per_subject and (chosen.cap_records or chosen.cap_bytes))

    def remember(self) -> None:
        self.history = [*self.history[1 - HISTORY_MAX :], self.model.copy()]


class LogMachine(RuleBasedStateMachine):
    """Subclasses name the engine."""

    restarts: ClassVar[bool] = False
    crashes: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.place = Path(tempfile.mkdtemp(prefix="seamark-machine-"))
        self.rig = self.make_rig()
        self.run(self.rig.open())
        self.twins: dict[str, Twin] = {}
        self.turn = 0

    def make_rig(self) -> LogRig:
        raise NotImplementedError

    def run(self, act: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(act)

    @property
    def now(self) -> int:
        return self.rig.clock.now_ns()

    def teardown(self) -> None:
        self.run(self.rig.close())
        self.loop.close()
        shutil.rmtree(self.place)

    # -- writing

    @initialize(choices=st.lists(SETTINGS, min_size=1, max_size=2))
    def begin(self, choices: list[StreamSettings]) -> None:
        for name, chosen in zip("ab", choices, strict=False):
            self.configure(name, chosen)

    @rule(name=NAMES, chosen=SETTINGS)
    def configure(self, name: str, chosen: StreamSettings) -> None:
        """Create a stream, or change all that it is told. What is changed is durable, whatever the class."""
        twin = self.twins.get(name)
        made = self.run(self.rig.log.configure(name, chosen))
        assert made.created == (twin is None)
        if twin is None:
            self.twins[name] = Twin(made.state.instance, StreamModel(chosen))
        else:
            assert made.state.instance == twin.instance
            twin.model.configure(chosen, self.now)
            twin.history = []

    @rule(name=NAMES, drafts=BATCHES, key=KEYS, create=SETTINGS, off=st.sampled_from([None, None, 0, 1, -1]))
    def append(self, name: str, drafts: list[Draft], key: str | None, create: StreamSettings, off: int | None) -> None:
        """Append, with or without a key, sometimes expecting the right head and sometimes a wrong one."""
        twin = self.twins.get(name)
        model = StreamModel(create) if twin is None else twin.model
        if key is not None and self._is_doubtful(model, key):
            return
        head = None if off is None else max(0, model.head + off)
        append = Append(stream=name, drafts=drafts, key=key, create=create, expect_head=head)
        try:
            expected = model.append(drafts, self.now, key=key, expect_head=head)
        except (HeadConflict, StreamFull) as refusal:
            with pytest.raises(type(refusal)):
                self.run(self.rig.log.append(append))
            return
        got = self.run(self.rig.log.append(append))
        assert (got.first, got.last, got.head, got.ts, got.deduped) == (
            expected.first, expected.last, expected.head, expected.ts, expected.deduped,
        )  # fmt: skip
        assert got.created == (twin is None)
        if twin is None:
            self.twins[name] = Twin(got.instance, model)
        else:
            assert got.instance == twin.instance

    def _is_doubtful(self, model: StreamModel, key: str) -> bool:
        """A key that ran out once, and holds again because the clock stepped back: both answers are right."""
        known = model.keys.get(key)
        return known is not None and known.expired_once and model.find_key(key, self.now) is not None

    @rule(name=NAMES, writers=st.lists(st.tuples(SMALL_BATCHES, KEYS), min_size=2, max_size=5))
    def append_at_once(self, name: str, writers: list[tuple[list[Draft], str | None]]) -> None:
        """Several writers in one turn: they are served in the order in which they came."""
        twin = self.twins.get(name)
        if twin is None or any(key is not None and self._is_doubtful(twin.model, key) for _, key in writers):
            return
        outcomes = twin.model.append_together(writers, self.now)
        expected = [(got.first, got.last) if isinstance(got, Written) else type(got) for got in outcomes]

        async def write() -> list[Receipt | BaseException]:
            appends = [Append(stream=name, drafts=drafts, key=key) for drafts, key in writers]
            return await asyncio.gather(*map(self.rig.log.append, appends), return_exceptions=True)

        answers = [(a.first, a.last) if isinstance(a, Receipt) else type(a) for a in self.run(write())]
        assert answers == expected

    # -- losing and removing

    @rule(name=NAMES, selector=SELECTORS)
    def delete(self, name: str, selector: Selector) -> None:
        twin = self.twins.get(name)
        if twin is None:
            with pytest.raises(StreamNotFound):
                self.run(self.rig.log.delete(name, selector))
            return
        deleted = self.run(self.rig.log.delete(name, selector))
        assert deleted.count == twin.model.delete(selector, self.now)

    @rule(ms=st.sampled_from([1, 400, 500, 501, 2_000, 3_001, 6_000]))
    def wait(self, ms: int) -> None:
        self.rig.clock.advance(ms / 1_000)

    @rule(ms=st.sampled_from([-10_000, -700, 700]))
    def step_the_clock(self, ms: int) -> None:
        self.rig.clock.step(ms / 1_000)

    @rule(name=NAMES)
    def drop(self, name: str) -> None:
        dropped = self.run(self.rig.log.drop(name))
        twin = self.twins.pop(name, None)
        assert dropped.existed == (twin is not None)
        if twin is not None:
            assert (dropped.head, dropped.instance) == (twin.model.head, twin.instance)

    # -- stopping

    @precondition(lambda self: self.restarts)
    @rule()
    def reopen(self) -> None:
        self.run(self.rig.reopen())
        for name, twin in self.twins.items():
            if twin.durability is Durability.EPHEMERAL:
                self._forget(name, twin, [*twin.history, twin.model], 0)

    @precondition(lambda self: self.crashes)
    @rule(burst=st.lists(st.tuples(NAMES, SMALL_BATCHES), max_size=6), turns=st.integers(0, 3))
    def crash(self, burst: list[tuple[str, list[Draft]]], turns: int) -> None:
        """Stop in the middle of a burst of appends, some acknowledged and some not."""
        acknowledged = dict.fromkeys(self.twins, 0)
        candidates = {name: [*twin.history, twin.model] for name, twin in self.twins.items()}
        for name, drafts in burst:
            if name in self.twins and not self.twins[name].depends_on_grouping:
                self._submit(name, drafts, candidates[name], acknowledged)
        if turns:
            self.run(_turns(turns))
        self.rig.freeze()
        acknowledged = dict(acknowledged)  # what is acknowledged from now on was not promised by the one that died
        self.run(self.rig.crash())
        for name, twin in self.twins.items():
            if twin.durability is Durability.EPHEMERAL:
                self._forget(name, twin, candidates[name], acknowledged[name])
            else:
                self._go_back(name, twin, candidates[name], max(acknowledged[name], twin.synced))

    def _submit(
        self, name: str, drafts: list[Draft], candidates: list[StreamModel], acknowledged: dict[str, int]
    ) -> None:
        model = candidates[-1].copy()
        try:
            model.append(drafts, self.now)
        except StreamFull:
            return
        candidates.append(model)

        def done(answer: Receipt | SeamarkError) -> None:
            if isinstance(answer, Receipt):
                acknowledged[name] = max(acknowledged[name], answer.last)

        self.rig.log.writer.submit(Append(stream=name, drafts=drafts), done)

    def _forget(self, name: str, twin: Twin, candidates: Sequence[StreamModel], at_least: int) -> None:
        """An ephemeral stream starts behind everything it ever gave out. When it last wrote, and which of its losses
        were no crash, may be forgotten with the rest."""
        state = self.run(self.rig.log.state(name))
        assert state.marks.head >= max(twin.model.head, at_least)
        for candidate in (*reversed(candidates), StreamModel(twin.model.settings)):
            twin.model = candidate.copy()
            twin.model.forget(state.marks.head)
            twin.model.last_ts = state.last_ts
            twin.model.keys = {}
            if not self._difference(name, twin):
                twin.history = []
                return
        raise AssertionError(f"{name} has not forgotten: {self._difference(name, twin)}")

    def _go_back(self, name: str, twin: Twin, candidates: Sequence[StreamModel], durable: int) -> None:
        """Find the moment that the engine went back to. Class fsync never goes behind an acknowledgement; the others
        never behind the durable mark, and never give out a seq again."""
        marks = self.run(self.rig.log.state(name)).marks
        assert marks.head >= durable
        fsync = twin.durability is Durability.FSYNC
        for candidate in reversed(candidates):
            twin.model = candidate.copy()
            twin.model.retain(self.now)
            if not fsync:
                twin.model.crash(marks.head)
            if candidate.head >= (durable if fsync else twin.synced) and not self._difference(name, twin):
                twin.history = []
                return
        raise AssertionError(f"{name} is at none of the moments it may be at; e.g. {self._difference(name, twin)}")

    # -- comparing

    @invariant()
    def the_log_is_as_the_model_says(self) -> None:
        self.turn += 1
        listed = self.run(self.rig.log.streams())
        assert [state.name for state in listed] == sorted(self.twins)
        for name, twin in self.twins.items():
            twin.model.retain(self.now)
            difference = self._difference(name, twin)
            assert not difference, difference
            twin.synced = self.run(self.rig.log.state(name)).marks.synced
            twin.remember()

    def _difference(self, name: str, twin: Twin) -> str:
        """What differs between stream and model, read from three cursors with different page sizes."""
        model = twin.model
        state = self.run(self.rig.log.state(name))
        marks = model.marks(state.marks.synced)
        expected = StreamState(name, twin.instance, model.settings, marks, model.count, model.bytes, model.last_ts)
        if state != expected:
            return f"state {state}, expected {expected}"
        if twin.durability is Durability.FSYNC and marks.synced != marks.head:
            return f"fsync, but not synced: {marks}"
        cursors = {Cursor(0), Cursor(self.turn * 7 % (model.head + 3)), Cursor(model.head // 2, twin.instance)}
        cursors |= {Cursor(floor - at) for floor in model.floors.values() for at in (0, 1)}
        if self.turn % 5 == 0:
            cursors.add(Cursor(0, "another"))
        for at, cursor in enumerate(sorted(cursors, key=lambda c: (c.seq, c.instance or ""))):
            records_max = (1_000, 3 if model.count < 60 else 100, 7 if model.count < 60 else 97)[(at + self.turn) % 3]
            reading = self.run(read_all(self.rig.log, name, cursor, records_max=records_max))
            story = model.read(cursor, instance=twin.instance)
            if reading.gaps != story.gaps:
                return f"gaps from {cursor}: {reading.gaps}, expected {story.gaps}"
            if reading.records != story.records:
                return f"records from {cursor}: {reading.seqs}, expected {[r.seq for r in story.records]}"
            if reading.cursor != Cursor(model.head, twin.instance):
                return f"reading from {cursor} ended at {reading.cursor}"
        at_ns = model.last_ts - self.turn % 3 * NS_PER_MS
        seq = self.run(self.rig.log.seq_at(name, at_ns))
        return "" if model.is_seq_at(seq, at_ns) else f"seq_at gave {seq}"


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class MemoryMachine(LogMachine):
    def make_rig(self) -> LogRig:
        return MemoryRig()


class EmbeddedMachine(LogMachine):
    restarts = True
    crashes = True

    def make_rig(self) -> LogRig:
        return EmbeddedRig(self.place)

    def teardown(self) -> None:
        """Whatever was done to it, a closed store is sound."""
        assert isinstance(self.rig, EmbeddedRig)
        self.run(self.rig.close())
        findings = verify(self.rig.path).findings
        super().teardown()
        assert not findings, findings


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = PROFILE
TestEmbeddedMachine = pytest.mark.slow(EmbeddedMachine.TestCase)
TestEmbeddedMachine.settings = PROFILE
