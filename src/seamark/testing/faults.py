"""Things that go wrong, on purpose: a network that cuts, delays, throttles, goes silent or lies (`FaultyProxy`), a disk
that is full (`file_size_limit`), and a disk that forgets (`flip_byte`, `cut_file`)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple

PIECE_BYTES = 16_384
THROTTLE_TICKS_PER_SECOND = 20

Direction = Literal["up", "down"]


@dataclass(slots=True)
class Weather:
    """What the network is like now. May be changed at any time; connections feel it with their next piece."""

    delay_seconds: float = 0.0
    bytes_per_second: int = 0  # each connection and direction; 0: no limit
    silent: frozenset[Direction] = frozenset()  # half open: nothing arrives, and nobody is told
    corrupt_every_bytes: int = 0  # about one bit in so many bytes is flipped; 0: none
    refusing: bool = False  # new connections are reset at once


class FaultyProxy:
    """A TCP proxy on a port of its own, in front of `host:port`.

    "up" is from the client to the server, "down" is what the server answers. Use it as an async context manager.
    """

    def __init__(self, host: str, port: int, *, seed: int = 0) -> None:
        self.weather = Weather()
        self.accepted = 0
        self.forwarded: dict[Direction, int] = {"up": 0, "down": 0}
        self._target = (host, port)
        self._random = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def port(self) -> int:
        assert self._server is not None, "the proxy is not running"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def connections(self) -> int:
        """Connections that are open between the proxy and its clients."""
        return len(self._open) // 2

    async def __aenter__(self) -> FaultyProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=PIECE_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.change(Weather())
        self.cut()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    def aim(self, host: str, port: int) -> None:
        """Where new connections go from now on: a server that was started again has another port."""
        self._target = (host, port)

    def cut(self) -> int:
        """Reset every open connection, in both directions. Returns how many there were."""
        cut = self.connections
        for writer in list(self._open):
            _reset(writer)
        return cut

    def change(self, weather: Weather) -> None:
        """Replace the weather; connections that were silent wake up if they may."""
        self.weather = weather
        self._changed.set()
        self._changed = asyncio.Event()

    # -- forwarding

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.accepted += 1
        if self.weather.refusing:
            _reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target, limit=PIECE_BYTES)
        except OSError:
            _reset(writer)
            return
        pair = {writer, far_writer}
        for side in pair:
            side.transport.set_write_buffer_limits(high=PIECE_BYTES)
        self._open |= pair
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump("up", reader, far_writer))
                both.create_task(self._pump("down", far_reader, writer))
        except* OSError:
            pass  # one side is gone: so is the other
        finally:
            self._open -= pair
            for side in pair:
                side.transport.abort()
                with contextlib.suppress(OSError):
                    await side.wait_closed()

    async def _pump(self, direction: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for piece in self._pieces(reader):
            while direction in self.weather.silent:
                await self._changed.wait()
            if self.weather.delay_seconds:
                await asyncio.sleep(self.weather.delay_seconds)
            if writer.transport.is_closing():
                raise ConnectionResetError("the other side is gone")
            writer.write(self._corrupt(piece))
            self.forwarded[direction] += len(piece)
            await writer.drain()
            if self.weather.bytes_per_second:
                await asyncio.sleep(len(piece) / self.weather.bytes_per_second)
        if writer.can_write_eof() and not writer.transport.is_closing():
            writer.write_eof()

    async def _pieces(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        """What arrives, cut as small as the weather of the moment asks for."""
        while arrived := await reader.read(PIECE_BYTES):
            while arrived:
                rate = self.weather.bytes_per_second
                size = max(1, rate // THROTTLE_TICKS_PER_SECOND) if rate else PIECE_BYTES
                yield arrived[:size]
                arrived = arrived[size:]

    def _corrupt(self, piece: bytes) -> bytes:
        every = self.weather.corrupt_every_bytes
        if not every:
            return piece
        changed = bytearray(piece)
        for at in range(len(changed)):
            if self._random.randrange(every) == 0:
                changed[at] ^= 1 << self._random.randrange(8)
        return bytes(changed)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the peer sees a reset and not an orderly end."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# -- disks


@contextlib.contextmanager
def file_size_limit(limit_bytes: int, *, pid: int = 0) -> Iterator[None]:
    """No file of the process may grow beyond `limit_bytes`: a full disk, for that process only. Python ignores the
    signal that comes with it, so writes fail with EFBIG."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


class Flip(NamedTuple):
    """A byte that changed behind everybody's back."""

    path: Path
    offset: int
    before: int
    after: int

    def undo(self) -> None:
        _put_byte(self.path, self.offset, self.before)


def flip_byte(path: Path, offset: int, mask: int) -> Flip:
    """Flip the bits of `mask` in one byte of a file."""
    assert 0 < mask < 256
    with path.open("rb") as file:
        file.seek(offset)
        before = file.read(1)[0]
    _put_byte(path, offset, before ^ mask)
    return Flip(path, offset, before, before ^ mask)


def flip_random_byte(path: Path, source: random.Random, *, start: int = 0, stop: int | None = None) -> Flip:
    """Flip one to eight bits of one byte somewhere in `start .. stop`."""
    end = path.stat().st_size if stop is None else stop
    return flip_byte(path, source.randrange(start, end), source.randrange(1, 256))


def cut_file(path: Path, size_bytes: int) -> int:
    """Make a file end early. Returns how many bytes are gone."""
    before = path.stat().st_size
    assert size_bytes <= before
    with path.open("r+b") as file:
        file.truncate(size_bytes)
    return before - size_bytes


def _put_byte(path: Path, offset: int, value: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(bytes([value]))
