from __future__ import annotations

from uuid import UUID

import pytest

from seamark.clock import NS_PER_MS
from seamark.flags import ulid

MOST = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0" * 26),
        (1, "0" * 25 + "1"),
        (31, "0" * 25 + "Z"),
        (32, "0" * 24 + "10"),
        (2**128 - 1, MOST),
        (1469918176385 << 80, "01ARYZ6S410000000000000000"),  # the moment in the ULID specification
    ],
)
def test_numbers_as_letters(number: int, text: str) -> None:
    assert ulid.spelled(number) == text


def test_a_request_keeps_its_bits() -> None:
    assert ulid.of_request(str(UUID(int=2**128 - 1))) == MOST
    assert ulid.of_request("00000000-0000-0000-0000-000000000020") == "0" * 24 + "10"


def test_a_new_one_is_its_time_and_chance() -> None:
    now = 1469918176385 * NS_PER_MS
    assert ulid.made(now, b"\0" * 10) == "01ARYZ6S410000000000000000"
    assert ulid.made(now + 999_999, b"\xff" * 10) == "01ARYZ6S41ZZZZZZZZZZZZZZZZ"


def test_order_is_that_of_making_whatever_the_clock_says() -> None:
    now = 1469918176385 * NS_PER_MS
    first = ulid.made(now, b"\xff" * 10)
    second = ulid.made(now, b"\0" * 10, after=first)
    third = ulid.made(now - NS_PER_MS, b"\x01" * 10, after=second)
    assert first < second < third
    assert second == "01ARYZ6S420000000000000000"
    later = ulid.made(now + 60_000 * NS_PER_MS, b"\0" * 10, after=third)
    assert later == ulid.made(now + 60_000 * NS_PER_MS, b"\0" * 10)
