"""Clocks: the machine's never goes back in measuring, and the manual one moves only when told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import NS_PER_SECOND, ManualClock, SystemClock


def test_the_system_clock_measures_forward() -> None:
    clock = SystemClock()
    looks = [clock.monotonic() for _ in range(100)]
    assert looks == sorted(looks)
    assert clock.now_ns() > 1_600_000_000 * NS_PER_SECOND


@given(st.lists(st.floats(0, 1e6)))
def test_the_manual_clock_stands_still_until_it_is_told(steps: list[float]) -> None:
    clock = ManualClock(now_ns=5)
    for seconds in steps:
        before = clock.now_ns(), clock.monotonic()
        assert (clock.now_ns(), clock.monotonic()) == before
        clock.advance(seconds)
        assert clock.now_ns() == before[0] + round(seconds * NS_PER_SECOND)
        assert clock.monotonic() == before[1] + seconds


@given(st.floats(-1e6, 1e6))
def test_setting_the_clock_lets_no_time_pass(seconds: float) -> None:
    clock = ManualClock()
    before, passed = clock.now_ns(), clock.monotonic()
    clock.step(seconds)
    assert clock.now_ns() == before + round(seconds * NS_PER_SECOND)
    assert clock.monotonic() == passed
