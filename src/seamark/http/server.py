"""The running server: uvicorn with our protocol, from binding to a prompt and orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from uvicorn._compat import asyncio_run
from uvicorn.server import HANDLED_SIGNALS, ServerState

from seamark.http.asgi import ASGIApp, build_asgi
from seamark.http.health import Readiness
from seamark.http.plane import Plane
from seamark.telemetry import events, logs

_POLL_SECONDS = 0.02


async def _nothing() -> None:
    """What a server without streams or a log does at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where and how. Port 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = 8000
    port_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    backlog: int = 2_048
    grace_seconds: float = 10.0
    loop: str = "auto"  # uvloop where there is one


class Server:
    """`drain` asks every stream to close with its closing event; `close` commits and closes the log. Both are awaited
    once, in that order, with the in-flight requests finished in between."""

    def __init__(
        self,
        app: ASGIApp,
        plane: Plane,
        *,
        listening: Listening,
        readiness: Readiness,
        drain: Callable[[], Awaitable[None]] = _nothing,
        close: Callable[[], Awaitable[None]] = _nothing,
        on_ready: Callable[[str], None] = lambda base_url: None,
        metrics_plane: Plane | None = None,
    ) -> None:
        self.plane = plane
        self.listening = listening
        self.readiness = readiness
        self.base_url = ""
        self.metrics_url = ""
        self._drain = drain
        self._close = close
        self._on_ready = on_ready
        self._metrics_plane = metrics_plane
        self._metrics_server: asyncio.Server | None = None
        self._log = logs.logger("http")
        self._config = _config(app, plane, listening)
        self._uvicorn = _Uvicorn(self._config, self)

    def run(self) -> int:
        """Serve until told to stop. The exit code: 0 after an orderly end, 1 when connections had to be cut."""
        asyncio_run(self.serve(), loop_factory=self._config.get_loop_factory())
        return self.exit_code

    async def serve(self) -> None:
        await self._uvicorn.serve()

    @property
    def exit_code(self) -> int:
        """0 after an orderly end, 1 when connections had to be cut."""
        return 1 if self._uvicorn.was_cut else 0

    def stop(self) -> None:
        """What SIGTERM does."""
        self._uvicorn.should_exit = True

    # -- what uvicorn's life calls
    async def bound(self, port: int) -> None:
        """The socket takes connections from now on."""
        where = self.listening
        scheme = "https" if where.tls_cert else "http"
        self.base_url = f"{scheme}://{_bracketed(where.host)}:{port}"
        if self._metrics_plane is not None:
            self.metrics_url = await self._serve_metrics(self._metrics_plane)
        self.readiness.started()
        if where.port_file is not None:
            write_port_file(where.port_file, where.host, port)
        self._log.info(events.SERVER_STARTED, url=self.base_url, metrics_url=self.metrics_url or None)
        self._on_ready(self.base_url)

    async def end(self, state: ServerState, forced: Callable[[], bool]) -> bool:
        """Everything between the last accepted connection and the end of the process. True if something was cut."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.listening.grace_seconds

        def waiting() -> bool:
            return not forced() and loop.time() < deadline

        self.readiness.draining()
        self.plane.drain()
        self._log.info(events.SERVER_DRAINING, connections=self.plane.open, grace_seconds=self.listening.grace_seconds)
        draining = asyncio.ensure_future(self._drain())
        while waiting() and not (draining.done() and not self.plane.open and not state.tasks):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)  # the forced flag comes from a signal handler, which can wake nothing
        cut = self._cut(draining, state)
        await asyncio.sleep(0)  # let the aborted connections hear of it
        await self._close()
        if self._metrics_server is not None and self._metrics_plane is not None:
            self._metrics_server.close()
            self._metrics_plane.cut()
            await asyncio.sleep(0)
        self._log.info(events.SERVER_STOPPED)
        return cut

    def _cut(self, draining: asyncio.Future[None], state: ServerState) -> bool:
        """End what did not end by itself."""
        if draining.done():
            error = draining.exception()
            if error is not None:
                self._log.error(events.TASK_FAILED, task="server.drain", exc_info=error)
        else:
            draining.cancel()
        count = self.plane.cut()
        for task in list(state.tasks):
            task.cancel()
        if count or state.tasks:
            self._log.warning(events.SERVER_CUT, connections=count, requests=len(state.tasks))
        return bool(count)

    async def _serve_metrics(self, plane: Plane) -> str:
        """A listener that serves the metrics plane's routes only, for networks that must not see the others."""
        state = ServerState()
        config = _config(build_asgi(plane.front), plane, self.listening)
        host = self.listening.metrics_host
        self._metrics_server = await asyncio.get_running_loop().create_server(
            lambda: plane.protocol(config, state, {}), host, self.listening.metrics_port or 0
        )
        port = self._metrics_server.sockets[0].getsockname()[1]
        return f"http://{_bracketed(host)}:{port}/metrics"


class _Uvicorn(uvicorn.Server):
    """Uvicorn's server with our own end: it would wait for open streams, and die of the signal that stopped it."""

    def __init__(self, config: uvicorn.Config, outer: Server) -> None:
        super().__init__(config)
        self.was_cut = False
        self._outer = outer

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup()
        try:
            await self._outer.bound(self.servers[0].sockets[0].getsockname()[1])
        except BaseException:
            # A second listener or the port file failed: nothing has begun, so nothing may stay half open.
            for server in self.servers:
                server.close()
            await self.lifespan.shutdown()
            raise

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        for server in self.servers:
            server.close()
        self.was_cut = await self._outer.end(self.server_state, lambda: self.force_exit)
        await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """An orderly end is a success: unlike uvicorn we do not raise the signal again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, a second one does not wait."""
        self.force_exit = self.should_exit
        self.should_exit = True


def loop_factory(loop: str = "auto") -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop: uvloop's where there is one; None for the standard one."""
    return uvicorn.Config(app="", loop=loop, log_config=None).get_loop_factory()


def write_port_file(path: Path, host: str, port: int) -> None:
    """`host:port` as it stands in a URL, appearing all at once: whoever finds the file can connect."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(f"{_bracketed(host)}:{port}\n")
    fresh.replace(path)


def _config(app: ASGIApp, plane: Plane, listening: Listening) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=listening.host,
        port=listening.port,
        http=plane.protocol,  # type: ignore[arg-type]
        ws="none",
        loop=listening.loop,
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level="warning",  # what it would say at info, our own events say
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=listening.backlog,
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
