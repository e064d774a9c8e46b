"""Contract: reading. In order, each once, in bounded pages, with every loss stated."""

from __future__ import annotations

import pytest

from seamark.errors import StreamNotFound
from seamark.log.protocol import Append, Log, ReadsNow, Selector
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.contract.base import DISK, EVERY_CLASS, FSYNC, ContractBase, draft, needs, settled, write
from seamark.testing.reading import check_page, read_all
from seamark.testing.rig import LogRig


class ReadContract(ContractBase):
    """`Log.read`, `Log.seq_at` and the capability ReadsNow."""

    async def test_a_missing_stream_cannot_be_read(self, log: Log) -> None:
        with pytest.raises(StreamNotFound) as caught:
            await log.read("absent", Cursor())
        assert caught.value.fields["stream"] == "absent"
        with pytest.raises(StreamNotFound):
            await log.seq_at("absent", 0)

    async def test_an_empty_stream_is_caught_up(self, log: Log) -> None:
        instance = (await log.configure("s", FSYNC)).state.instance
        page = await log.read("s", Cursor())
        assert (page.records, page.gap, page.resume, page.scanned) == ([], None, 0, 0)
        assert page.cursor == Cursor(0, instance)
        assert page.caught_up

    async def test_reading_resumes_after_every_cursor(self, log: Log) -> None:
        receipt = await write(log, "s", *"abcdefghij")
        for seq in range(11):
            for instance in (None, receipt.instance):
                page = await log.read("s", Cursor(seq, instance))
                assert [r.seq for r in page.records] == list(range(seq + 1, 11))
                assert page.gap is None
                assert page.cursor == Cursor(10, receipt.instance)

    @pytest.mark.parametrize("records_max", [1, 2, 3, 10, 11])
    async def test_pages_end_at_records_max(self, log: Log, records_max: int) -> None:
        await write(log, "s", *"abcd")
        for text in "efghij":
            await write(log, "s", text)
        page = await log.read("s", Cursor(), records_max=records_max)
        assert len(page.records) == min(records_max, 10)
        assert page.caught_up == (records_max >= 10)
        assert (await read_all(log, "s", records_max=records_max)).seqs == list(range(1, 11))

    async def test_pages_end_at_the_byte_budget(self, log: Log) -> None:
        await log.append(Append(stream="s", drafts=[Draft(b"x" * 100)] * 10, create=FSYNC))
        for bytes_max, expected in ((1, 1), (100, 1), (199, 1), (200, 2), (999, 9), (1_000, 10)):
            page = await log.read("s", Cursor(), bytes_max=bytes_max)
            assert len(page.records) == expected
            assert page.cursor.seq == expected
        reading = await read_all(log, "s", bytes_max=250)
        assert (reading.seqs, reading.pages) == (list(range(1, 11)), 5)

    async def test_rejected_records_are_examined_and_passed(self, log: Log) -> None:
        await log.append(Append(stream="s", drafts=[Draft(b"%d" % n) for n in range(1_000)], create=FSYNC))
        page = await log.read("s", Cursor(), records_max=3, accept=lambda r: r.seq % 300 == 0)
        assert [r.seq for r in page.records] == [300, 600, 900]
        assert page.cursor.seq >= 900
        assert page.scanned >= 900
        nothing = await log.read("s", Cursor(5), records_max=3, accept=lambda _: False)
        assert (nothing.records, nothing.cursor.seq, nothing.caught_up, nothing.gap) == ([], 1_000, True, None)
        rejected_bytes = await log.read("s", Cursor(), bytes_max=1, accept=lambda r: r.seq == 1_000)
        assert [r.seq for r in rejected_bytes.records] == [1_000], "only what is delivered counts against the budget"

    async def test_own_records_can_be_filtered_silently(self, log: Log) -> None:
        """Worked example 11 of spec/topics.md section 7."""
        await log.append(Append(stream="s", drafts=[draft(t, node="me") for t in "abc"], create=FSYNC))
        page = await log.read("s", Cursor(), accept=lambda r: r.node != "me")
        assert (page.records, page.cursor.seq, page.caught_up, page.gap) == ([], 3, True, None)

    async def test_a_cursor_beyond_the_head_starts_again(self, log: Log) -> None:
        receipt = await write(log, "s", "a", "b", "c")
        page = await log.read("s", Cursor(4))
        assert page.gap == Gap(1, 0, Loss.RECREATED)
        assert page.resume == 0
        assert [r.seq for r in page.records] == [1, 2, 3]
        assert page.cursor == Cursor(3, receipt.instance)

    async def test_a_cursor_of_another_instance_starts_again(self, log: Log) -> None:
        await write(log, "s", *"abcde", create=StreamSettings(cap_records=3))
        await log.delete("s", Selector(before=5))
        page = await log.read("s", Cursor(4, "another"))
        assert page.gap == Gap(1, 4, Loss.RECREATED)
        assert [r.seq for r in page.records] == [5]
        assert (await read_all(log, "s", Cursor(2**63 - 1))).seqs == [5]

    @EVERY_CLASS
    async def test_synced_reads_stop_at_the_durable_mark(self, log: Log, durability: str) -> None:
        settings = StreamSettings(durability=durability)  # type: ignore[arg-type]
        for n in range(5):
            await write(log, "s", f"{n}", create=settings)
            page = await log.read("s", Cursor(), synced=True)
            check_page(page, Cursor(), records_max=256, bytes_max=2**20)
            assert all(r.seq <= page.marks.synced for r in page.records)
            assert page.cursor.seq <= page.marks.synced
        await settled(log, "s")
        assert (await read_all(log, "s", synced=True)).seqs == [1, 2, 3, 4, 5]

    async def test_large_histories_read_the_same_at_every_page_size(self, log: Log) -> None:
        payloads = [b"%d" % n * (n % 50) for n in range(3_000)]
        for start in range(0, 3_000, 300):
            await log.append(Append(stream="s", drafts=[Draft(p) for p in payloads[start : start + 300]], create=DISK))
        for records_max, bytes_max in ((7, 2**20), (256, 2**20), (10_000, 8 * 2**20), (10_000, 4_096)):
            records = (await read_all(log, "s", records_max=records_max, bytes_max=bytes_max)).records
            assert [r.payload for r in records] == payloads

    async def test_seq_at_finds_the_first_record_from_a_time_on(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log = rig.log
        assert (await log.configure("s", FSYNC)).created
        assert await log.seq_at("s", 0) == 1
        stamps = []
        for n in range(20):
            receipt = await write(log, "s", *("x" * (n % 3 + 1)))
            stamps += [receipt.ts] * (n % 3 + 1)
            rig.clock.advance(0.25 if n % 4 else 0.0)
        for ts in sorted({t + d for t in stamps for d in (-1, 0, 1)}):
            expected = next((seq for seq, at in enumerate(stamps, start=1) if at >= ts), len(stamps) + 1)
            assert await log.seq_at("s", ts) == expected
        assert await log.seq_at("s", 0) == 1
        assert await log.seq_at("s", 2**62) == len(stamps) + 1

    async def test_seq_at_skips_what_is_gone(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log = rig.log
        for text in "abcdef":
            await write(log, "s", text)
            rig.clock.advance(1)
        first = (await log.read("s", Cursor(1), records_max=1)).records[0].ts
        await log.delete("s", Selector(seqs=(2, 3)))
        seq = await log.seq_at("s", first)
        assert [r.seq for r in (await read_all(log, "s", Cursor(seq - 1))).records] == [4, 5, 6]

    async def test_reads_that_never_wait_mean_the_same(self, log: Log) -> None:
        needs(isinstance(log, ReadsNow), "ReadsNow")
        assert isinstance(log, ReadsNow)
        await write(log, "s", *"abcdef", create=StreamSettings(cap_records=4))
        for seq in range(8):
            cursor = Cursor(seq)
            assert log.read_now("s", cursor, records_max=2) == await log.read("s", cursor, records_max=2)
        assert log.read_now("s", Cursor(), synced=True, accept=lambda r: r.seq > 4) == await log.read(
            "s", Cursor(), synced=True, accept=lambda r: r.seq > 4
        )
        assert log.state_now("s") == await log.state("s")
        with pytest.raises(StreamNotFound):
            log.read_now("absent", Cursor())
        with pytest.raises(StreamNotFound):
            log.state_now("absent")
