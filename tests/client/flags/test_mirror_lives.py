"""Random lives of a mirror beside a naive model: whatever arrives, true, false, late or twice, what is held is a closure that the
server had, and what is true brings it there."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from seamark.client.flags.event import Inline, Resync, Snapshot
from seamark.client.flags.status import State
from seamark.client.flags.track import Fetch, Track
from seamark.clock import ManualClock
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.delta import FileChange
from seamark.manifest.lint import lint
from seamark.manifest.subscription import EVERY_FLAG
from tests.client.flags.test_mirror import delta
from tests.flags.manifests import flag, manifest, segment

Files = dict[str, bytes]
contents = st.sampled_from([flag(), flag(note="2"), flag(segment="s"), b"no toml ="])
trees = st.dictionaries(st.sampled_from("abc"), contents, max_size=3).map(
    lambda flags: manifest(flags, {"s": segment()})
)


def hash_of(files: Files) -> str:
    return closure_hash(index_of(files))


class Lives(RuleBasedStateMachine):
    """The model is the server's history, and nothing else: which closures there were, and which is the last one told."""

    @initialize(first=trees)
    def begin(self, first: Files) -> None:
        self.track = Track("ns", EVERY_FLAG, ManualClock())
        self.history: list[Files] = [first]
        self.version = 1
        self.told: list[Inline] = []
        self.waiting: Fetch | None = None
        self.known: dict[str, Files] = {hash_of(first): first}
        self._connect()

    def _connect(self) -> None:
        self.track.connecting()
        self.track.connected()
        self._hear(Snapshot("ns", self.version, hash_of(self.history[-1]), "u"))
        if self.waiting is None:
            assert self.track.mirror.hash == hash_of(self.history[-1])

    def _hear(self, said: Inline | Snapshot | Resync) -> None:
        outcome = self.track.hear(said)
        if isinstance(outcome, Fetch):
            self.waiting = outcome
        elif self.track.state is State.LIVE:
            self.waiting = None

    def _commit(self, files: Files) -> Inline:
        event = delta(self.history[-1], files, self.version + 1)
        self.version += 1
        self.history.append(files)
        self.known[hash_of(files)] = files
        self.told.append(event)
        return event

    @property
    def in_step(self) -> bool:
        """Whether the driver would hand an inline event over now."""
        return self.waiting is None and self.track.state is State.LIVE

    # -- what servers and networks do

    @precondition(lambda self: self.in_step)
    @rule(files=trees)
    def a_true_event(self, files: Files) -> None:
        """It is taken at once, unless one before it was lost."""
        follows = self.track.mirror.hash == hash_of(self.history[-1])
        self._hear(self._commit(files))
        assert (self.waiting is None) == follows
        if follows:
            assert (self.track.mirror.files, self.track.mirror.version) == (files, self.version)

    @precondition(lambda self: self.in_step)
    @rule(files=trees)
    def a_lost_event(self, files: Files) -> None:
        self._commit(files)

    @precondition(lambda self: self.in_step and self.told)
    @rule(data=st.data())
    def an_old_event(self, data: st.DataObject) -> None:
        event, before = data.draw(st.sampled_from(self.told)), self.track.mirror.truth
        self._hear(event)
        if event.version <= before.version:
            assert self.track.mirror.truth is before

    @precondition(lambda self: self.in_step)
    @rule(files=trees, data=st.data())
    def a_false_event(self, files: Files, data: st.DataObject) -> None:
        event = self._commit(files)
        wrong: Any = data.draw(
            st.sampled_from(
                [
                    {"before": "sha256:" + "0" * 64},
                    {"after": "sha256:" + "0" * 64},
                    {"before": None},
                    {"changes": event.changes[1:]},
                    {"changes": (*event.changes, FileChange("flags/x.toml", "added", "0" * 64, "AAAA"))},
                    {"changes": (*event.changes, FileChange("../x", "leave"))},
                ]
            )
        )
        before = self.track.mirror.truth
        self._hear(dataclasses.replace(event, **wrong))
        if self.waiting is not None:
            assert self.track.mirror.truth is before

    @precondition(lambda self: self.waiting is not None)
    @rule(files=trees)
    def a_false_snapshot(self, files: Files) -> None:
        assert self.waiting is not None
        truth = self.track.mirror.truth
        if hash_of(files) != self.waiting.hash:
            self.track.fetched(self.waiting, files, "sha256:" + "1" * 64)
            assert self.track.mirror.truth is truth

    @precondition(lambda self: self.waiting is not None)
    @rule()
    def a_true_snapshot(self) -> None:
        """As far as the promise is true; else a new connection has to make another."""
        assert self.waiting is not None
        wanted = self.waiting.hash or hash_of(self.history[-1])
        if wanted not in self.known:
            self.waiting = None
            self.track.lost("snapshot", "false")
            self._connect()
            return
        outcome = self.track.fetched(self.waiting, self.known[wanted], wanted)
        assert not isinstance(outcome, Fetch)
        self.waiting = None
        assert self.track.state is State.LIVE

    @rule()
    def a_new_connection(self) -> None:
        self.waiting = None
        self.track.lost("connection", "gone")
        self._connect()

    @rule(files=trees)
    def a_restored_backup(self, files: Files) -> None:
        """Versions begin again, lower."""
        self.version = max(1, self.version - 3)
        self.history = [files]
        self.known[hash_of(files)] = files
        self.told = []
        self._hear(Resync(Snapshot("ns", self.version, None, "u"), "unknown_since"))
        assert self.waiting is not None
        assert self.track.mirror.hash is None

    @rule()
    def a_fork(self) -> None:
        self.track = self.track.inherited()
        self.waiting = None
        self._connect()

    # -- what must hold

    @invariant()
    def what_is_mirrored_is_what_its_hash_says(self) -> None:
        truth = self.track.mirror.truth
        assert truth.hash is None or truth.hash == hash_of(dict(truth.files))
        assert truth.hash is None or truth.hash in self.known

    @invariant()
    def what_is_evaluated_was_committed_and_passes(self) -> None:
        held = self.track.held
        if held is not None:
            assert lint(self.known[held.hash], slug="ns").manifest == held.manifest

    @invariant()
    def trouble_is_visible_until_it_is_over(self) -> None:
        held, truth = self.track.held, self.track.mirror.truth
        behind = held is not None and held.hash != truth.hash
        if behind or self.track.state is State.RECOVERING:
            assert self.track.error is not None
            assert self.track.stale_since is not None


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
