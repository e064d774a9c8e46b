from __future__ import annotations

import pytest

from seamark.clock import ManualClock
from seamark.errors import Corrupt
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Put
from seamark.log.shelf import Values
from seamark.log.store import Space
from seamark.telemetry.metrics import Metrics


async def test_values_move_with_a_commit_and_keep_their_spaces_apart(log: LocalLog) -> None:
    receipt = await log.append(Append(puts=[Put("a", b"k", b"1"), Put("ab", b"k", b"2"), Put("a", b"\xff\xff", b"3")]))
    assert (receipt.stream, receipt.first, receipt.last) == ("", 0, 0)
    assert log.fetch("a", b"k") == b"1"
    assert log.fetch("a", b"missing") is None
    assert list(log.scan("a")) == [(b"k", b"1"), (b"\xff\xff", b"3")]
    assert list(log.scan("a", b"\xff")) == [(b"\xff\xff", b"3")]
    await log.append(Append(puts=[Put("a", b"k", None), Put("a", b"", b"")]))
    assert list(log.scan("a")) == [(b"", b""), (b"\xff\xff", b"3")]


async def test_a_long_scan_may_be_held_across_other_work(log: LocalLog) -> None:
    await log.append(Append(puts=[Put("s", b"%04d" % number, b"v") for number in range(1_000)]))
    scan = log.scan("s")
    first = next(scan)
    await log.append(Append(puts=[Put("s", b"0999", None), Put("s", b"9999", b"new")]))
    keys = [first[0], *(key for key, _ in scan)]
    assert keys == [b"%04d" % number for number in range(999)] + [b"9999"]


def test_acknowledged_values_cover_stored_ones() -> None:
    store = MemoryStore()
    values = Values(store)
    values.show([Put("s", b"%03d" % number, b"old") for number in range(600)])
    store.write(values.pending())
    values.committed()
    values.show([Put("s", b"%03d" % number, None) for number in range(0, 600, 2)])
    values.show([Put("s", b"001", b"new"), Put("s", b"zzz", b"new"), Put("t", b"000", b"other")])
    expected = [(b"001", b"new")] + [(b"%03d" % number, b"old") for number in range(3, 600, 2)] + [(b"zzz", b"new")]
    assert list(values.scan("s")) == expected
    assert (values.fetch("s", b"000"), values.fetch("s", b"001"), values.fetch("s", b"003")) == (None, b"new", b"old")


async def test_a_damaged_value_is_never_served() -> None:
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await log.append(Append(puts=[Put("s", b"k", b"value")]))
    ((place, value),) = store.scan(Space.SHELF, b"")
    store.write([(Space.SHELF, place, bytes(value).replace(b"value", b"valve"))])
    with pytest.raises(Corrupt):
        log.fetch("s", b"k")
    with pytest.raises(Corrupt):
        list(log.scan("s"))
    await log.close()
