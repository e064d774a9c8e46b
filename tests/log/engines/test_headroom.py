from __future__ import annotations

from pathlib import Path

import pytest

from seamark.clock import SystemClock
from seamark.limits import HEADROOM_BYTES
from seamark.log.engines import directory
from seamark.log.engines.embedded import LmdbStore
from seamark.log.engines.headroom import Headroom
from seamark.log.store import PLACE, Space

STEP = 4_096
DATA = b"\xd5" * STEP


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file that is just large enough to be given room."""
    path = tmp_path / "data"
    path.write_bytes(b"\xd5" * HEADROOM_BYTES)
    return path


def grow(path: Path, end: int) -> int:
    """What a store does: put one more page where it ends."""
    with path.open("r+b") as file:
        file.seek(end)
        file.write(DATA)
    return end + STEP


def test_zeros_are_written_behind_the_end_and_nowhere_else(data: Path) -> None:
    headroom = Headroom(data)
    end = HEADROOM_BYTES
    headroom.keep(end)  # how much it grew is not known yet
    assert data.stat().st_size == end
    sizes = set()
    for _ in range(2 * HEADROOM_BYTES // STEP):
        end = grow(data, end)
        headroom.keep(end)
        sizes.add(data.stat().st_size)
        assert data.stat().st_size >= end + HEADROOM_BYTES // 4
    headroom.close()
    assert len(sizes) == 3  # it is written in large pieces, not for every page
    content = data.read_bytes()
    assert content[:end] == b"\xd5" * end
    assert not any(content[end:])


def test_small_stores_and_those_that_grow_fast_get_none(data: Path) -> None:
    headroom = Headroom(data)
    for end in (STEP, 2 * STEP):
        headroom.keep(end)
    for end in range(HEADROOM_BYTES, 10 * HEADROOM_BYTES, HEADROOM_BYTES // 2):
        headroom.keep(end)
    headroom.close()
    assert data.stat().st_size == HEADROOM_BYTES


def test_a_disk_without_room_is_no_error_and_is_left_alone_for_a_while(data: Path) -> None:
    headroom = Headroom(data.with_name("missing"))
    for end in (HEADROOM_BYTES, HEADROOM_BYTES + STEP):
        headroom.keep(end)
    data.rename(data.with_name("missing"))
    headroom.keep(HEADROOM_BYTES + 2 * STEP)
    assert data.with_name("missing").stat().st_size == HEADROOM_BYTES
    headroom.keep(2 * HEADROOM_BYTES)
    headroom.keep(2 * HEADROOM_BYTES + STEP)
    headroom.close()
    assert data.with_name("missing").stat().st_size == 3 * HEADROOM_BYTES + STEP


def test_a_store_with_headroom_holds_what_was_written(tmp_path: Path) -> None:
    values = {PLACE.pack(1, number): bytes([number % 251]) * 20_000 for number in range(150)}
    file = tmp_path / directory.DATA_NAME
    for rounds in (list(values)[:100], list(values)[100:]):
        store = LmdbStore(tmp_path, SystemClock())
        for key in rounds:
            store.write([(Space.RECORDS, key, values[key])])
        used = store.facts()["store_bytes"]
        assert isinstance(used, int)
        assert used < file.stat().st_size <= used + HEADROOM_BYTES
        store.close()
    assert not directory.structure_problems(file)
    store = LmdbStore(tmp_path, SystemClock())
    with store.view() as view:
        assert {key: bytes(value) for key, value in view.scan(Space.RECORDS, b"")} == values
    store.close()
