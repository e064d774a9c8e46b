"""Event streams: who has one open, what opens one, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from seamark.access.tokens import TokenHolder
from seamark.clock import NS_PER_SECOND, Clock
from seamark.errors import Busy, StreamNotFound, Unauthenticated
from seamark.flags.directory import Directory
from seamark.flags.rows import stream_of
from seamark.flags.script import EventScript, Place, Voice
from seamark.flags.subscribe import Part
from seamark.flags.version import Version
from seamark.flags.versions import Versions
from seamark.limits import EVENT_STREAMS_PER_TOKEN_MAX
from seamark.log.protocol import Log, StreamState
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.stream.dialect import Close
from seamark.stream.hub import Hub
from seamark.stream.leg import LegSpec
from seamark.stream.pipe import Pipe
from seamark.stream.session import Session

_EMPTY = StreamSettings()  # as the first version would make it


class Start(NamedTuple):
    """Where one namespace of a stream begins: what is there now, if anything, and the place from which the log is followed."""

    place: Place
    leg: LegSpec
    version: Version | None


class Slot:
    """Room for one stream, given back once, however often that is said."""

    __slots__ = ("_free", "_name", "_taken")

    def __init__(self, taken: dict[str, int], name: str) -> None:
        self._taken = taken
        self._name = name
        self._free = False
        taken[name] = taken.get(name, 0) + 1

    def release(self) -> None:
        if self._free:
            return
        self._free = True
        left = self._taken[self._name] - 1
        if left:
            self._taken[self._name] = left
        else:
            del self._taken[self._name]


class EventStreams:
    """All event streams of one process."""

    def __init__(
        self,
        log: Log,
        hub: Hub,
        versions: Versions,
        voice: Voice,
        *,
        directory: Directory,
        clock: Clock,
        keepalive_seconds: float,
    ) -> None:
        self._log = log
        self._hub = hub
        self._versions = versions
        self._voice = voice
        self._clock = clock
        self._keepalive_seconds = keepalive_seconds
        self._taken: dict[str, int] = {}
        self._open: dict[TokenHolder, set[Session]] = {}
        directory.on_revoke(self._revoked)

    # -- how many

    def take(self, holder: TokenHolder) -> Slot:
        """Room for one more stream of a token. Raises Busy, ShuttingDown."""
        self._hub.admit()
        taken = self._taken.get(holder.name, 0)
        if taken >= EVENT_STREAMS_PER_TOKEN_MAX:
            message = f"this token has {taken} open streams, which is the most it may have"
            raise Busy(message, limit="EVENT_STREAMS_PER_TOKEN_MAX", max=EVENT_STREAMS_PER_TOKEN_MAX)
        return Slot(self._taken, holder.name)

    # -- one of them

    async def prepare(self, parts: Sequence[Part]) -> list[Start]:
        """Read what there is. Nothing that is committed meanwhile is lost: the log is followed from what was read."""
        return [await self._start(part) for part in parts]

    async def _start(self, part: Part) -> Start:
        stream = stream_of(part.tenant, part.namespace)
        state = await self._state(stream)
        number = state.marks.synced
        version = await self._versions.at(part.tenant, part.namespace, number) if number else None
        if version is not None:
            await self._voice.tars.size(version, version.closure(part.wanted))
        leg = LegSpec(stream=stream, cursor=Cursor(number if version else 0, state.instance), synced=True)
        return Start(Place(part.wanted), leg, version)

    async def _state(self, stream: str) -> StreamState:
        """A namespace without a manifest has a stream all the same from now on: one that can be followed."""
        try:
            return await self._log.state(stream)
        except StreamNotFound:
            return (await self._log.configure(stream, _EMPTY)).state

    def open(
        self,
        holder: TokenHolder,
        script: EventScript,
        starts: Sequence[Start],
        *,
        pipe: Callable[[], Pipe],
        slot: Slot,
    ) -> None:
        """Begin to speak. Raises Unauthenticated when the token is no longer good."""
        now = self._clock.now_ns()
        if not holder.live(now):
            raise Unauthenticated("the token has expired or was revoked")
        for start in starts:
            if start.version is not None:
                script.begin(start.version)
        expires_at = holder.token.expires_at

        def closed(reason: Close | None) -> None:
            slot.release()
            mine = self._open[holder]
            mine.discard(session)
            if not mine:
                del self._open[holder]

        session = Session(
            self._hub,
            pipe(),
            script,
            [start.leg for start in starts],
            surface="flags",
            heartbeat_seconds=self._keepalive_seconds,
            deadline_seconds=0.0 if expires_at is None else (expires_at - now) / NS_PER_SECOND,
            on_close=closed,
        )
        script.may = lambda: holder.live(self._clock.now_ns())
        script.end = session.close
        self._open.setdefault(holder, set()).add(session)
        session.open()

    def _revoked(self, holder: TokenHolder) -> None:
        for session in tuple(self._open.get(holder, ())):
            session.close(Close.REVOKED)
