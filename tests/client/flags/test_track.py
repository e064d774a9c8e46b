"""Every row of the table of states, and that no failure changes what is evaluated."""

from __future__ import annotations

import dataclasses

import pytest

from seamark.client.flags.event import Inline, Resync, Snapshot
from seamark.client.flags.status import Change, State
from seamark.client.flags.track import Fetch, Track
from seamark.clock import ManualClock
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.subscription import EVERY_FLAG
from tests.client.flags.test_mirror import delta
from tests.flags.manifests import flag, manifest

Files = dict[str, bytes]
ONE, TWO, THREE = (manifest({"a": flag(note=note)}) for note in "123")
BROKEN = manifest({"a": b"no toml ="})


def hash_of(files: Files) -> str:
    return closure_hash(index_of(files))


def snapshot(files: Files, version: int) -> Snapshot:
    return Snapshot("ns", version, hash_of(files), f"http://h/{version}")


def fetch(files: Files, version: int, tries: int = 0) -> Fetch:
    return Fetch(version, hash_of(files), f"http://h/{version}", tries)


def now(track: Track) -> tuple[State, str | None, bool]:
    """State, what went wrong, and whether what is held may be old."""
    return track.state, None if track.error is None else track.error.kind, track.stale_since is not None


FINE = (State.LIVE, None, False)


def awaiting() -> Track:
    track = Track("ns", EVERY_FLAG, ManualClock())
    states = [track.state]
    track.connecting()
    states.append(track.state)
    track.connected()
    assert [*states, track.state] == [State.IDLE, State.CONNECTING, State.AWAIT_BASELINE]
    return track


def live(files: Files = ONE, version: int = 1) -> Track:
    track = awaiting()
    wanted = track.hear(snapshot(files, version))
    assert isinstance(wanted, Fetch)
    track.fetched(wanted, files, None)
    assert track.state is State.LIVE
    return track


def evaluated(track: Track) -> tuple[int, str] | None:
    return None if track.held is None else (track.held.version, track.held.hash)


def test_a_connection_waits_for_a_baseline_which_makes_it_live() -> None:
    track = awaiting()
    assert (track.state, track.ready) == (State.AWAIT_BASELINE, False)
    assert track.hear(snapshot(ONE, 7)) == fetch(ONE, 7)
    assert track.state is State.AWAIT_BASELINE
    assert track.fetched(fetch(ONE, 7), ONE, None) == Change("ns", 7, frozenset({"a"}))
    assert now(track) == FINE
    assert track.ready
    assert evaluated(track) == (7, hash_of(ONE))


def test_an_inline_event_before_a_baseline_is_a_violation_that_a_snapshot_mends() -> None:
    track = awaiting()
    assert track.hear(delta(ONE, TWO, 2)) == Fetch(2, hash_of(TWO), None)
    assert now(track) == (State.RECOVERING, "event", True)
    assert track.fetched(Fetch(2, hash_of(TWO), None), TWO, None) == Change("ns", 2, frozenset({"a"}))
    assert now(track) == FINE


def test_inline_events_that_pass_keep_it_live() -> None:
    track = live()
    assert track.hear(delta(ONE, TWO, 4)) == Change("ns", 4, frozenset({"a"}))
    assert (track.state, evaluated(track)) == (State.LIVE, (4, hash_of(TWO)))


def damaged(check: str) -> Inline:
    event = delta(ONE, TWO, 2)
    if check == "pre_apply":
        return dataclasses.replace(event, before=hash_of(THREE))
    if check == "post_apply":
        return dataclasses.replace(event, after=hash_of(THREE))
    (change,) = event.changes
    return dataclasses.replace(event, changes=(type(change)(change.path, change.op, "0" * 64, change.content_b64),))


@pytest.mark.parametrize("check", ["pre_apply", "files", "post_apply"])
def test_a_check_that_fails_leads_to_a_snapshot_and_changes_nothing(check: str) -> None:
    track = live()
    event = damaged(check)
    assert track.hear(event) == Fetch(2, event.after, None)
    assert (track.state, evaluated(track), track.mirror.files) == (State.RECOVERING, (1, hash_of(ONE)), ONE)
    assert track.error is not None
    assert (track.error.kind, track.error.version) == (check, 2)
    assert track.stale_since is not None


def test_a_snapshot_in_the_middle_replaces_all() -> None:
    track = live()
    assert track.hear(snapshot(TWO, 5)) == fetch(TWO, 5)
    assert track.state is State.LIVE
    track.fetched(fetch(TWO, 5), TWO, None)
    assert (track.state, evaluated(track)) == (State.LIVE, (5, hash_of(TWO)))


def test_what_is_older_than_what_is_held_is_passed_over() -> None:
    track = live(version=5)
    assert track.hear(snapshot(TWO, 5)) is None
    assert track.hear(snapshot(TWO, 4)) is None
    assert track.hear(delta(ONE, TWO, 5)) is None
    assert evaluated(track) == (5, hash_of(ONE))


def test_a_new_connection_takes_what_is_older_too() -> None:
    """The server was restored from a backup."""
    track = live(version=5)
    track.lost("connection", "gone")
    track.connected()
    assert track.hear(snapshot(TWO, 3)) == fetch(TWO, 3)
    track.fetched(fetch(TWO, 3), TWO, None)
    assert evaluated(track) == (3, hash_of(TWO))


def test_what_is_here_already_is_not_fetched_again() -> None:
    track = live(version=5)
    track.lost("connection", "gone")
    assert track.stale_since is not None
    track.connected()
    assert track.hear(snapshot(ONE, 9)) is None
    assert now(track) == FINE
    assert evaluated(track) == (9, hash_of(ONE))
    assert track.hear(delta(ONE, TWO, 10)) == Change("ns", 10, frozenset({"a"}))


@pytest.mark.parametrize("reason", ["version_too_old", "unknown_since", "pre_git_era", "news"])
def test_a_resync_abandons_the_mirror_and_not_what_is_evaluated(reason: str) -> None:
    track = live(version=9)
    wanted = track.hear(Resync(Snapshot("ns", 4, None, "http://h/4"), reason))
    assert wanted == Fetch(4, None, "http://h/4")
    assert (track.state, track.mirror.hash, evaluated(track)) == (State.RECOVERING, None, (9, hash_of(ONE)))
    assert track.fetched(wanted, TWO, hash_of(TWO)) == Change("ns", 4, frozenset({"a"}))
    assert (track.state, evaluated(track)) == (State.LIVE, (4, hash_of(TWO)))


def test_a_resync_to_what_was_held_is_fetched_all_the_same() -> None:
    track = live()
    assert isinstance(track.hear(Resync(Snapshot("ns", 1, hash_of(ONE), "u"), "superseded")), Fetch)


@pytest.mark.parametrize("tagged", [None, hash_of(ONE)])
def test_a_snapshot_that_is_not_what_was_promised_is_tried_again(tagged: str | None) -> None:
    track = live()
    wanted = track.hear(Resync(Snapshot("ns", 2, None, "u"), "unknown_since"))
    assert isinstance(wanted, Fetch)
    again = track.fetched(wanted, TWO, tagged)
    assert again == dataclasses.replace(wanted, tries=1)
    assert track.fetched(again, THREE, tagged) == dataclasses.replace(wanted, tries=2)
    assert (track.state, evaluated(track)) == (State.RECOVERING, (1, hash_of(ONE)))
    assert track.error is not None
    assert track.error.kind == "snapshot"


def test_a_snapshot_in_the_middle_that_fails_is_recovering() -> None:
    track = live()
    wanted = track.hear(snapshot(TWO, 2))
    assert isinstance(wanted, Fetch)
    again = track.fetched(wanted, THREE, None)
    assert (again, track.state) == (dataclasses.replace(wanted, tries=1), State.RECOVERING)
    assert track.refused(again or wanted, "fetch", "503").tries == 2  # type: ignore[arg-type]
    assert evaluated(track) == (1, hash_of(ONE))


def test_a_first_snapshot_that_fails_still_waits_for_a_baseline() -> None:
    track = awaiting()
    wanted = track.hear(snapshot(TWO, 2))
    assert isinstance(wanted, Fetch)
    track.refused(wanted, "fetch", "no answer")
    assert (track.state, track.held) == (State.AWAIT_BASELINE, None)


def test_what_is_no_manifest_is_followed_but_not_evaluated() -> None:
    track = live()
    assert track.hear(delta(ONE, BROKEN, 2)) is None
    assert (track.state, track.mirror.version, evaluated(track)) == (State.LIVE, 2, (1, hash_of(ONE)))
    assert now(track) == (State.LIVE, "lint", True)
    assert track.hear(delta(BROKEN, TWO, 3)) == Change("ns", 3, frozenset({"a"}))
    assert now(track) == FINE


def test_a_baseline_that_is_no_manifest_is_not_ready() -> None:
    track = awaiting()
    wanted = track.hear(snapshot(BROKEN, 1))
    assert isinstance(wanted, Fetch)
    assert track.fetched(wanted, BROKEN, None) is None
    assert (track.state, track.ready, track.held) == (State.LIVE, False, None)


def test_a_manifest_that_is_still_broken_after_a_reconnect_is_still_an_error() -> None:
    track = live()
    track.hear(delta(ONE, BROKEN, 2))
    track.lost("connection", "gone")
    track.connected()
    assert track.hear(snapshot(BROKEN, 2)) is None
    assert track.state is State.LIVE
    assert track.stale_since is not None


def test_what_was_lost_is_old_since_it_was_lost() -> None:
    clock = ManualClock()
    track = Track("ns", EVERY_FLAG, clock)
    track.connecting()
    track.lost("refused", "503")
    since = track.stale_since
    clock.advance(5)
    track.lost("connection", "again")
    assert (track.state, track.stale_since) == (State.BACKOFF, since)
    assert track.error is not None
    assert since is not None
    assert track.error.at == since + 5


def test_stopped_and_closed() -> None:
    track = live()
    track.stop("protocol", "v3")
    assert (track.state, evaluated(track)) == (State.STOPPED, (1, hash_of(ONE)))
    track.close()
    assert track.state is State.CLOSED


def test_the_child_of_a_fork_has_the_same_and_no_lock_of_its_parent() -> None:
    track = live()
    track.lost("connection", "gone")
    heir = track.inherited()
    assert (heir.held, heir.mirror.truth, heir.ready) == (track.held, track.mirror.truth, True)
    assert (heir.error, heir.stale_since) == (track.error, track.stale_since)
    assert heir.mirror._memo is not track.mirror._memo


def test_the_status() -> None:
    track = live(version=3)
    status = track.status
    assert (status.namespace, status.state, status.version, status.flags) == ("ns", State.LIVE, 3, 1)
    assert (status.closure_hash, status.ready, status.stale, status.last_error) == (hash_of(ONE), True, False, None)
    empty = awaiting().status
    assert (empty.version, empty.closure_hash, empty.flags, empty.ready) == (None, None, 0, False)
