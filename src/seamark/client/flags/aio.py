"""`AsyncFlagsClient`: for programs with a loop. The stream lives in it; asking is not asynchronous, because it never waits."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from seamark.client.flags.board import Board, listen
from seamark.client.flags.offline import AsyncOfflineFlags, read_directory
from seamark.client.flags.reader import PRODUCTION, FlagReader, Listener
from seamark.client.flags.retry import Pace
from seamark.client.flags.session import Session
from seamark.client.flags.status import Status
from seamark.client.flags.subscription import Wanted
from seamark.clock import Clock

T = TypeVar("T")


class _LoopBoard(Board):
    """The loop is the caller's: what takes longer is done beside it."""

    async def work(self, job: Callable[[], T]) -> T:
        return await asyncio.to_thread(job)


class AsyncFlagsClient(FlagReader):
    """The same as `FlagsClient`, in the loop that runs. It connects when it is entered, or with `start`.

    In the child of a fork, make another: no loop survives one.
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
        self._ready = asyncio.Event()
        self._board = self._session.board(_LoopBoard, self._ready.set)
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_dir(cls, path: str | Path, *, environment: str = PRODUCTION, slug: str | None = None) -> AsyncOfflineFlags:
        """The flags of a folder, as they are now, without a server. Raises LintFailed, BadArchive, OSError."""
        read = read_directory(Path(path))
        name = Path(path).resolve().name
        return AsyncOfflineFlags(read.files, environment=environment, slug=slug, name=name, found=read.found)

    @classmethod
    def from_files(
        cls, files: Mapping[str, bytes], *, environment: str = PRODUCTION, slug: str | None = None
    ) -> AsyncOfflineFlags:
        """The flags of a manifest in memory, by path. Raises LintFailed."""
        return AsyncOfflineFlags(files, environment=environment, slug=slug)

    def start(self) -> None:
        """Begin to connect. A second time it does nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._session.driver(self._board).run())

    async def wait_ready(self, timeout: float | None = 10.0) -> bool:  # noqa: ASYNC109 as of the other client
        """Whether every namespace has a verified closure, after `timeout` seconds at the latest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ready.wait()
        return self._ready.is_set()

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of every new closure that makes a difference, from the loop. What comes back takes it away."""
        return listen(self._board.on_change, listener)

    def on_status(self, listener: Callable[[Status], None]) -> Callable[[], None]:
        """The same for getting ready, stale, and better again."""
        return listen(self._board.on_status, listener)

    async def close(self) -> None:
        """End the stream. What is held can still be asked."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        for track in self._session.tracks.values():
            track.close()

    async def __aenter__(self) -> AsyncFlagsClient:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
