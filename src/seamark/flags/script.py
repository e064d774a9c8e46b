"""What one event stream says: of each namespace first where to fetch it whole, then what became different.

There is no queue. A connection remembers what it was told last; whatever the log hands over afterwards, one version or
hundreds that a slow reader missed, becomes the one event from there to the newest version.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from seamark.errors import Busy
from seamark.flags.deltas import Deltas, Told
from seamark.flags.event import KEEPALIVE, Resync, Snapshot, resync_event, version_data, version_event
from seamark.flags.links import Links
from seamark.flags.rows import owner_of
from seamark.flags.tars import Tars
from seamark.flags.version import Version
from seamark.flags.versions import Versions
from seamark.log.record import Record
from seamark.log.watermarks import Gap, Loss
from seamark.manifest.subscription import FlagList
from seamark.stream.dialect import Close, Span
from seamark.stream.pipe import Block
from seamark.telemetry.metrics import Metrics

_SOMETHING = b"\n"  # stands for a version until the script says what that means; it is never sent


class EventDialect:
    """The same for all: of a version's record only its number counts."""

    __slots__ = ()

    projection: Hashable = "flags"

    def fragment(self, record: Record, live: bool) -> bytes:
        return _SOMETHING

    def assemble(self, fragments: Sequence[bytes], span: Span) -> bytes:
        return b"".join(fragments)


class Voice:
    """What all connections of a process speak with."""

    def __init__(self, versions: Versions, deltas: Deltas, tars: Tars, metrics: Metrics) -> None:
        self.versions = versions
        self.deltas = deltas
        self.tars = tars
        kinds = ("inline", "snapshot", "resync")
        self.inline, self.snapshot, self.resync = (
            metrics.counter("seamark_flags_events_total", kind) for kind in kinds
        )


class Place:
    """Where one connection stands in one namespace."""

    __slots__ = ("lost", "told", "told_inline", "wanted")

    def __init__(self, wanted: FlagList) -> None:
        self.wanted = wanted
        self.told: Told | None = None
        self.told_inline = False
        self.lost = False  # what it was told is of a history that is no more


class EventScript:
    """One connection. `places` are by stream; `may` is asked before anything is said whether the caller still may hear it,
    and `end` is called when it cannot go on."""

    __slots__ = ("_links", "_opening", "_places", "_voice", "dialect", "end", "may")

    personal = True

    def __init__(self, voice: Voice, links: Links, places: dict[str, Place]) -> None:
        self._voice = voice
        self._links = links
        self._places = places
        self._opening: list[bytes] = []
        self.dialect = EventDialect()
        self.may: Callable[[], bool] = lambda: True
        self.end: Callable[[Close], object] = lambda reason: None

    def begin(self, version: Version) -> None:
        """Say first where to fetch this version."""
        place = self._places[version.stream]
        closure = version.closure(place.wanted)
        told = Told(version.number, closure)
        size = self._voice.tars.size_now(version, closure)
        self._opening.append(self._snapshot(version.stream, place, told, size).raw)

    def opening(self) -> bytes:
        said, self._opening = b"".join(self._opening), []
        return said

    def stamp(self, burst: bytes, span: Span) -> bytes | None:
        block = self._news(span)
        return b"" if block is None else block.raw

    def live(self, block: Block, span: Span, *, last: bool) -> Block | None:
        return self._news(span)

    def gap(self, gap: Gap, span: Span, *, first_read: bool) -> bytes:
        """Versions are never lost; but their stream may be another one than it was."""
        if gap.loss is Loss.RECREATED:
            self._places[span.stream].lost = True
            self._voice.deltas.forget(span.stream)
        return b""

    def caught_up(self, span: Span) -> bytes:
        return b""

    def dropped(self, stream: str, head: int) -> bytes:
        """Nothing more would be said of this namespace. A client that comes again begins anew."""
        self.end(Close.DROPPED)
        return b""

    def heartbeat(self) -> bytes:
        return KEEPALIVE if self._admitted() else b""

    def closing(self, reason: Close) -> bytes:
        return b""

    # -- within

    def _admitted(self) -> bool:
        """Streams end when their token does, and this is for what nobody told us of: a clock that was set, another process."""
        if self.may():
            return True
        self.end(Close.REVOKED)
        return False

    def _news(self, span: Span) -> Block | None:
        """What there is to say, now that the reader has been handed a namespace's versions up to the end of `span`."""
        if not self._admitted():
            return None
        try:
            return self._told(span)
        except Busy:  # it would hold up everybody; whoever comes again waits until the version is read
            self.end(Close.SLOW)
            return None

    def _told(self, span: Span) -> Block | None:
        place = self._places[span.stream]
        number = max(span.to, span.marks.synced)  # a lagging reader is told of the newest at once
        told = place.told
        if told is None or place.lost:
            version = self._voice.versions.at_now(span.stream, number)
            return None if version is None else self._anew(place, version)
        if number <= told.number:
            return None
        turn = self._voice.deltas.between(span.stream, place.wanted, told, number)
        if turn is None or turn.closure is None:
            return None
        if turn.block is None:
            return self._snapshot(span.stream, place, Told(number, turn.closure), turn.size)
        place.told = Told(number, turn.closure)
        place.told_inline = True
        self._voice.inline.value += 1
        return turn.block

    def _anew(self, place: Place, version: Version) -> Block:
        """What was told before, if anything, no longer counts."""
        stream, number, closure = version.stream, version.number, version.closure(place.wanted)
        misled, place.lost, place.told_inline, place.told = place.told_inline, False, False, None
        if not misled:
            return self._snapshot(stream, place, Told(number, closure), self._voice.tars.size_now(version, closure))
        place.told = Told(number, closure)
        self._voice.resync.value += 1
        url = self._links.snapshot(stream, number, place.wanted)
        slug = owner_of(stream)[1]
        event = Resync(namespace=slug, current_version=number, reason="unknown_since", snapshot_url=url)
        return Block(resync_event(event))

    def _snapshot(self, stream: str, place: Place, told: Told, size: int) -> Block:
        before, place.told = place.told, told
        self._voice.snapshot.value += 1
        slug = owner_of(stream)[1]
        event = Snapshot(
            namespace=slug,
            version=told.number,
            prev_version=None if before is None else before.number,
            prev_closure_hash=None if before is None else before.closure.hash,
            closure_hash=told.closure.hash,
            snapshot_url=self._links.snapshot(stream, told.number, place.wanted),
            snapshot_size_bytes=size,
        )
        return Block(version_event(slug, told.number, version_data(event)))
