"""A stall: the time in which a reader does not take its bytes. It lags as long, and is slow when nothing moves for long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from seamark.limits import STALL_SECONDS_MAX
from seamark.stream.pipe import Pipe

if TYPE_CHECKING:
    from seamark.stream.hub import Hub


class Stall:
    """Make it when the pipe pauses, `end` it when it resumes or is no more."""

    __slots__ = ("_buffered", "_hub", "_pipe", "_slow", "_timer")

    def __init__(self, hub: Hub, pipe: Pipe, slow: Callable[[], None]) -> None:
        self._hub = hub
        self._pipe = pipe
        self._slow = slow
        hub.lagging.value += 1
        self._wait()

    def end(self) -> None:
        self._hub.lagging.value -= 1
        self._timer.cancel()

    def _wait(self) -> None:
        self._buffered = self._pipe.buffered
        self._timer = self._hub.wheel.add(STALL_SECONDS_MAX, self._look)

    def _look(self) -> None:
        """Any progress on the socket buys the same time again."""
        if self._pipe.buffered < self._buffered:
            self._wait()
        else:
            self._slow()
