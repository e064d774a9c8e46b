"""Contract: losses that happened before the records came here, declared in their place, with what moves beside them."""

from __future__ import annotations

import pytest

from seamark import limits
from seamark.errors import BadInput, HeadConflict, StreamNotFound
from seamark.log.protocol import Append, Declares, Log, News, Put, Shelf
from seamark.log.record import Draft
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.contract.base import EVERY_CLASS, FSYNC, ContractBase, eventually, needs, settled, write
from seamark.testing.reading import read_all
from seamark.testing.rig import LogRig


def _declares(log: Log) -> Declares:
    needs(isinstance(log, Declares), "the capability Declares")
    assert isinstance(log, Declares)
    return log


def _value(log: Log, key: bytes) -> bytes | None:
    assert isinstance(log, Shelf)
    return log.fetch("p", key)


class LossContract(ContractBase):
    """The capability Declares, and `Append.stamp_bytes`, which a derived stream needs as well."""

    @EVERY_CLASS
    async def test_a_declared_loss_lies_between_the_records(self, log: Log, durability: Durability) -> None:
        declares = _declares(log)
        await write(log, "s", "a", "b", create=StreamSettings(durability=durability))
        state = await declares.lose("s", 5, Loss.SOURCE)
        assert (state.marks.head, state.marks.evict_floor, state.count) == (5, 1, 2)
        assert (await write(log, "s", "c")).first == 6
        await settled(log, "s")
        reading = await read_all(log, "s")
        assert (reading.gaps, reading.seqs) == ([Gap(3, 5, Loss.SOURCE)], [1, 2, 6])
        inside = await read_all(log, "s", Cursor(4))
        assert (inside.gaps, inside.seqs) == ([Gap(5, 5, Loss.SOURCE)], [6])

    async def test_a_loss_before_the_first_record_is_a_loss_at_the_front(self, log: Log) -> None:
        declares = _declares(log)
        await log.configure("s", FSYNC)
        state = await declares.lose("s", 3, Loss.SOURCE)
        assert (state.marks.head, state.marks.evict_floor, state.marks.earliest) == (3, 4, 4)
        assert (await read_all(log, "s")).gaps == [Gap(1, 3, Loss.SOURCE)]

    async def test_only_what_was_not_given_out_can_be_declared_lost(self, log: Log) -> None:
        declares = _declares(log)
        await write(log, "s", "a", "b")
        for upto in (0, 1, 2):
            with pytest.raises(BadInput):
                await declares.lose("s", upto, Loss.SOURCE)
        with pytest.raises(StreamNotFound):
            await declares.lose("absent", 2, Loss.SOURCE)
        with pytest.raises(HeadConflict) as caught:
            await declares.lose("s", 9, Loss.SOURCE, expect_head=1)
        assert (caught.value.fields["expected"], caught.value.fields["head"]) == (1, 2)
        assert (await read_all(log, "s")).gaps == []
        assert (await declares.lose("s", 9, Loss.SOURCE, expect_head=2)).marks.head == 9

    async def test_a_full_stream_that_rejects_takes_a_loss(self, log: Log) -> None:
        declares = _declares(log)
        await write(log, "s", "a", create=StreamSettings(cap_records=1, discard=Discard.REJECT))
        assert (await declares.lose("s", 4, Loss.SOURCE)).count == 1

    async def test_values_move_with_a_declared_loss_or_stay_with_it(self, rig: LogRig) -> None:
        log = rig.log
        declares = _declares(log)
        needs(rig.has_shelf, "has_shelf")
        await write(log, "s", "a")
        await declares.lose("s", 3, Loss.SOURCE, expect_head=1, puts=[Put("p", b"at", b"1"), Put("p", b"more", b"x")])
        assert (_value(log, b"at"), _value(log, b"more")) == (b"1", b"x")
        with pytest.raises(HeadConflict):
            await declares.lose("s", 9, Loss.SOURCE, expect_head=1, puts=[Put("p", b"at", b"2")])
        with pytest.raises(BadInput):
            await declares.lose("s", 3, Loss.SOURCE, puts=[Put("p", b"at", b"3")])
        with pytest.raises(BadInput):
            await declares.lose("s", 9, Loss.SOURCE, puts=[Put("p", b"k" * 401, b"4")])
        assert ((await log.state("s")).marks.head, _value(log, b"at")) == (3, b"1")

    @EVERY_CLASS
    async def test_a_loss_and_its_values_outlive_a_crash_together(self, rig: LogRig, durability: Durability) -> None:
        declares = _declares(rig.log)
        needs(rig.survives_crash and rig.has_shelf, "survives_crash and has_shelf")
        await write(rig.log, "s", "a", create=StreamSettings(durability=durability))
        await declares.lose("s", 3, Loss.SOURCE, puts=[Put("p", b"at", b"1")])
        log = await rig.crash()
        assert _value(log, b"at") == b"1"
        reading = await read_all(log, "s", Cursor(1))
        assert reading.gaps, "what was declared is still told"
        assert (reading.gaps[0].first, reading.seqs) == (2, [])
        assert (await log.state("s")).marks.head >= 3

    async def test_a_declared_loss_is_news(self, log: Log) -> None:
        declares = _declares(log)
        await write(log, "s", "a")
        heard: list[News] = []
        log.wakeup.subscribe(heard.extend)
        await declares.lose("s", 4, Loss.SOURCE)

        async def told() -> bool:
            return any(news.stream == "s" and news.marks.head == 4 for news in heard)

        await eventually(told)
        assert [news.records for news in heard if news.records] == []

    async def test_a_stamp_has_room_beyond_what_a_client_may_bring(self, log: Log) -> None:
        stamp = limits.STAMP_BYTES_MAX
        largest = Draft(b"x" * (limits.RECORD_BYTES_MAX - limits.META_BYTES_MAX), meta=b"m" * limits.META_BYTES_MAX)
        stamped = Draft(largest.payload, meta=b"m" * (limits.META_BYTES_MAX + stamp))
        with pytest.raises(BadInput):
            await log.append(Append(stream="s", drafts=[stamped], create=FSYNC))
        with pytest.raises(BadInput):
            await log.append(Append(stream="s", drafts=[stamped], create=FSYNC, stamp_bytes=stamp - 1))
        with pytest.raises(BadInput):
            await log.append(Append(stream="s", drafts=[stamped], create=FSYNC, stamp_bytes=stamp + 1))
        await log.append(Append(stream="s", drafts=[stamped], create=FSYNC, stamp_bytes=stamp))
        (record,) = (await read_all(log, "s")).records
        assert (record.payload, record.meta) == (stamped.payload, stamped.meta)
