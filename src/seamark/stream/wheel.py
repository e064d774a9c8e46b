"""One timer wheel for every heartbeat and deadline of the process: a hundred thousand timers, one loop timer.

Three levels of 256 slots. A timer sits in the level whose slots are as wide as its distance, and moves down as its
time comes near; adding and cancelling touch one slot. Callbacks never run early, and at most one tick late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil, floor
from typing import Final, Protocol

from seamark.clock import Clock
from seamark.telemetry import events
from seamark.telemetry.logs import logger

_BITS: Final = 8
_SLOTS: Final = 1 << _BITS
_MASK: Final = _SLOTS - 1
_LEVELS: Final = 3
_REACH: Final = (_SLOTS - 2) << _BITS * (_LEVELS - 1)  # a timer beyond it waits in the top level for another round
_GOLDEN: Final = 0.6180339887498949  # successive multiples fall evenly into the unit interval

_log = logger("stream")


class Armed(Protocol):
    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Armed]


class Timer:
    """A callback that is due at a tick. Cancelling twice, or after it ran, does nothing."""

    __slots__ = ("_callback", "_due", "_slot")

    def __init__(self, due: int, callback: Callable[[], object]) -> None:
        self._due = due
        self._callback: Callable[[], object] | None = callback
        self._slot: dict[Timer, None] | None = None

    def cancel(self) -> None:
        """Forget the callback at once, and with it whatever it holds."""
        self._callback = None
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.pop(self, None)  # it is no longer there while its tick is being run

    @property
    def active(self) -> bool:
        return self._callback is not None


class Wheel:
    """All timers of one event loop. Sleeps when there are none."""

    __slots__ = (
        "_armed",
        "_armed_tick",
        "_call_later",
        "_clock",
        "_levels",
        "_phase",
        "_start",
        "_tick",
        "tick_seconds",
    )

    def __init__(self, clock: Clock, *, tick_seconds: float = 0.02, call_later: CallLater | None = None) -> None:
        self.tick_seconds = tick_seconds
        self._clock = clock
        self._call_later = call_later
        self._start = clock.monotonic()
        self._tick = 0  # every timer due at or before it has run
        self._levels: list[list[dict[Timer, None]]] = [[{} for _ in range(_SLOTS)] for _ in range(_LEVELS)]
        self._armed: Armed | None = None
        self._armed_tick = 0
        self._phase = 0.0

    def now(self) -> float:
        """The wheel's clock: seconds, only good for differences."""
        return self._clock.monotonic()

    def add(self, delay_seconds: float, callback: Callable[[], object], *, spread_seconds: float = 0.0) -> Timer:
        """Call `callback` once, `delay_seconds` from now. With `spread_seconds`, timers added one after the other are
        laid evenly over that much more time, so that ten thousand heartbeats do not fall into one tick."""
        assert delay_seconds >= 0
        assert spread_seconds >= 0
        elapsed = self._clock.monotonic() - self._start
        due = elapsed + delay_seconds
        if spread_seconds:
            self._phase = (self._phase + _GOLDEN) % 1.0
            due += self._phase * spread_seconds
        timer = Timer(max(ceil(due / self.tick_seconds), self._tick + 1), callback)
        wake = self._place(timer)
        if self._armed is None or wake < self._armed_tick:
            self._arm(wake, elapsed)
        return timer

    def advance(self) -> int:
        """Run what is due by the clock; returns how many callbacks ran. The loop timer calls it."""
        elapsed = self._clock.monotonic() - self._start
        target = floor(elapsed / self.tick_seconds)
        ran = 0
        while self._tick < target:
            following = self._next_tick()
            if following is None or following > target:
                self._tick = target
                break
            self._tick = following
            self._cascade()
            ran += self._run(self._levels[0][following & _MASK])
        following = self._next_tick()
        if following is not None:
            self._arm(following, elapsed)
        else:
            self._disarm()
        return ran

    def close(self) -> None:
        """Drop every timer."""
        for level in self._levels:
            for slot in level:
                for timer in list(slot):
                    timer.cancel()
        self._disarm()

    def _place(self, timer: Timer) -> int:
        """Put it in the lowest level that reaches so far; returns the tick at which its slot needs a look."""
        due = min(timer._due, self._tick + _REACH)
        for level in range(_LEVELS):
            shift = _BITS * level
            if (due >> shift) - (self._tick >> shift) < _SLOTS:
                slot = self._levels[level][(due >> shift) & _MASK]
                slot[timer] = None
                timer._slot = slot
                return due >> shift << shift
        raise AssertionError("a timer lies within the wheel's reach")

    def _cascade(self) -> None:
        """At a level's boundary, move the slot that begins now to the levels below."""
        for level in range(_LEVELS - 1, 0, -1):
            shift = _BITS * level
            if self._tick & ((1 << shift) - 1):
                continue
            slot = self._levels[level][(self._tick >> shift) & _MASK]
            moving = list(slot)
            slot.clear()
            for timer in moving:
                self._place(timer)

    def _next_tick(self) -> int | None:
        """The next tick at which there is something to run or to move down; None when the wheel is empty."""
        best: int | None = None
        for level, slots in enumerate(self._levels):
            shift = _BITS * level
            base = self._tick >> shift
            for ahead in range(1, _SLOTS):
                if slots[(base + ahead) & _MASK]:
                    tick = (base + ahead) << shift
                    best = tick if best is None else min(best, tick)
                    break
        return best

    def _run(self, slot: dict[Timer, None]) -> int:
        due = list(slot)
        slot.clear()
        ran = 0
        for timer in due:
            timer._slot = None
            callback, timer._callback = timer._callback, None
            if callback is None:
                continue  # cancelled by one that ran before it in this tick
            ran += 1
            try:
                callback()
            except Exception:
                _log.error(events.TIMER_FAILED, exc_info=True)
        return ran

    def _arm(self, wake: int, elapsed: float) -> None:
        if self._armed is not None:
            if self._armed_tick == wake:
                return
            self._armed.cancel()
        self._armed_tick = wake
        later = self._call_later or asyncio.get_running_loop().call_later
        self._armed = later(max(0.0, wake * self.tick_seconds - elapsed), self._fire)

    def _disarm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _fire(self) -> None:
        self._armed = None
        self.advance()
