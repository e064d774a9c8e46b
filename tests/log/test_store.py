"""Both stores are the same ordered map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.clock import SystemClock
from seamark.log.engines.embedded import LmdbStore
from seamark.log.engines.memory import MemoryStore
from seamark.log.store import Space, Store, after

spaces = st.sampled_from([Space.RECORDS, Space.SHELF])
keys = st.binary(min_size=4, max_size=6).map(lambda raw: bytes(b % 3 for b in raw))
changes = st.lists(st.tuples(spaces, keys, st.none() | st.binary(max_size=5)), max_size=30)


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else LmdbStore(tmp_path, SystemClock())
    yield made
    made.close()


def contents(store: Store, space: Space, start: bytes, stop: bytes | None) -> list[tuple[bytes, bytes]]:
    with store.view() as view:
        return [(key, bytes(value)) for key, value in view.scan(space, start, stop)]


def test_it_is_an_ordered_map(store: Store) -> None:
    store.write([(Space.SHELF, b"b", b"2"), (Space.SHELF, b"a", b"1"), (Space.SHELF, b"c", b"3")])
    store.write([(Space.SHELF, b"b", None), (Space.SHELF, b"a", b"0"), (Space.SHELF, b"missing", None)])
    assert contents(store, Space.SHELF, b"", None) == [(b"a", b"0"), (b"c", b"3")]
    assert contents(store, Space.SHELF, b"a\0", b"c") == []
    with store.view() as view:
        assert view.get(Space.SHELF, b"b") is None
        assert bytes(view.get(Space.SHELF, b"c") or b"") == b"3"
        assert view.floor(Space.SHELF, b"") is None
        floors = [view.floor(Space.SHELF, key) for key in (b"a", b"b", b"z")]
        assert [None if found is None else found[0] for found in floors] == [b"a", b"a", b"c"]


def test_the_last_change_of_a_key_wins(store: Store) -> None:
    store.write([(Space.SHELF, b"k", b"1"), (Space.SHELF, b"k", None), (Space.SHELF, b"k", b"2")])
    assert contents(store, Space.SHELF, b"", None) == [(b"k", b"2")]


@given(st.lists(changes, max_size=4), keys, keys)
def test_the_memory_store_agrees_with_a_dictionary(
    rounds: list[list[tuple[Space, bytes, bytes | None]]], start: bytes, stop: bytes
) -> None:
    store, model = MemoryStore(), dict[tuple[Space, bytes], bytes]()
    for batch in rounds:
        store.write(batch)
        for space, key, value in batch:
            if value is None:
                model.pop((space, key), None)
            else:
                model[space, key] = value
    shelf = sorted((key, value) for (space, key), value in model.items() if space is Space.SHELF)
    assert contents(store, Space.SHELF, start, stop) == [(k, v) for k, v in shelf if start <= k < stop]
    prefix = start[:4]  # records are looked up within one stream
    mine = sorted((k, v) for (space, k), v in model.items() if space is Space.RECORDS and k.startswith(prefix))
    assert contents(store, Space.RECORDS, prefix, after(prefix)) == mine


@given(st.binary(max_size=4), st.binary(max_size=6))
def test_after_is_the_first_key_behind_a_prefix(prefix: bytes, key: bytes) -> None:
    stop = after(prefix)
    inside = key >= prefix and (stop is None or key < stop)
    assert inside == key.startswith(prefix)
