from __future__ import annotations

import pytest

from seamark import limits
from seamark.client.flags.retry import Pace, retry_after, system_chance


def test_the_contract_has_one_second_that_doubles_to_thirty() -> None:
    pace = Pace()
    assert [pace.delay(failures, lambda: 1.0) for failures in (1, 2, 3, 4, 5, 6, 7, 10_000)] == [
        1,
        2,
        4,
        8,
        16,
        30,
        30,
        30,
    ]
    assert (pace.slow, pace.silence) == (60, 90)


def test_all_of_the_range_is_used() -> None:
    pace = Pace()
    assert pace.delay(4, lambda: 0.0) == 0
    assert pace.delay(4, lambda: 0.25) == 2


def test_a_server_may_ask_for_more_but_not_for_ever() -> None:
    pace = Pace()
    assert pace.delay(1, lambda: 0.5, asked=7) == 7
    assert pace.delay(6, lambda: 0.5, asked=7) == 15
    assert pace.delay(1, lambda: 0.5, asked=1e9) == limits.CLIENT_RETRY_AFTER_SECONDS_MAX


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        (" 120 ", 120),
        ("0", 0),
        (None, 0),
        ("", 0),
        ("-1", 0),
        ("1.5", 0),
        ("\u0663", 0),
        ("9" * 400, 0),
        ("soon", 0),
    ],
)
def test_what_retry_after_says(value: str | None, seconds: float) -> None:
    assert retry_after(value) == seconds


def test_chance_is_a_part_of_one() -> None:
    found = {system_chance() for _ in range(100)}
    assert len(found) > 90
    assert all(0 <= one < 1 for one in found)
