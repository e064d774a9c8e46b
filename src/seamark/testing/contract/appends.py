"""Contract: writing. Atomic, dense, at most once per key, and never acknowledged too early."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from seamark import limits
from seamark.clock import NS_PER_MS
from seamark.errors import (
    BadInput,
    HeadConflict,
    QuotaExceeded,
    RecordTooLarge,
    SeamarkError,
    StreamFull,
    StreamNotFound,
)
from seamark.log.protocol import Append, Log, ReadsNow, Receipt
from seamark.log.record import Draft, Geometry, Record
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.log.watermarks import Cursor
from seamark.testing.contract.base import DISK, EVERY_CLASS, FSYNC, ContractBase, draft, drafts, needs, write
from seamark.testing.reading import read_all
from seamark.testing.rig import LogRig

FULL_DRAFT = Draft(
    b'{"a": 1.50,  "b":"\xc3\xa9"}\x00\xff',
    node="node-1",
    tag="tag/1",
    meta=b'{ "m": 1 }',
    subject=("od", "*", "", "x" * 30),
    geometry=Geometry("POLYGON((0 0, 1 0, 1 1, 0 0))", 0.0, -0.0, 1.5, 180.0),
)
BOX = Geometry("", 0.0, 0.0, 1.0, 1.0)
BAD_DRAFTS = {
    "record": Draft(b"x" * (limits.RECORD_BYTES_MAX + 1)),
    "payload_and_meta": Draft(b"x" * limits.RECORD_BYTES_MAX, meta=b"m"),
    "meta": Draft(b"", meta=b"m" * (limits.META_BYTES_MAX + 1)),
    "tag": Draft(b"", tag="t" * (limits.TAG_BYTES_MAX + 1)),
    "tag_in_bytes": Draft(b"", tag="é" * (limits.TAG_BYTES_MAX // 2 + 1)),
    "node": Draft(b"", node="n" * (limits.NODE_BYTES_MAX + 1)),
    "subject_tokens": Draft(b"", subject=("s",) * (limits.SUBJECT_TOKENS_MAX + 1)),
    "subject_bytes": Draft(b"", subject=("s" * (limits.SUBJECT_BYTES_MAX + 1),)),
    "geometry": Draft(b"", geometry=Geometry("g" * (limits.GEOMETRY_BYTES_MAX + 1), 0.0, 0.0, 1.0, 1.0)),
}


class AppendContract(ContractBase):
    """`Log.append` and `Log.writer`."""

    async def test_first_append_creates_the_stream_as_told(self, log: Log) -> None:
        settings = StreamSettings(durability=Durability.DISK, cap_records=7, ttl_ms=5, extra=b"\x00mine")
        receipt = await write(log, "s", "a", "b", create=settings)
        assert (receipt.stream, receipt.first, receipt.last, receipt.head) == ("s", 1, 2, 2)
        assert receipt.created
        assert not receipt.deduped
        again = await write(log, "s", "c", create=StreamSettings(cap_records=1))
        assert (again.first, again.last, again.created, again.instance) == (3, 3, False, receipt.instance)
        state = await log.state("s")
        assert state.settings == settings, "the settings of an existing stream are not touched by an append"
        assert state.instance == receipt.instance != ""

    async def test_append_without_create_needs_the_stream(self, log: Log) -> None:
        with pytest.raises(StreamNotFound) as caught:
            await write(log, "absent", "a", create=None)
        assert caught.value.fields["stream"] == "absent"
        with pytest.raises(StreamNotFound):
            await log.state("absent")
        assert await log.streams() == []

    async def test_every_field_comes_back_byte_for_byte(self, log: Log) -> None:
        odd = [FULL_DRAFT, Draft(b""), Draft(b"x", tag="", node="", meta=b"", subject=()), Draft(b"y", geometry=BOX)]
        receipt = await log.append(Append(stream="s", drafts=odd, create=FSYNC))
        records = (await read_all(log, "s")).records
        assert records == [
            Record(seq, receipt.ts, d.payload, d.node, d.tag, d.meta, d.subject, d.geometry)
            for seq, d in enumerate(odd, start=1)
        ]
        state = await log.state("s")
        assert (state.count, state.bytes) == (4, sum(len(d.payload) + len(d.meta or b"") for d in odd))
        assert state.last_ts == receipt.ts

    async def test_a_batch_is_contiguous_and_has_one_stamp(self, log: Log) -> None:
        receipts = [await write(log, "s", *"abc"), await write(log, "s", "d"), await write(log, "s", *"ef")]
        assert [(r.first, r.last, r.head) for r in receipts] == [(1, 3, 3), (4, 4, 4), (5, 6, 6)]
        records = (await read_all(log, "s")).records
        assert b"".join(r.payload for r in records) == b"abcdef"
        assert [r.ts for r in records] == [receipts[0].ts] * 3 + [receipts[1].ts] + [receipts[2].ts] * 2

    async def test_the_largest_batch_and_record_fit(self, log: Log) -> None:
        many = [Draft(b"%d" % n) for n in range(limits.RECORDS_PER_APPEND_MAX)]
        await log.append(Append(stream="many", drafts=many, create=FSYNC))
        got = await read_all(log, "many", records_max=limits.PAGE_RECORDS_MAX)
        assert [r.payload for r in got.records] == [d.payload for d in many]
        large = Draft(b"x" * (limits.RECORD_BYTES_MAX - 1), meta=b"m", tag="t" * limits.TAG_BYTES_MAX)
        await log.append(Append(stream="large", drafts=[large], create=FSYNC, key="k" * limits.KEY_BYTES_MAX))
        (record,) = (await read_all(log, "large")).records
        assert (record.payload, record.meta, record.tag) == (large.payload, large.meta, large.tag)

    async def test_too_many_records_are_refused(self, log: Log) -> None:
        too_many = [Draft(b"")] * (limits.RECORDS_PER_APPEND_MAX + 1)
        with pytest.raises(BadInput):
            await log.append(Append(stream="s", drafts=too_many, create=FSYNC))

    @pytest.mark.parametrize("what", sorted(BAD_DRAFTS))
    async def test_one_bad_record_refuses_its_whole_batch(self, log: Log, what: str) -> None:
        await write(log, "s", "before")
        with pytest.raises(BadInput) as caught:
            await log.append(Append(stream="s", drafts=[draft("fine"), BAD_DRAFTS[what], draft("fine")], key="k"))
        if what in {"record", "payload_and_meta"}:
            assert isinstance(caught.value, RecordTooLarge)
            assert caught.value.fields["max"] == limits.RECORD_BYTES_MAX
        after = await write(log, "s", "after", key="k")
        assert (after.first, after.deduped) == (2, False), "a refused append takes neither seq nor key"

    async def test_names_and_keys_are_bounded(self, log: Log) -> None:
        longest = "n" * limits.STREAM_NAME_BYTES_MAX
        assert (await write(log, longest, "a")).stream == longest
        with pytest.raises(BadInput):
            await write(log, longest + "n", "a")
        with pytest.raises(BadInput):
            await write(log, "s", "a", key="k" * (limits.KEY_BYTES_MAX + 1))
        assert [state.name for state in await log.streams()] == [longest]

    async def test_expect_head_lets_one_writer_win(self, log: Log) -> None:
        await log.append(Append(stream="s", drafts=drafts("a"), create=FSYNC, expect_head=0))
        with pytest.raises(HeadConflict) as caught:
            await log.append(Append(stream="s", drafts=drafts("b"), expect_head=0))
        assert caught.value.fields == {"stream": "s", "expected": 0, "head": 1}
        with pytest.raises(HeadConflict):
            await log.append(Append(stream="s", drafts=drafts("b"), expect_head=2))
        race = [log.append(Append(stream="s", drafts=drafts(f"r{n}"), expect_head=1)) for n in range(8)]
        results = await asyncio.gather(*race, return_exceptions=True)
        assert Counter(type(result) for result in results) == {Receipt: 1, HeadConflict: 7}
        assert (await log.state("s")).marks.head == 2

    # -- idempotency keys

    async def test_a_repeated_key_answers_with_the_first_receipt(self, log: Log) -> None:
        first = await write(log, "s", "a", "b", key="k")
        await write(log, "s", "c")
        repeat = await log.append(Append(stream="s", drafts=drafts("other"), key="k", expect_head=0))
        assert repeat.deduped
        assert not first.deduped
        assert (repeat.stream, repeat.instance, repeat.first, repeat.last, repeat.head, repeat.ts) == (
            first.stream, first.instance, first.first, first.last, first.head, first.ts,
        )  # fmt: skip
        assert (await log.state("s")).marks.head == 3
        assert (await write(log, "other", "a", key="k")).deduped is False, "keys belong to one stream"

    async def test_concurrent_duplicates_are_written_once(self, log: Log) -> None:
        results = await asyncio.gather(*(write(log, "s", "a", "b", key="k", create=FSYNC) for _ in range(8)))
        assert sorted(r.deduped for r in results) == [False] + [True] * 7
        assert {(r.first, r.last, r.head) for r in results} == {(1, 2, 2)}
        assert (await read_all(log, "s")).seqs == [1, 2]

    async def test_a_refused_append_leaves_its_key_free(self, log: Log) -> None:
        full = StreamSettings(cap_records=2, discard=Discard.REJECT)
        await write(log, "s", "a", "b", create=full, key="k1")
        with pytest.raises(StreamFull):
            await write(log, "s", "c", key="k2")
        assert (await write(log, "s", "a", "b", key="k1")).deduped, "a repeat is answered before there is room"
        await log.configure("s", StreamSettings())
        assert (await write(log, "s", "c", key="k2")).deduped is False

    async def test_a_key_lasts_for_its_window(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log = rig.log
        first = await write(log, "s", "a", key="k", create=StreamSettings(dedupe_window_ms=1_000))
        rig.clock.advance(1.0)
        assert (await write(log, "s", "a", key="k")).first == first.first, "at the window's end it still holds"
        rig.clock.advance(0.001)
        second = await write(log, "s", "a", key="k")
        assert (second.first, second.deduped) == (2, False)
        assert (await write(log, "s", "a", key="k")).first == 2

    # -- order and acknowledgement

    @EVERY_CLASS
    async def test_an_acknowledged_record_can_be_read(self, log: Log, durability: Durability) -> None:
        for n in range(5):
            receipt = await write(log, "s", f"{n}", create=StreamSettings(durability=durability))
            page = await log.read("s", Cursor(n))
            assert [r.payload for r in page.records] == [b"%d" % n]
            assert page.caught_up
            assert (receipt.sync_ms == 0.0) or (durability is Durability.FSYNC and receipt.sync_ms > 0)
            assert receipt.write_ms >= 0

    @EVERY_CLASS
    async def test_many_writers_get_dense_seqs(self, log: Log, durability: Durability) -> None:
        settings = StreamSettings(durability=durability)

        async def writer(name: str) -> list[Receipt]:
            return [
                await write(log, "s", *(f"{name}{n}.{i}" for i in range(n % 4 + 1)), create=settings) for n in range(12)
            ]

        ledgers = await asyncio.gather(*(writer(name) for name in "abcdefgh"))
        receipts = sorted((r for ledger in ledgers for r in ledger), key=lambda r: r.first)
        assert sum(r.created for r in receipts) == 1
        ends = [0] + [r.last for r in receipts]
        assert [r.first - 1 for r in receipts] == ends[:-1]
        records = (await read_all(log, "s", records_max=7)).records
        assert [r.seq for r in records] == list(range(1, ends[-1] + 1))
        for name, ledger in zip("abcdefgh", ledgers, strict=True):
            own = [r.payload.decode() for r in records if r.payload.startswith(name.encode())]
            assert own == [f"{name}{n}.{i}" for n in range(12) for i in range(n % 4 + 1)]
            assert [r.first for r in ledger] == sorted(r.first for r in ledger)

    async def test_an_fsync_record_is_invisible_before_its_acknowledgement(self, rig: LogRig) -> None:
        log = rig.log
        await log.configure("s", FSYNC)
        needs(rig.shares_turn and isinstance(log, ReadsNow), "shares_turn and ReadsNow")
        assert isinstance(log, ReadsNow)
        acknowledged: list[Receipt | SeamarkError] = []
        for n in range(20):
            log.writer.submit(Append(stream="s", drafts=drafts(f"{n}", "more")), acknowledged.append)
            while True:
                page = log.read_now("s", Cursor())
                assert all(isinstance(answer, Receipt) for answer in acknowledged)
                assert page.marks.head == 2 * len(acknowledged), "seen before it was acknowledged"
                assert page.marks.head == page.marks.synced == len(page.records)
                if len(acknowledged) > n:
                    break
                await asyncio.sleep(0)

    async def test_fsync_reads_never_run_ahead_of_the_sync(self, log: Log) -> None:
        await log.configure("s", FSYNC)
        writes = [asyncio.ensure_future(write(log, "s", f"{n}")) for n in range(50)]
        while not all(done.done() for done in writes):
            page = await log.read("s", Cursor())
            assert page.marks.head == page.marks.synced
            await asyncio.sleep(0)
        assert (await read_all(log, "s", synced=True)).seqs == list(range(1, 51))

    async def test_done_is_called_once_also_for_failures(self, log: Log) -> None:
        answers: dict[str, list[Receipt | SeamarkError]] = {"good": [], "bad": [], "absent": []}
        everything = asyncio.Event()

        def done(which: str, answer: Receipt | SeamarkError) -> None:
            answers[which].append(answer)
            if all(answers.values()):
                everything.set()

        log.writer.submit(Append(stream="s", drafts=drafts("a"), create=FSYNC), lambda a: done("good", a))
        log.writer.submit(Append(stream="s", drafts=[BAD_DRAFTS["tag"]], create=FSYNC), lambda a: done("bad", a))
        log.writer.submit(Append(stream="t", drafts=drafts("a")), lambda a: done("absent", a))
        await asyncio.wait_for(everything.wait(), 20)
        await write(log, "s", "b")
        assert [len(got) for got in answers.values()] == [1, 1, 1]
        assert isinstance(answers["good"][0], Receipt)
        assert isinstance(answers["bad"][0], BadInput)
        assert isinstance(answers["absent"][0], StreamNotFound)

    async def test_a_closed_log_takes_nothing(self, rig: LogRig) -> None:
        log = rig.log
        await write(log, "s", "a")
        await rig.close()
        with pytest.raises(SeamarkError):
            await write(log, "s", "b")

    # -- stamps and quota

    async def test_time_never_goes_back_within_a_stream(self, rig: LogRig) -> None:
        needs(rig.follows_clock, "follows_clock")
        log, clock = rig.log, rig.clock
        clock.advance(10)
        first = await write(log, "s", "a")
        assert first.ts == clock.now_ns()
        clock.step(-3_600)
        second = await write(log, "s", "b")
        assert second.ts == first.ts
        assert (await write(log, "fresh", "a")).ts == clock.now_ns()
        clock.step(3_600.5)
        assert (await write(log, "s", "c")).ts == first.ts + 500 * NS_PER_MS
        assert len((await read_all(log, "s")).records) == 3

    async def test_the_quota_bounds_live_bytes_of_all_streams(self, rig: LogRig) -> None:
        needs(rig.has_quota, "has_quota")
        await rig.close()
        log = await rig.open(quota_bytes=100)
        await write(log, "a", "x" * 60)
        await write(log, "b", "x" * 40, create=DISK)
        with pytest.raises(QuotaExceeded) as caught:
            await write(log, "b", "x", key="k")
        assert caught.value.fields["max"] == 100
        assert (await log.state("b")).marks.head == 1
        await log.drop("a")
        assert (await write(log, "b", "x" * 60, key="k")).first == 2
