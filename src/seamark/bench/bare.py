"""The reference server: a bare uvloop loop that moves the same bytes and does nothing else.

It keeps no log, parses no JSON, checks nothing and answers every append with the same bytes. What it costs is what the
kernel and the loop cost; the ratio to it is what Seamark adds. `python -m seamark.bench.bare --port-file FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from seamark.bench import wire

_HEAD = b'{"records":[{"data":'
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_RECEIPT_BODY = b'{"stream":"bench","instance":"0123456789abcdef","pad":"%b"}' % (b"x" * 120)
_RECEIPT = _OK % (len(_RECEIPT_BODY), _RECEIPT_BODY)  # as long as a real receipt
_READY = _OK % (2, b"{}")
_ROTA = b"/rota/"  # and how many watchers an event goes to
_OPENING = b"d\r\nretry: 2000\n\n\r\n"
LISTEN_BACKLOG = 4096


class Channel:
    """The watchers of one path, and what they are to be told at the end of this turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._burst: list[bytes] = []
        self.head = 0
        self.transports: set[asyncio.Transport] = set()

    def publish(self, data: bytes) -> None:
        self.head += 1
        if not self._burst:
            self._loop.call_soon(self._flush)
        self._burst.append(wire.event(self.head, 1_700_000_000_000, data))

    def _flush(self) -> None:
        text = b"".join(self._burst)
        self._burst.clear()
        chunk = b"%x\r\n%b\r\n" % (len(text), text)
        for transport in self.transports:
            if not transport.is_closing():
                transport.write(chunk)


class Rota(Channel):
    """Each event goes to the next few watchers only, as if filters had chosen them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, share: int) -> None:
        super().__init__(loop)
        self._share = share
        self._turns: Iterator[asyncio.Transport] | None = None
        self._owed: dict[asyncio.Transport, list[bytes]] = {}

    def publish(self, data: bytes) -> None:
        self.head += 1
        if not self._owed:
            self._loop.call_soon(self._flush)
        if self._turns is None:
            self._turns = itertools.cycle(list(self.transports))
        text = wire.event(self.head, 1_700_000_000_000, data)
        for transport in itertools.islice(self._turns, self._share):
            self._owed.setdefault(transport, []).append(text)

    def _flush(self) -> None:
        owed, self._owed = self._owed, {}
        for transport, texts in owed.items():
            text = b"".join(texts)
            if not transport.is_closing():
                transport.write(b"%x\r\n%b\r\n" % (len(text), text))


class Bare:
    """What all connections share."""

    def __init__(self, loop: asyncio.AbstractEventLoop, blob: bytes) -> None:
        self.loop = loop
        self.blob = blob
        self.page = _OK % (len(blob), blob)
        self.channels: dict[bytes, Channel] = {}

    def channel(self, path: bytes) -> Channel:
        found = self.channels.get(path)
        if found is None:
            made = Rota(self.loop, int(path[len(_ROTA) :])) if path.startswith(_ROTA) else Channel(self.loop)
            found = self.channels[path] = made
        return found


class Connection(asyncio.Protocol):
    """Finds where a request ends, and answers by its first bytes."""

    def __init__(self, shared: Bare) -> None:
        self._shared = shared
        self._rest = b""
        self._channel: Channel | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        while data:
            head = data.find(b"\r\n\r\n")
            if head < 0:
                break
            end = head + 4
            if data[0] == 80:  # P: it has a body
                at = data.find(b"Content-Length: ", 0, head)
                end += int(data[at + 16 : data.find(b"\r\n", at)]) if at > 0 else 0
            if end > len(data):
                break
            self._answer(data[:end] if end < len(data) else data, head + 4)
            data = data[end:]
        self._rest = data

    def _answer(self, request: bytes, body: int) -> None:
        method, target, _ = request.split(b" ", 2)
        if target.endswith((b"/records", b"/diff")) or b"/records?" in target:
            self._transport.write(self._shared.page)
        elif method == b"POST":
            channel = self._shared.channels.get(target)
            if channel is not None and channel.transports:
                channel.publish(request[body + len(_HEAD) : -3])
            self._transport.write(_RECEIPT)
        elif b"/watch" in target:
            self._watch(target)
        else:
            self._transport.write(_READY)

    def _watch(self, target: bytes) -> None:
        path, _, query = target.partition(b"?")
        self._transport.write(_STREAM + _OPENING)
        if query.startswith(b"times="):
            task = self._shared.loop.create_task(self._replay(int(query[6:])))
            task.add_done_callback(lambda done: done.exception())
            return
        self._channel = self._shared.channel(path.removesuffix(b"/watch"))
        self._channel.transports.add(self._transport)

    async def _replay(self, times: int) -> None:
        """The same block again and again, as fast as the reader takes it."""
        chunk = b"%x\r\n%b\r\n" % (len(self._shared.blob), self._shared.blob)
        for _ in range(times):
            await self._writable.wait()
            if self._transport.is_closing():
                return
            self._transport.write(chunk)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._writable.set()
        if self._channel is not None:
            self._channel.transports.discard(self._transport)


async def serve(port_file: Path, blob: bytes) -> None:
    loop = asyncio.get_running_loop()
    shared = Bare(loop, blob)
    listener = socket.create_server(("127.0.0.1", 0), backlog=LISTEN_BACKLOG)
    server = await loop.create_server(lambda: Connection(shared), sock=listener, backlog=LISTEN_BACKLOG)
    host, port = listener.getsockname()
    fresh = port_file.with_suffix(".new")
    fresh.write_text(f"{host}:{port}")
    os.replace(fresh, port_file)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--blob", type=Path)
    given = parser.parse_args()
    blob = given.blob.read_bytes() if given.blob else b""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(given.port_file, blob))
    else:
        uvloop.run(serve(given.port_file, blob))


if __name__ == "__main__":
    main()
