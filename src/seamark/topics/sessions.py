"""Watch sessions: what a client subscribed to, how far it was served, and for how long that is remembered. No I/O."""

from __future__ import annotations

from array import array
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256

import msgspec

from seamark.clock import Clock
from seamark.errors import Busy, SessionNotFound
from seamark.limits import WATCH_SESSION_SECONDS
from seamark.log.watermarks import Cursor
from seamark.stream.session import Session
from seamark.topics.cursor import TopicSet, rewound
from seamark.topics.render import Variant

WID_PREFIX = "wid_"
WID_BYTES = 16


class Wanted(msgspec.Struct, frozen=True, array_like=True):
    """What one client asked for, beside the topics."""

    owner: str  # the name of the key that made the session
    nodes: tuple[str, ...]  # writers whose records it does not want
    variant: Variant
    records_max: int
    bytes_max: int
    heartbeat_ms: int
    strong: bool


class WatchSession:
    """A definition and a place on each topic, exact while no stream is open.

    While one is, the places are with its legs, and `settle` fetches them. `trusted` is False for one that came back after
    a crash: then its places are lower bounds.
    """

    __slots__ = ("former", "idle_since", "instances", "key", "saved", "seqs", "stream", "topics", "trusted", "wanted")

    def __init__(self, key: bytes, wanted: Wanted, topics: TopicSet, cursors: Sequence[Cursor]) -> None:
        assert len(cursors) == len(topics)
        self.key = key
        self.wanted = wanted
        self.topics = topics
        self.seqs = array("Q", [cursor.seq for cursor in cursors])
        self.instances = [cursor.instance for cursor in cursors]
        self.former: dict[int, str] = {}  # instances that the newest stream found gone, with another in their place
        self.trusted = True
        self.stream: Session | None = None
        self.idle_since = 0.0
        self.saved: int | None = None  # hash of the places that were last saved

    def cursor(self, position: int) -> Cursor:
        return Cursor(self.seqs[position], self.instances[position])

    def settle(self) -> None:
        """Note how far the open stream has come: everything up to there was handed to the connection."""
        if self.stream is None:
            return
        for position, leg in enumerate(self.stream.legs):
            self.seqs[position] = leg.place if leg.gone_head is None else max(leg.place, leg.gone_head)
            before = self.instances[position]
            if leg.instance != before:
                self.instances[position] = leg.instance
                if before is not None:
                    self.former[position] = before

    def rewind(self, position: int, given: int) -> None:
        """Take a place back to what the client says. An id beyond the place is from before the topic was made again, if
        it was in the newest stream: then the client has not heard of that yet, and is told again."""
        if position in self.former and given > self.seqs[position]:
            self.seqs[position], self.instances[position] = given, self.former[position]
        else:
            self.seqs[position] = rewound(self.seqs[position], given)


class Sessions:
    """All of them, found by what only their client knows: a random id, of which only the digest is kept."""

    def __init__(
        self, clock: Clock, random_bytes: Callable[[int], bytes], *, most: int, forget: Callable[[WatchSession], None]
    ) -> None:
        """`most` 0 sets no bound. `forget` is told of those that were given up."""
        self._clock = clock
        self._random_bytes = random_bytes
        self._most = most
        self._forget = forget
        self._all: dict[bytes, WatchSession] = {}
        self._idle: dict[bytes, WatchSession] = {}  # without a stream, the longest idle first

    def __len__(self) -> int:
        return len(self._all)

    def create(self, wanted: Wanted, topics: TopicSet, cursors: Sequence[Cursor]) -> tuple[str, WatchSession]:
        """A new session and its wid. Raises Busy."""
        if self._most and len(self._all) >= self._most:
            message = f"there are {len(self._all)} watch sessions, which is the most"
            raise Busy(message, limit="max_watch_sessions", max=self._most)
        wid = WID_PREFIX + urlsafe_b64encode(self._random_bytes(WID_BYTES)).rstrip(b"=").decode()
        session = WatchSession(_key(wid), wanted, topics, cursors)
        self.adopt(session)
        return wid, session

    def adopt(self, session: WatchSession) -> None:
        """Take in a session that has no stream: its time begins now."""
        self._all[session.key] = session
        self._rest(session)

    def find(self, wid: str) -> WatchSession:
        """Raises SessionNotFound, also for one whose time has passed."""
        self.collect()
        session = self._all.get(_key(wid))
        if session is None:
            raise SessionNotFound("there is no such watch session: it expired or never was; POST /v0/watch makes one")
        return session

    def collect(self) -> None:
        """Give up those that were idle for too long. One with an open stream never is."""
        horizon = self._clock.monotonic() - WATCH_SESSION_SECONDS
        for key, session in list(self._idle.items()):
            if session.idle_since >= horizon:
                break
            del self._idle[key], self._all[key]
            self._forget(session)

    def opened(self, session: WatchSession, stream: Session) -> None:
        self._idle.pop(session.key, None)
        session.stream = stream

    def closed(self, session: WatchSession) -> None:
        """Its stream ended, and its idle time begins."""
        session.settle()
        session.stream = None
        self._rest(session)

    def all(self) -> list[WatchSession]:
        return list(self._all.values())

    def _rest(self, session: WatchSession) -> None:
        session.idle_since = self._clock.monotonic()
        self._idle[session.key] = session


def _key(wid: str) -> bytes:
    return sha256(wid.encode("utf-8", "surrogatepass")).digest()
