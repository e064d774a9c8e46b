"""`FlagsClient`: for programs with threads. One background thread keeps the closures; asking never leaves the caller's own."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import ssl
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from seamark.client.flags.board import Board, listen
from seamark.client.flags.offline import OfflineFlags, read_directory
from seamark.client.flags.reader import PRODUCTION, FlagReader, Listener
from seamark.client.flags.retry import Pace
from seamark.client.flags.session import Session
from seamark.client.flags.status import Status
from seamark.client.flags.stream import Driver
from seamark.client.flags.subscription import Wanted
from seamark.clock import Clock
from seamark.limits import CLIENT_CLOSE_SECONDS


class FlagsClient(FlagReader):
    """Flags of one or more namespaces of a server, verified, and kept up to date by one event stream.

    It begins to connect at once. `wait_ready` waits for the first verified closures; until then, defaults are answered, or
    what `cache_dir` has kept. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        url: str,
        token: str,
        namespaces: Wanted,
        *,
        environment: str = PRODUCTION,
        namespace: str | None = None,
        tenant: str | None = None,
        cache_dir: str | Path | None = None,
        tls: ssl.SSLContext | None = None,
        pace: Pace | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._session = Session(
            url,
            token,
            namespaces,
            tenant=tenant,
            cache_dir=cache_dir,
            tls=tls,
            pace=pace,
            clock=clock,
            namespace=namespace,
        )
        super().__init__(self._session.tracks, environment, namespace)
        self._ready = threading.Event()
        self._board = self._session.board(Board, self._ready.set)
        self._closed = False
        self._thread = _Thread(self._session.driver(self._board))
        self._thread.start()
        _LIVING.add(self)
        atexit.register(self.close)

    @classmethod
    def from_dir(cls, path: str | Path, *, environment: str = PRODUCTION, slug: str | None = None) -> OfflineFlags:
        """The flags of a folder, as they are now, without a server. Raises LintFailed, BadArchive, OSError."""
        read = read_directory(Path(path))
        name = Path(path).resolve().name
        return OfflineFlags(read.files, environment=environment, slug=slug, name=name, found=read.found)

    @classmethod
    def from_files(
        cls, files: Mapping[str, bytes], *, environment: str = PRODUCTION, slug: str | None = None
    ) -> OfflineFlags:
        """The flags of a manifest in memory, by path. Raises LintFailed."""
        return OfflineFlags(files, environment=environment, slug=slug)

    def wait_ready(self, timeout: float | None = 10.0) -> bool:
        """Whether every namespace has a verified closure, after `timeout` seconds at the latest. If not, `last_refresh_error`
        says why. One that nobody ever pushed a manifest to has none."""
        return self._ready.wait(timeout)

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of every new closure that makes a difference, from the background thread. What comes back
        takes it away again."""
        return listen(self._board.on_change, listener)

    def on_status(self, listener: Callable[[Status], None]) -> Callable[[], None]:
        """The same for getting ready, stale, and better again."""
        return listen(self._board.on_status, listener)

    def close(self) -> None:
        """End the stream. What is held can still be asked."""
        if self._closed:
            return
        self._closed = True
        _LIVING.discard(self)
        atexit.unregister(self.close)
        self._thread.stop()
        for track in self._session.tracks.values():
            track.close()

    def __enter__(self) -> FlagsClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _forked(self) -> None:
        """In the child: the thread is not here, and its locks may be held for ever. What it left behind is kept, so that
        nothing of it is ever cleaned up, which would reach into the parent's polling."""
        _GRAVES.append((self._thread, self._board, self._session, self._ready))
        self._thread.let_go()
        was_ready = self._ready.is_set()
        self._session = self._session.inherited()
        self._tracks = self._session.tracks
        self._ready = threading.Event()
        if was_ready:
            self._ready.set()
        board = self._session.board(Board, self._ready.set)
        self._board.inherit(board)
        self._board = board
        self._thread = _Thread(self._session.driver(board))
        self._thread.start()


class _Thread:
    """Runs a driver in a loop of its own."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._begun = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="seamark-flags", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Also from a listener, which is in that very thread."""
        self._begun.wait(CLIENT_CLOSE_SECONDS)
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLIENT_CLOSE_SECONDS)

    def let_go(self) -> None:
        """In the child of a fork: give back its copies of the connections, so that they end when the parent ends them."""
        for descriptor in self._driver.client.descriptors():
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._begun.set()
        await self._driver.run()


_LIVING: weakref.WeakSet[FlagsClient] = weakref.WeakSet()
_GRAVES: list[object] = []


def _after_fork() -> None:
    for client in tuple(_LIVING):
        client._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
