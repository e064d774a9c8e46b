"""The load client: thousands of connections in one plain epoll loop that does next to nothing for each read.

It must never be what limits a figure, so it holds no task, no future and no buffer per connection. Most connections only
note the newest seq of a read, in C where there is a compiler (measured: in Python alone the client's core is full at
about a million deliveries a second, which the server passes); a few check everything, in Python.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Protocol

from seamark.bench import drain, machine, wire
from seamark.bench.drain import Drain
from seamark.bench.sample import Sample

READ_BYTES = 256 * 1024
EVENTS_PER_TURN = 256  # so that a publisher waits for no more than this many reads
PORTS_PER_ADDRESS = 20_000  # then the next loopback address: a source address has some 28,000 ports
FILES_MAX = 65_536
CLOSED = "the server closed a connection of the load client"
READABLE = select.POLLIN
WRITABLE = select.POLLOUT


class Broken(Exception):
    """A connection of the load client was closed or answered with an error."""


class Waiting(Protocol):
    """Something that waits on a socket."""

    def take(self, buffer: bytearray, count: int) -> None:
        """`count` bytes arrived; the buffer is shared and valid only during the call."""
        ...


class Tally:
    """What the watchers of one swarm have received together."""

    __slots__ = ("broken", "delivered", "latency", "opened")

    def __init__(self) -> None:
        self.opened = 0
        self.delivered = 0
        self.broken = 0  # events missing, repeated or out of order, on the connections that check
        self.latency = Sample()


class Swarm:
    """All connections of one load, served in one loop by whoever calls `turn`."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._poll: select.epoll | select.poll = self._epoll or select.poll()
        self._sockets: dict[int, socket.socket] = {}
        self._waiting: dict[int, Waiting] = {}
        self._unsent: dict[int, memoryview] = {}
        self._buffer = bytearray(READ_BYTES)
        self._drain: Drain | None = None
        compiled = drain.library()
        if compiled is not None and self._epoll is not None:
            self._drain = Drain(compiled, self._epoll.fileno(), machine.open_files(FILES_MAX), self._buffer)
        self.tally = Tally()
        self.bytes_in = 0

    def connect(self, *, receive_bytes: int | None = None) -> socket.socket:
        """A connected socket that nobody waits on yet. `receive_bytes` bounds what its kernel buffer takes."""
        place = len(self._sockets) // PORTS_PER_ADDRESS
        connection = socket.socket()
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if place:
            connection.bind((f"127.0.0.{1 + place}", 0))
        connection.connect(self._address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self._sockets[connection.fileno()] = connection
        return connection

    def join(self, connection: socket.socket, waiting: Waiting) -> None:
        """Hand what arrives on a connection to `waiting`."""
        self._waiting[connection.fileno()] = waiting
        self._poll.register(connection.fileno(), READABLE)

    def adopt(self, connection: socket.socket, seen: int) -> bool:
        """Only count what arrives from here on, in C; False where that cannot be had."""
        if self._drain is None:
            return False
        self._drain.adopt(connection.fileno(), seen)
        return True

    def timing(self, wanted: bool) -> None:
        """Note latencies on every connection, not only on those that check: for events that come one by one."""
        if self._drain is not None:
            self._drain.timing = wanted

    def send(self, connection: socket.socket, data: bytes) -> None:
        """Send now what the kernel takes, the rest as it takes it."""
        try:
            sent = connection.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            fd = connection.fileno()
            self._unsent[fd] = memoryview(data)[sent:]
            self._poll.modify(fd, READABLE | WRITABLE)

    def turn(self, seconds: float) -> None:
        """Wait for at most `seconds` and serve what is ready."""
        sockets, waiting, buffer = self._sockets, self._waiting, self._buffer
        for fd, mask in self._wait(seconds):
            if mask & WRITABLE:
                self._send_rest(fd)
                if not mask & READABLE:
                    continue
            try:
                count = sockets[fd].recv_into(buffer)
            except BlockingIOError:
                continue
            if count == 0:
                raise Broken(CLOSED)
            self.bytes_in += count
            waiting[fd].take(buffer, count)

    def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Serve connections until `done`, at most `seconds`; whether it was done."""
        end = time.perf_counter() + seconds
        while not done():
            left = end - time.perf_counter()
            if left <= 0:
                return False
            self.turn(min(left, 0.1))
        return True

    def close(self) -> None:
        for connection in self._sockets.values():
            connection.close()
        if self._epoll is not None:
            self._epoll.close()
        self._sockets.clear()
        self._waiting.clear()

    def _wait(self, seconds: float) -> list[tuple[int, int]]:
        if self._drain is not None:
            ready = self._drain.turn(seconds)
            taken = self._drain.take()
            if taken.closed:
                raise Broken(CLOSED)
            self.tally.delivered += taken.delivered
            self.bytes_in += taken.bytes
            if taken.latencies:
                self.tally.latency.extend(taken.latencies)
            return ready
        if self._epoll is not None:
            return self._epoll.poll(seconds, EVENTS_PER_TURN)
        return self._poll.poll(seconds * 1000)

    def _send_rest(self, fd: int) -> None:
        rest = self._unsent.pop(fd)
        try:
            sent = self._sockets[fd].send(rest)
        except BlockingIOError:
            sent = 0
        if sent < len(rest):
            self._unsent[fd] = rest[sent:]
        else:
            self._poll.modify(fd, READABLE)


class Caller:
    """One keep-alive connection with at most one request under way."""

    __slots__ = ("_began", "_done", "_missing", "_part", "_swarm", "busy", "connection", "failed", "sample")

    def __init__(self, swarm: Swarm, sample: Sample, done: Callable[[Caller], None] | None = None) -> None:
        self._swarm = swarm
        self._done = done
        self._part = bytearray()
        self._missing = 0
        self._began = 0
        self.busy = False
        self.failed: bytes | None = None
        self.sample = sample
        self.connection = swarm.connect()
        swarm.join(self.connection, self)

    def call(self, request: bytes) -> None:
        assert not self.busy
        self.busy = True
        self._began = time.perf_counter_ns()
        self._swarm.send(self.connection, request)

    def take(self, buffer: bytearray, count: int) -> None:
        if self._missing:
            self._missing -= count
        else:
            if self._part:
                self._part += buffer[:count]
                buffer, count = self._part, len(self._part)
            whole = wire.answer_bytes(buffer, count)
            if whole is None:
                if buffer is not self._part:
                    self._part += buffer[:count]
                return
            if buffer[9:10] != b"2":
                raise Broken(f"the server refused: {bytes(buffer[: min(count, 400)])!r}")
            self._missing = whole - count
            self._part = bytearray()
        assert self._missing >= 0, "more bytes than one answer"
        if self._missing == 0:
            self.busy = False
            self.sample.add(time.perf_counter_ns() - self._began)
            if self._done is not None:
                self._done(self)


class Watcher:
    """One open stream. `checks` makes it look at every event: completeness, order and latency."""

    __slots__ = ("_rest", "_swarm", "_tally", "_unchunker", "connection", "open", "seen")

    def __init__(self, swarm: Swarm, path: str, *, checks: bool, seen: int = 0) -> None:
        self._swarm = swarm
        self._tally = swarm.tally
        self._unchunker = wire.Unchunker() if checks else None
        self._rest = b""
        self.seen = seen
        self.open = False
        self.connection = swarm.connect()
        swarm.join(self.connection, self)
        swarm.send(self.connection, wire.request("GET", path))

    def take(self, buffer: bytearray, count: int) -> None:
        if not self.open:
            self._open(buffer, count)
            return
        if self._unchunker is not None:
            self._check(bytes(buffer[:count]))
            return
        seq = wire.last_seq(buffer, count)
        if seq is not None and seq > self.seen:
            self._tally.delivered += seq - self.seen
            self.seen = seq

    def _open(self, buffer: bytearray, count: int) -> None:
        if buffer[9:12] != b"200":
            raise Broken(f"a watch was refused: {bytes(buffer[: min(count, 400)])!r}")
        self.open = True
        self._tally.opened += 1
        body = buffer.find(b"\r\n\r\n", 0, count) + 4
        assert body >= 4, "the head of an answer came in pieces"
        if body < count:
            self.take(bytearray(buffer[body:count]), count - body)
        if self._unchunker is None:
            self._swarm.adopt(self.connection, self.seen)

    def _check(self, data: bytes) -> None:
        assert self._unchunker is not None
        now = time.perf_counter_ns()
        text = self._rest + self._unchunker.feed(data)
        end = text.rfind(b"\n\n") + 2
        if end < 2:
            self._rest = text
            return
        self._rest = text[end:]
        tally = self._tally
        for seq, stamp in wire.events(text[:end]):
            tally.broken += seq != self.seen + 1
            tally.delivered += 1
            self.seen = seq
            tally.latency.add(now - stamp)
