from __future__ import annotations

import pytest

from seamark.access.inflight import InFlight
from seamark.access.keys import ACTIONS, ANYONE, KeyHolder
from seamark.errors import Busy


def holder(name: str) -> KeyHolder:
    return KeyHolder(name=name, scopes=ACTIONS, prefixes=())


def test_each_key_has_its_own_room_and_gets_it_back() -> None:
    inflight, one, other = InFlight(2), holder("one"), holder("other")
    assert inflight.enter(one)
    assert inflight.enter(one)
    with pytest.raises(Busy) as caught:
        inflight.enter(one)
    assert caught.value.fields == {"limit": "max_inflight_per_key", "max": 2}
    assert inflight.enter(other)
    inflight.leave(one)
    assert inflight.enter(one)
    for principal in (one, one, other):
        inflight.leave(principal)
    assert (inflight.count("one"), inflight.count("other")) == (0, 0)


def test_nobody_is_counted_without_keys_or_without_a_bound() -> None:
    assert not InFlight(1).enter(ANYONE)
    assert not InFlight(0).enter(holder("one"))
