"""A stream's way out on the data plane. It is the connection's protocol and the pipe in one object, because ten
thousand of them wait at a time: parser, scope, headers and the exchange are gone once it has the transport."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Protocol

from seamark import limits
from seamark.stream.pipe import Block, PipeOwner

# The socket module of Python 3.11 does not name it everywhere it exists.
_NOTSENT_LOWAT = {"linux": 25, "darwin": 0x201}.get(sys.platform)
_LAST_CHUNK = b"0\r\n\r\n"


def _bound_unsent(transport: asyncio.Transport) -> None:
    """Let the kernel hold no more unsent bytes than we would, or a reader that stopped costs megabytes before we know
    (docs/performance.md). What is in flight to a far reader is not counted, so its speed stays. And let it send to a peer
    that acknowledges nothing no longer than we would, or one that left without a word stays for a quarter of an hour."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    if _NOTSENT_LOWAT is not None:
        sock.setsockopt(socket.IPPROTO_TCP, _NOTSENT_LOWAT, limits.PIPE_HIGH_WATER_BYTES)
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.PIPE_HIGH_WATER_BYTES)
    if sys.platform == "linux":
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limits.WRITE_STALL_SECONDS * 1_000)


class PipeHost(Protocol):
    """Who keeps count of open pipes and cuts the ones that never finish closing. `pipe_over`: the stream has ended, whoever
    asks next on its connection can be served; False when the connection has to end as well."""

    def pipe_opened(self, pipe: TransportPipe) -> None: ...
    def pipe_over(self, pipe: TransportPipe, transport: asyncio.Transport) -> bool: ...
    def pipe_closing(self, pipe: TransportPipe) -> None: ...
    def pipe_lost(self, pipe: TransportPipe) -> None: ...


class TransportPipe(asyncio.Protocol):
    """Until earlier answers of its connection are out it has no transport yet, and keeps what is written."""

    __slots__ = (
        "_chunked",
        "_closed",
        "_gone",
        "_host",
        "_ignored",
        "_keeps",
        "_paused",
        "_transport",
        "_waiting",
        "owner",
    )

    def __init__(self, host: PipeHost | None, head: bytes, *, chunked: bool) -> None:
        self.owner: PipeOwner | None = None
        self._host = host
        self._chunked = chunked
        self._keeps = False  # the connection goes on after the stream
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] | None = [head]
        self._ignored = 0
        self._closed = False
        self._paused = False
        self._gone = False

    @classmethod
    def unattached(cls) -> TransportPipe:
        """A closed pipe without a connection."""
        pipe = cls(None, b"", chunked=True)
        pipe.abort()
        return pipe

    # -- Pipe
    @property
    def closing(self) -> bool:
        transport = self._transport
        return self._closed or self._gone or (transport is not None and transport.is_closing())

    @property
    def buffered(self) -> int:
        if self._waiting is not None:
            return sum(map(len, self._waiting))
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, block: Block) -> None:
        """Called for every delivery, so what is nearly always so is done without another call."""
        if self._closed:
            return
        data = block.framed if self._chunked else block.raw
        transport = self._transport
        if transport is None:
            self._send(data)
        elif not transport.is_closing():
            transport.write(data)

    def close(self, last: Block | None = None) -> None:
        if self.closing:
            return
        end = _LAST_CHUNK if self._chunked else b""
        if last is not None:
            end = (last.framed if self._chunked else last.raw) + end
        if end:
            self._send(end)
        self._closed = True
        if self._transport is not None:
            self._finish(self._transport)

    def abort(self) -> None:
        self._closed = True
        if self._transport is not None:
            self._transport.abort()
        else:
            self._waiting = None  # the connection cuts itself when its turn comes

    # -- the connection's side
    def attach(self, transport: asyncio.Transport, *, keeps: bool = False) -> None:
        """Take over the transport; everything before this stream has been written. `keeps`: it is given back at the end."""
        waiting = self._waiting
        self._keeps = keeps and self._chunked
        self._transport, self._waiting = transport, None
        assert self._host is not None
        self._host.pipe_opened(self)
        if waiting is None:
            transport.abort()
            return
        _bound_unsent(transport)
        transport.set_write_buffer_limits(limits.PIPE_HIGH_WATER_BYTES, limits.PIPE_LOW_WATER_BYTES)
        if not transport.is_closing():
            transport.write(b"".join(waiting))
        if self._closed:
            self._finish(transport)
        elif transport.get_write_buffer_size() > limits.PIPE_HIGH_WATER_BYTES:
            self.pause_writing()  # earlier answers may have paused the transport already: it says so only once
        else:
            self.resume_writing()

    def lost(self) -> None:
        """The connection ended before or after it became this pipe's."""
        if not self._gone:
            self._gone = True
            self._waiting = None
            owner = self.owner
            if owner is not None:
                owner.gone()

    # -- asyncio.Protocol
    def data_received(self, data: bytes) -> None:
        self._ignored += len(data)
        if self._ignored > limits.STREAM_INPUT_BYTES_MAX and self._transport is not None:
            self._transport.abort()

    def eof_received(self) -> bool:
        return False  # a client that will not speak again is taken to have left: SSE clients never half-close

    def pause_writing(self) -> None:
        if not self._paused:
            self._paused = True
            if self.owner is not None and not self._closed:
                self.owner.pause()

    def resume_writing(self) -> None:
        if self._paused:
            self._paused = False
            if self._closed:
                if self._transport is not None:
                    self._finish(self._transport)
            elif self.owner is not None:
                self.owner.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._host is not None:
            self._host.pipe_lost(self)
        self._transport = None
        self.lost()

    def _send(self, data: bytes) -> None:
        transport = self._transport
        if transport is not None:
            if not transport.is_closing():  # uvloop raises on a closed transport
                transport.write(data)
        elif self._waiting is not None:
            self._waiting.append(data)
            if self.buffered > limits.PIPE_HIGH_WATER_BYTES:
                self.pause_writing()

    def _finish(self, transport: asyncio.Transport) -> None:
        """The end is written. What a client has sent meanwhile may be half of a request, so then the connection ends."""
        host = self._host
        assert host is not None
        keeps = self._keeps and not self._ignored and not transport.is_closing()
        if keeps and not self._paused and host.pipe_over(self, transport):
            self._transport = None
            asyncio.get_running_loop().call_soon(self.lost)
            return
        host.pipe_closing(self)
        if not (keeps and self._paused):  # else the reader comes first; it is cut if it takes nothing
            transport.close()
