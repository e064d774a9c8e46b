"""Watch sessions on the shelf, so that they outlive the process. Places are saved now and then, and only what was handed
to a connection: what a crash leaves is a lower bound. A server that stops in order saves them exactly, and says so."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from seamark.errors import Corrupt, SeamarkError
from seamark.limits import WATCH_SAVE_SECONDS, WATCH_SAVE_TOPICS_MAX
from seamark.log.protocol import Append, Log, Put, Receipt, Shelf
from seamark.log.watermarks import Cursor
from seamark.stream.wheel import Timer, Wheel
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.topics.cursor import topic_set
from seamark.topics.sessions import Wanted, WatchSession

SPACE = "topics:watch"
_EXACT = b"exact"  # the row that is there after a stop in order, and gone once the next process runs
_DEFINITION, _PLACES = b"d", b"p"  # endings of a session's two keys
_AT_REST_MAX = 1_000  # sessions in one commit when the server stops

_log = logger("topics")
_encode = msgspec.msgpack.Encoder().encode
_definition = msgspec.msgpack.Decoder(tuple[Wanted, tuple[str, ...]])
_places = msgspec.msgpack.Decoder(tuple[bytes, tuple[str | None, ...], bool])


class SessionRows:
    """What is kept of each session: its definition, written once, and its places. `shelf` None keeps nothing."""

    def __init__(self, log: Log, shelf: Shelf | None, wheel: Wheel) -> None:
        self._log = log
        self._shelf = shelf
        self._wheel = wheel
        self._moving: dict[WatchSession, None] = {}  # whose places may not be saved, the longest waiting first
        self._timer: Timer | None = None
        self._resting = False

    def load(self) -> list[WatchSession]:
        """The sessions of the process before. From now on their places are saved now and then again."""
        if self._shelf is None:
            return []
        rows: dict[bytes, bytes] = {}
        try:
            rows.update(self._shelf.scan(SPACE))
        except Corrupt as damage:  # those behind it are forgotten: their clients make new ones
            _log.error(events.CORRUPT_VALUE, space=SPACE, error=damage.message)
        trusted = rows.pop(_EXACT, None) is not None
        if trusted:
            self._submit([Put(SPACE, _EXACT, None)], ())
        found = [
            _session(key[:-1], row, rows.get(key[:-1] + _PLACES, b""), trusted=trusted)
            for key, row in rows.items()
            if key.endswith(_DEFINITION)
        ]
        return [watch for watch in found if watch is not None]

    async def add(self, watch: WatchSession) -> None:
        """Durable when it returns. A store that takes no writes now is no reason not to watch."""
        if self._shelf is not None:
            definition = _encode((watch.wanted, watch.topics.streams))
            await self._commit([Put(SPACE, watch.key + _DEFINITION, definition), _put(watch)])

    def forget(self, watch: WatchSession) -> None:
        self._moving.pop(watch, None)
        if self._shelf is not None:
            self._submit([Put(SPACE, watch.key + ending, None) for ending in (_DEFINITION, _PLACES)], ())

    def follow(self, watch: WatchSession) -> None:
        """Its places are about to move, or just did: save them before long, and as long as it has a stream."""
        if self._shelf is not None:
            self._moving[watch] = None
            if self._timer is None:
                self._timer = self._wheel.add(WATCH_SAVE_SECONDS, self._save)

    async def rest(self, watches: Iterable[WatchSession]) -> None:
        """The server stops, and no stream is open any more. May be called again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._moving.clear()
        if self._shelf is None or self._resting:
            return
        self._resting = True
        left = iter(watches)
        written = True
        while some := [*islice(left, _AT_REST_MAX)]:
            puts = [put for watch in some if (put := _moved(watch)) is not None]
            written = (not puts or await self._commit(puts)) and written
        if written:
            await self._commit([Put(SPACE, _EXACT, b"")])

    # -- within

    def _save(self) -> None:
        """Some of those that may have moved; each has its turn."""
        self._timer = None
        puts: list[Put] = []
        saved: list[WatchSession] = []
        looked = 0
        for watch in [*islice(self._moving, WATCH_SAVE_TOPICS_MAX)]:
            if looked >= WATCH_SAVE_TOPICS_MAX:
                break
            looked += len(watch.topics)
            del self._moving[watch]
            put = _moved(watch)
            if put is not None:
                puts.append(put)
                saved.append(watch)
            if watch.stream is not None:
                self._moving[watch] = None
        if puts:
            self._submit(puts, saved)
        if self._moving and self._timer is None:
            self._timer = self._wheel.add(WATCH_SAVE_SECONDS, self._save)

    def _submit(self, puts: Sequence[Put], saved: Sequence[WatchSession]) -> None:
        def done(outcome: Receipt | SeamarkError) -> None:
            if isinstance(outcome, SeamarkError):
                for watch in saved:
                    watch.saved = None
                    self.follow(watch)

        self._log.writer.submit(Append(puts=puts), done)

    async def _commit(self, puts: Sequence[Put]) -> bool:
        try:
            await self._log.append(Append(puts=puts))
        except SeamarkError as error:
            _log.warning(events.WATCHES_UNSAVED, error=error.message)
            return False
        return True


def _put(watch: WatchSession) -> Put:
    row = _encode((watch.seqs.tobytes(), tuple(watch.instances), watch.trusted))
    watch.saved = hash(row)
    return Put(SPACE, watch.key + _PLACES, row)


def _moved(watch: WatchSession) -> Put | None:
    """The places as they are now, unless they are the saved ones."""
    watch.settle()
    before = watch.saved
    put = _put(watch)
    return None if watch.saved == before else put


def _session(key: bytes, definition: bytes, places: bytes, *, trusted: bool) -> WatchSession | None:
    """None for rows that another version wrote: its client makes a new session."""
    try:
        wanted, streams = _definition.decode(definition)
        packed, instances, exact = _places.decode(places)
        cursors = [Cursor(seq, instance) for seq, instance in zip(array("Q", packed), instances, strict=True)]
        watch = WatchSession(key, wanted, topic_set(streams), cursors)
    except (msgspec.MsgspecError, ValueError):
        return None
    watch.trusted = trusted and exact  # nobody came back to it between a crash and a stop: it is still a lower bound
    return watch
