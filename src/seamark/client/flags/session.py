"""What both kinds of client are made of: where to ask, for what, and how patiently."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path

from seamark.client.flags.board import Board
from seamark.client.flags.cache import DiskCache
from seamark.client.flags.place import Server
from seamark.client.flags.retry import Pace
from seamark.client.flags.stream import Driver
from seamark.client.flags.subscription import Wanted, read_wanted
from seamark.client.flags.track import Track
from seamark.client.http import HttpClient
from seamark.clock import Clock, SystemClock
from seamark.errors import BadField


class Session:
    """`ready` is called once every namespace has a verified baseline."""

    def __init__(
        self,
        url: str,
        token: str,
        namespaces: Wanted,
        *,
        tenant: str | None,
        cache_dir: str | Path | None,
        tls: ssl.SSLContext | None,
        pace: Pace | None,
        clock: Clock | None,
        namespace: str | None,
    ) -> None:
        self.server = Server(url, token, tenant)
        wanted = read_wanted(namespaces)
        if namespace is not None and namespace not in wanted:
            raise BadField(f"the namespace {namespace!r:.80} is not among those subscribed to", name="namespace")
        time = clock or SystemClock()
        self.tracks: Mapping[str, Track] = {slug: Track(slug, flags, time) for slug, flags in wanted.items()}
        self._tls = tls
        self._pace = pace or Pace()
        self._cache = None if cache_dir is None else DiskCache(Path(cache_dir), f"{self.server.name} {tenant or ''}")
        if self._cache is not None:
            for track in self.tracks.values():
                self._cache.load(track)

    def board(self, kind: Callable[..., Board], ready: Callable[[], None]) -> Board:
        return kind(self.tracks, self._cache, ready)

    def driver(self, board: Board) -> Driver:
        return Driver(self.server, self.tracks, board, client=HttpClient(tls=self._tls), pace=self._pace)

    def inherited(self) -> Session:
        """The same for the child of a fork."""
        heir = copy(self)
        heir.tracks = {slug: track.inherited() for slug, track in self.tracks.items()}
        return heir
