"""Who wants to know what of a client, and is told from its loop: that it is ready, that flags changed, that something is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from seamark.client.flags.cache import DiskCache
from seamark.client.flags.status import Change, Status
from seamark.client.flags.stream import Hooks
from seamark.client.flags.track import Track

T = TypeVar("T")
_log = logging.getLogger("seamark.client")


class Board(Hooks):
    """What a listener raises is logged, and nobody else's concern."""

    def __init__(self, tracks: Mapping[str, Track], cache: DiskCache | None, ready: Callable[[], None]) -> None:
        self.on_change: list[Callable[[Change], None]] = []
        self.on_status: list[Callable[[Status], None]] = []
        self._tracks = tracks
        self._cache = cache
        self._ready = ready
        self._told: dict[str, tuple[object, ...]] = {}

    def inherit(self, heir: Board) -> None:
        heir.on_change += self.on_change
        heir.on_status += self.on_status

    def changed(self, change: Change) -> None:
        _tell(self.on_change, change)

    async def held(self, track: Track) -> None:
        if all(one.ready for one in self._tracks.values()):
            self._ready()
        self._status(track)
        if self._cache is not None:
            cache = self._cache
            await self.work(lambda: cache.save(track))

    def troubled(self, track: Track) -> None:
        self._status(track)

    def _status(self, track: Track) -> None:
        """Once for each time that it is another."""
        status = track.status
        seen = (
            status.ready,
            status.stale,
            status.state,
            status.last_error and (status.last_error.kind, status.last_error.message),
        )
        if self._told.get(track.slug) != seen:
            self._told[track.slug] = seen
            _tell(self.on_status, status)


def listen(listeners: list[Callable[[T], None]], listener: Callable[[T], None]) -> Callable[[], None]:
    """Add a listener; what comes back takes it away again."""
    listeners.append(listener)

    def stop() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return stop


def _tell(listeners: list[Callable[[T], None]], what: T) -> None:
    for listener in tuple(listeners):
        try:
            listener(what)
        except Exception:
            _log.exception("a listener of flags failed")
