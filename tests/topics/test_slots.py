"""Open streams are bounded, in all and for each key."""

from __future__ import annotations

import pytest

from seamark.errors import Busy
from seamark.topics.slots import StreamSlots


def test_a_key_has_so_many_and_no_more() -> None:
    slots = StreamSlots(most=3, most_per_key=2)
    slots.take("a")
    slots.take("a")
    with pytest.raises(Busy) as refused:
        slots.take("a")
    assert refused.value.fields == {"limit": "max_sse_connections_per_key", "max": 2}
    slots.take("b")
    with pytest.raises(Busy) as refused:
        slots.take("c")
    assert refused.value.fields == {"limit": "max_sse_connections", "max": 3}
    slots.release("a")
    slots.take("c")
    assert slots.open == 3


def test_zero_sets_no_bound() -> None:
    slots = StreamSlots()
    for _ in range(5_000):
        slots.take("a")
    assert slots.open == 5_000
