"""Timers run in order, never early, at most a tick late, and whatever a callback does."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import ManualClock, SystemClock
from seamark.stream.wheel import Timer, Wheel


class Alarm:
    """Stands for the loop's `call_later`: remembers what is armed."""

    def __init__(self) -> None:
        self.armed: list[tuple[float, Callable[[], None]]] = []

    def later(self, delay: float, callback: Callable[[], None]) -> Alarm:
        self.armed = [(delay, callback)]
        return self

    def cancel(self) -> None:
        self.armed = []

    def fire(self) -> None:
        """What the loop does when the time has come."""
        ((_, callback),) = self.armed
        self.armed = []
        callback()


def make(tick_seconds: float = 0.02) -> tuple[Wheel, ManualClock, Alarm]:
    clock, alarm = ManualClock(), Alarm()
    return Wheel(clock, tick_seconds=tick_seconds, call_later=alarm.later), clock, alarm


def test_runs_once_when_due() -> None:
    wheel, clock, _ = make()
    ran: list[str] = []
    wheel.add(1.0, lambda: ran.append("a"))
    clock.advance(0.97)
    wheel.advance()
    assert ran == []
    clock.advance(0.05)
    wheel.advance()
    wheel.advance()
    assert ran == ["a"]


def test_cancel_forgets_the_callback_at_once() -> None:
    class Reader:
        def beat(self) -> None:
            raise AssertionError("cancelled")

    wheel, clock, _ = make()
    reader = Reader()
    timer = wheel.add(1.0, reader.beat)
    seen = weakref.ref(reader)
    timer.cancel()
    timer.cancel()
    del reader
    gc.collect()
    assert seen() is None
    clock.advance(2)
    assert wheel.advance() == 0


def test_a_raising_callback_stops_nobody() -> None:
    wheel, clock, _ = make()
    ran: list[int] = []

    def fail() -> None:
        raise RuntimeError("no")

    wheel.add(1.0, fail)
    wheel.add(1.0, lambda: ran.append(1))
    wheel.add(2.0, lambda: ran.append(2))
    clock.advance(3)
    wheel.advance()
    assert ran == [1, 2]


def test_callbacks_may_add_and_cancel() -> None:
    wheel, clock, _ = make()
    ran: list[str] = []
    doomed: list[Timer] = []

    def first() -> None:
        ran.append("first")
        doomed[0].cancel()
        wheel.add(0.0, lambda: ran.append("chained"))

    wheel.add(1.0, first)
    doomed.append(wheel.add(1.0, lambda: ran.append("doomed")))
    clock.advance(1.02)
    wheel.advance()
    clock.advance(0.04)
    wheel.advance()
    assert ran == ["first", "chained"]


def test_sleeps_when_empty_and_wakes_for_the_next() -> None:
    wheel, clock, alarm = make()
    assert alarm.armed == []
    wheel.add(100.0, lambda: None)
    sooner = wheel.add(1.0, lambda: None)
    assert alarm.armed[0][0] <= 1.02
    sooner.cancel()
    clock.advance(200)
    alarm.fire()
    assert alarm.armed == []


def test_spread_lays_equal_timers_apart() -> None:
    wheel, clock, _ = make()
    ran: list[int] = []
    for number in range(1_000):
        wheel.add(10.0, lambda number=number: ran.append(number), spread_seconds=1.0)  # type: ignore[misc]
    clock.advance(9.99)
    assert wheel.advance() == 0
    busiest = 0
    for _ in range(60):
        clock.advance(0.02)
        busiest = max(busiest, wheel.advance())
    assert len(ran) == 1_000
    assert busiest <= 40  # evenly over 50 ticks would be 20


def test_close_drops_everything() -> None:
    wheel, clock, alarm = make()
    wheel.add(1.0, lambda: None)
    wheel.add(10_000.0, lambda: None)
    wheel.close()
    assert alarm.armed == []
    clock.advance(20_000)
    assert wheel.advance() == 0


async def test_drives_itself_on_a_loop() -> None:
    wheel = Wheel(SystemClock())
    ran = asyncio.Event()
    wheel.add(0.03, ran.set)
    await asyncio.wait_for(ran.wait(), 5)
    wheel.close()


STEP = st.one_of(
    st.tuples(st.just("add"), st.one_of(st.floats(0, 3), st.floats(0, 400), st.floats(0, 2_000_000))),
    st.tuples(st.just("advance"), st.one_of(st.floats(0, 3), st.floats(0, 500), st.floats(0, 1_000_000))),
    st.tuples(st.just("cancel"), st.floats(0, 1)),
    st.tuples(st.just("alarm"), st.just(0.0)),
)


@given(st.lists(STEP, max_size=60))
def test_never_early_never_late_in_order(steps: list[tuple[str, float]]) -> None:
    wheel, clock, alarm = make()
    waiting: dict[int, tuple[float, Timer]] = {}
    ran: list[int] = []
    number = 0
    for step, amount in steps:
        if step == "add":
            number += 1
            due = clock.monotonic() + amount
            waiting[number] = (due, wheel.add(amount, lambda number=number: ran.append(number)))  # type: ignore[misc]
        elif step == "cancel" and waiting:
            chosen = sorted(waiting)[int(amount * (len(waiting) - 1))]
            waiting.pop(chosen)[1].cancel()
        elif step == "alarm" and alarm.armed:
            # Sleeping exactly as long as the wheel asked for must always come to the next thing to do.
            clock.advance(alarm.armed[0][0])
            alarm.fire()
        elif step == "advance":
            clock.advance(amount)
            wheel.advance()
        now = clock.monotonic()
        slack = wheel.tick_seconds + 1e-6 + now * 1e-9
        assert [waiting[one][0] for one in ran] == sorted_within_tick([waiting[one][0] for one in ran], slack)
        for one in ran:
            assert waiting.pop(one)[0] <= now + 1e-6 + now * 1e-9, "early"
        if step == "advance":
            assert all(due > now - slack for due, _ in waiting.values()), "late"
        assert bool(alarm.armed) or not waiting
        ran.clear()


def sorted_within_tick(dues: list[float], slack: float) -> list[float]:
    """The list as it is when no two neighbours are out of order by more than a tick, else sorted."""
    ordered = all(b > a - slack for a, b in pairwise(dues))
    return dues if ordered else sorted(dues)
