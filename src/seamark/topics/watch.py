"""Watching topics: a session is made first, and its stream is opened, and opened again, after that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from seamark.clock import Clock
from seamark.errors import StreamNotFound
from seamark.limits import HEARTBEAT_MS_MIN
from seamark.log.protocol import Shelf, StreamState
from seamark.log.watermarks import Cursor
from seamark.match.filter import Filter
from seamark.stream.dialect import Close
from seamark.stream.hub import Hub
from seamark.stream.leg import LegSpec
from seamark.stream.pipe import Pipe
from seamark.stream.session import Session
from seamark.topics.cursor import restored, topic_set
from seamark.topics.model import config_of
from seamark.topics.script import script_for
from seamark.topics.service import Topics
from seamark.topics.session_rows import SessionRows
from seamark.topics.sessions import Sessions, Wanted, WatchSession
from seamark.topics.slots import StreamSlots

SURFACE = "topics"
States = Mapping[str, StreamState]
"""By the log's names of the streams."""
_NO_INSTANCE = ""  # is that of no stream


class Start(msgspec.Struct, frozen=True):
    """Where one topic's reading begins."""

    state: StreamState
    seq: int

    @property
    def cursor(self) -> Cursor:
        """Tied to the topic as it is now; a place that it has not come to is not this topic's, and never will be."""
        return Cursor(self.seq, self.state.instance if self.seq <= self.state.marks.head else _NO_INSTANCE)


class Watches:
    """Sessions, their rows and their open streams."""

    def __init__(
        self,
        topics: Topics,
        hub: Hub,
        clock: Clock,
        *,
        random_bytes: Callable[[int], bytes],
        slots: StreamSlots,
        sessions_max: int = 0,
        keep: bool = True,
        heartbeat_ms_min: int = HEARTBEAT_MS_MIN,
    ) -> None:
        """`keep` False: sessions end with the process, also where the log has a shelf."""
        self.heartbeat_ms_min = heartbeat_ms_min
        self._topics = topics
        self._hub = hub
        self._slots = slots
        shelf = topics.log if keep and isinstance(topics.log, Shelf) else None
        self._rows = SessionRows(topics.log, shelf, hub.wheel)
        self.sessions = Sessions(clock, random_bytes, most=sessions_max, forget=self._rows.forget)

    def start(self) -> None:
        """Take in the sessions of the process before. Their clients have as long to come back as if they had just left."""
        for watch in self._rows.load():
            self.sessions.adopt(watch)

    async def drain(self) -> None:
        """Once the hub is drained: no stream is open any more, and every place is final."""
        await self._rows.rest(self.sessions.all())

    # -- a session

    async def states(self, names: Sequence[str], *, lenient: bool) -> dict[str, StreamState]:
        """The topics of these names as their readers would find them. Raises StreamNotFound for one that is unknown, with
        `lenient` only when all are."""
        found: dict[str, StreamState] = {}
        missing: StreamNotFound | None = None
        for name in names:
            try:
                found[name] = await self._topics.state(name)
            except StreamNotFound as error:
                missing = missing or error
                if not lenient:
                    raise
        if missing is not None and not found:
            raise missing
        return found

    async def create(self, wanted: Wanted, starts: Sequence[Start]) -> str:
        """A new session's wid. Raises Busy."""
        ordered = sorted(starts, key=lambda start: start.state.name)
        for start in ordered:
            self._topics.activity.touch(start.state.name)
        topics = topic_set(start.state.name for start in ordered)
        wid, watch = self.sessions.create(wanted, topics, [start.cursor for start in ordered])
        await self._rows.add(watch)
        return wid

    # -- its stream

    async def open(self, watch: WatchSession, last_event_id: bytes, begin: Callable[[], Pipe]) -> None:
        """Serve the session from where it stands, or from further back if the client says so. Raises Busy or ShuttingDown
        before `begin` is called. The newest stream of a session is the only one."""
        states = await self._look(watch, last_event_id)
        # From here on nothing waits, so that of two requests for one session the later has it.
        if watch.stream is not None:
            watch.stream.close(Close.REPLACED)  # which makes room for its successor
        self._hub.admit()
        self._slots.take(watch.wanted.owner)
        self._resume(watch, last_event_id, states)
        self._serve(watch, states, begin())

    async def _look(self, watch: WatchSession, last_event_id: bytes) -> States:
        """Those of the session's topics that something has to be known of before it is opened."""
        if not watch.wanted.nodes and (watch.trusted or not last_event_id):
            return {}
        found: dict[str, StreamState] = {}
        for stream in watch.topics.streams:
            try:
                found[stream] = await self._topics.log.state(stream)
            except StreamNotFound:
                continue
        return found

    def _resume(self, watch: WatchSession, last_event_id: bytes, states: States) -> None:
        """What the client has certainly seen takes the session back. After a crash, when the session's own places are
        only known to be passed, it also takes it forward, as far as the topic goes."""
        for position, given in watch.topics.places(last_event_id):
            stored = watch.seqs[position]
            state = None if watch.trusted else states.get(watch.topics.streams[position])
            if state is not None and state.instance == watch.instances[position]:
                watch.seqs[position] = restored(stored, given, state.marks.head)
            else:
                watch.rewind(position, given)
        watch.trusted = True
        watch.former.clear()

    def _serve(self, watch: WatchSession, states: States, pipe: Pipe) -> None:
        wanted = watch.wanted
        legs = [
            LegSpec(
                stream=stream,
                cursor=watch.cursor(position),
                filter=_filter(wanted, states.get(stream)),
                synced=wanted.strong,
            )
            for position, stream in enumerate(watch.topics.streams)
        ]
        session = Session(
            self._hub,
            pipe,
            script_for(watch),
            legs,
            surface=SURFACE,
            heartbeat_seconds=wanted.heartbeat_ms / 1_000,
            on_close=partial(self._closed, watch),
        )
        self.sessions.opened(watch, session)
        self._rows.follow(watch)
        for stream in watch.topics.streams:
            self._topics.activity.touch(stream)
        session.open()

    def topic_changed(self, state: StreamState) -> None:
        """Whether nodes get their own records may be otherwise now, also on streams that are open."""
        for watch in self.sessions.all():
            if watch.stream is not None and watch.wanted.nodes and state.name in watch.topics.streams:
                watch.stream.legs[watch.topics.position(state.name)].select(_filter(watch.wanted, state))

    def _closed(self, watch: WatchSession, reason: Close | None) -> None:
        """Called once for every stream, however it ended."""
        self._slots.release(watch.wanted.owner)
        self.sessions.closed(watch)
        self._rows.follow(watch)


def _filter(wanted: Wanted, state: StreamState | None) -> Filter | None:
    """Not what certain nodes wrote, unless the topic is set to give every reader everything."""
    if not wanted.nodes or (state is not None and not config_of(state.settings).dedupe_node):
        return None
    return Filter(exclude_nodes=wanted.nodes)
