"""One namespace through its life: connecting, waiting for a baseline, live, recovering. Without I/O: it is told what happened,
changes its state by the table of the contract, and says what has to be fetched.

    CONNECTING     200                      -> AWAIT_BASELINE
    AWAIT_BASELINE snapshot                 -> fetch; verified: LIVE
    AWAIT_BASELINE inline                   -> a violation: fetch, RECOVERING
    LIVE           inline, checks pass      -> LIVE
    LIVE           inline, a check fails    -> fetch, RECOVERING
    LIVE           snapshot                 -> fetch; verified: LIVE
    LIVE           resync                   -> abandon the mirror but not what is evaluated, fetch, RECOVERING
    RECOVERING     snapshot verified        -> LIVE
    RECOVERING     mismatch, I/O trouble    -> fetch again, later
    RECOVERING     400 401 403 404 410      -> connect again, for a fresh address
    any            the connection is gone   -> BACKOFF
    any            another protocol, thrice -> STOPPED (once, it may be a damaged byte: BACKOFF)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seamark.client.flags.event import Inline, Resync, Said
from seamark.client.flags.mirror import Held, Mirror, NotLinted, NotVerified
from seamark.client.flags.status import Change, RefreshError, State, Status
from seamark.clock import NS_PER_SECOND, Clock
from seamark.manifest.subscription import FlagList

RECONNECT = frozenset({400, 401, 403, 404, 410})  # a fresh address may do what this one did not
SLOW = frozenset({400, 401, 403, 404, 414})  # of a connection: somebody has to change something first


@dataclass(frozen=True, slots=True)
class Fetch:
    """A closure to be had whole. `hash` None: the answer's ETag says it. `url` None: nobody said where, so it is asked for
    by its version. `tries` have failed."""

    version: int
    hash: str | None
    url: str | None
    tries: int = 0


class Track:
    """Who evaluates reads `held`, from any thread. Everything else happens in one place at a time."""

    __slots__ = ("_clock", "error", "mirror", "ready", "slug", "stale_since", "state", "wanted")

    def __init__(self, slug: str, wanted: FlagList, clock: Clock) -> None:
        self.slug = slug
        self.wanted = wanted
        self.mirror = Mirror(slug)
        self.state = State.IDLE
        self.ready = False
        self.error: RefreshError | None = None
        self.stale_since: float | None = None
        self._clock = clock

    def inherited(self) -> Track:
        """The same for the child of a fork, where nobody may ever let go of the locks of this one."""
        heir = Track(self.slug, self.wanted, self._clock)
        heir.mirror, heir.ready = self.mirror.inherited(), self.ready
        heir.error, heir.stale_since = self.error, self.stale_since
        return heir

    def restore(self, files: Mapping[str, bytes], version: int, expected: str) -> None:
        """Take what was verified in an earlier life. It is as stale as can be. Raises NotVerified, NotLinted."""
        self.mirror.replace(files, version, expected)
        self.stale_since = self._now()

    @property
    def held(self) -> Held | None:
        return self.mirror.held

    @property
    def status(self) -> Status:
        held = self.held
        return Status(
            self.slug,
            self.state,
            None if held is None else held.version,
            None if held is None else held.hash,
            0 if held is None else len(held.manifest.flags),
            self.ready,
            self.stale_since,
            self.error,
        )

    # -- the connection

    def connecting(self) -> None:
        self.state = State.CONNECTING

    def connected(self) -> None:
        self.state = State.AWAIT_BASELINE

    def lost(self, kind: str, message: str) -> None:
        """Until a baseline is verified again, what is held may be old."""
        self.fail(kind, message)
        self.state = State.BACKOFF

    def stop(self, kind: str, message: str) -> None:
        self.fail(kind, message)
        self.state = State.STOPPED

    def close(self) -> None:
        self.state = State.CLOSED

    # -- what is said

    def hear(self, said: Said) -> Fetch | Change | None:
        """Take one event. A change is in force when this returns; a fetch has to be answered with `fetched`, or tried again
        as `refused` says."""
        if isinstance(said, Inline):
            return self._inline(said)
        if isinstance(said, Resync):
            self.mirror.abandon()
            self.fail("event", f"the server asked to begin again: {said.reason}", said.snapshot.version)
            self.state = State.RECOVERING
            said = said.snapshot
        elif self.state is State.LIVE and said.version <= self.mirror.version:
            return None
        elif said.url is None:
            self.state = State.RECOVERING
        if said.hash is not None and self.mirror.confirm(said.version, said.hash):
            self._arrived()
            return None
        return Fetch(said.version, said.hash, said.url)

    def _inline(self, event: Inline) -> Fetch | Change | None:
        if self.state is State.LIVE:
            try:
                return self._changed(self.mirror.apply(event))
            except NotLinted as error:
                self._not_linted(error)
                return None
            except NotVerified as error:
                self.fail(error.check, str(error), event.version)
        else:
            self.fail("event", f"version {event.version} came before a baseline", event.version)
        self.state = State.RECOVERING
        return Fetch(event.version, event.after, None)

    # -- what was fetched

    def fetched(self, fetch: Fetch, files: Mapping[str, bytes], tagged: str | None) -> Fetch | Change | None:
        """Take a snapshot. The same fetch comes back if it was not what was promised."""
        expected = fetch.hash or tagged
        if expected is None:
            return self.refused(fetch, "snapshot", "the answer does not say what it should be")
        try:
            return self._changed(self.mirror.replace(files, fetch.version, expected))
        except NotLinted as error:
            self._not_linted(error)
            return None
        except NotVerified as error:
            return self.refused(fetch, error.check, str(error))

    def refused(self, fetch: Fetch, kind: str, message: str) -> Fetch:
        """What to try instead, after a while."""
        self.fail(kind, message, fetch.version)
        if self.state is State.LIVE:
            self.state = State.RECOVERING
        return replace(fetch, tries=fetch.tries + 1)

    # -- outcomes

    def _changed(self, flags: frozenset[str]) -> Change | None:
        self._arrived()
        return Change(self.slug, self.mirror.version, flags) if flags else None

    def _arrived(self) -> None:
        """What the server has is here. If that is no manifest, what is evaluated is still an older one."""
        self.state = State.LIVE
        held = self.held
        if held is not None and held.hash == self.mirror.hash:
            self.ready = True
            self.error = self.stale_since = None

    def _not_linted(self, error: NotLinted) -> None:
        self.fail("lint", str(error), self.mirror.version)
        self.state = State.LIVE

    def fail(self, kind: str, message: str, version: int | None = None) -> None:
        """Whatever it is, nothing that is held has changed. It may be old now."""
        self.note(kind, message, version)
        if self.stale_since is None:
            self.stale_since = self._now()

    def note(self, kind: str, message: str, version: int | None = None) -> None:
        """Something failed that does not make what is held any older."""
        self.error = RefreshError(kind, message, self._now(), version, self.slug)

    def _now(self) -> float:
        return self._clock.now_ns() / NS_PER_SECOND
