"""A connection of the load client that hears some of what is published: which, only its filter knows, so it counts events."""

from __future__ import annotations

import re
import time

from seamark.bench import wire
from seamark.bench.sample import Sample
from seamark.bench.swarm import Broken, Swarm

_NOTIFICATION = re.compile(rb'"t":"(\d{19})"\}\},[^\n]*?"sequence":(\d+),')
_END = b"\r\n0\r\n\r\n"  # the last chunk of a stream


class Heard:
    """What an event said: when it was sent, and its sequence."""

    __slots__ = ("latency", "sequences", "stamps")

    def __init__(self) -> None:
        self.latency = Sample()
        self.sequences: list[int] = []
        self.stamps: list[int] = []


class Hearer:
    """Counts the events of one stream behind the `opening` ones; `heard` is what it has noted, where it looks at each. `ended`
    once the server has ended the stream."""

    __slots__ = ("_after_newline", "_opening", "_rest", "_swarm", "_unchunker", "connection", "count", "ended", "heard")

    def __init__(self, swarm: Swarm, request: bytes, *, opening: int, notes: bool = False) -> None:
        self._swarm = swarm
        self._opening = opening
        self._after_newline = False
        self._unchunker = wire.Unchunker()
        self._rest = b""
        self.heard = Heard() if notes else None
        self.count = -1  # the answer's head is still to come
        self.ended = False
        self.connection = swarm.connect()
        swarm.join(self.connection, self)
        swarm.send(self.connection, request)

    @property
    def open(self) -> bool:
        return self.count >= self._opening

    def take(self, buffer: bytearray, count: int) -> None:
        start = 0
        if self.count < 0:
            start = self._head(buffer, count)
        # An event ends with two line feeds, and no other two follow each other: chunks end with carriage returns.
        found = buffer.count(b"\n\n", start, count)
        if self._after_newline and buffer[0] == 10:
            found += 1
        self._after_newline = buffer[count - 1] == 10
        if found:
            self._counted(found)
        if self.heard is not None:
            self._note(self.heard, bytes(buffer[start:count]))
        self.ended = buffer.endswith(_END, max(0, count - len(_END)), count)

    def _head(self, buffer: bytearray, count: int) -> int:
        if buffer[9:12] != b"200":
            raise Broken(f"a watch was refused: {bytes(buffer[: min(count, 400)])!r}")
        body = buffer.find(b"\r\n\r\n", 0, count) + 4
        assert body >= 4, "the head of an answer came in pieces"
        self.count = 0
        return body

    def _counted(self, found: int) -> None:
        tally = self._swarm.tally
        before = self.count
        self.count += found
        if before < self._opening <= self.count:
            tally.opened += 1
        tally.delivered += max(0, self.count - max(before, self._opening))

    def _note(self, heard: Heard, data: bytes) -> None:
        now = time.perf_counter_ns()
        text = self._rest + self._unchunker.feed(data)
        end = text.rfind(b"\n\n") + 2
        if end < 2:
            self._rest = text
            return
        self._rest = text[end:]
        for found in _NOTIFICATION.finditer(text, 0, end):
            stamp = int(found[1])
            heard.stamps.append(stamp)
            heard.sequences.append(int(found[2]))
            heard.latency.add(now - stamp)
