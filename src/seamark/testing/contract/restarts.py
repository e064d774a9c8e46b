"""Contract: what is there after a restart, and after a crash. For engines that keep records."""

from __future__ import annotations

from seamark.log.protocol import Append, Log, Put, Selector, Shelf
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.contract.base import DISK, FSYNC, ContractBase, drafts, needs, settled, write
from seamark.testing.reading import read_all
from seamark.testing.rig import LogRig

EPHEMERAL = StreamSettings(durability=Durability.EPHEMERAL)
MEMORY = StreamSettings(durability=Durability.MEMORY)


async def everything(log: Log) -> dict[str, object]:
    """All that can be known of a log through reading."""
    return {state.name: (state, (await read_all(log, state.name)).records) for state in await log.streams()}


class RestartContract(ContractBase):
    """`Log.close`, and the promises G1, G2 and G6."""

    async def test_close_commits_what_was_accepted(self, rig: LogRig) -> None:
        needs(rig.keeps_records, "keeps_records")
        for name, settings in (("fsync", FSYNC), ("disk", DISK), ("memory", MEMORY)):
            await write(rig.log, name, "a", "b", create=settings)
            await write(rig.log, name, "c")
        for state in await rig.log.streams():
            assert state.marks.head == 3
        log = await rig.reopen()
        for name in ("fsync", "disk", "memory"):
            reading = await read_all(log, name)
            assert (reading.gaps, [r.payload for r in reading.records]) == ([], [b"a", b"b", b"c"])
            marks = (await log.state(name)).marks
            assert marks.head == marks.synced == 3
            assert (await write(log, name, "d")).first == 4

    async def test_a_clean_restart_changes_nothing(self, rig: LogRig) -> None:
        needs(rig.keeps_records, "keeps_records")
        log = rig.log
        await write(log, "capped", *"abcdef", create=StreamSettings(cap_records=2, extra=b"x"))
        await write(log, "deleted", *"abcdef", create=DISK)
        await log.delete("deleted", Selector(seqs=(2, 6)))
        for n in range(5):
            latest = StreamSettings(latest_per_subject=1)
            await log.append(Append(stream="latest", drafts=[Draft(b"%d" % n, subject=(str(n % 2),))], create=latest))
        await log.configure("empty", MEMORY)
        await log.configure("capped", FSYNC)
        for name in ("capped", "deleted", "latest"):
            await settled(log, name)
        before = await everything(log)
        for _ in range(2):
            log = await rig.reopen()
            assert await everything(log) == before

    async def test_keys_outlive_the_process(self, rig: LogRig) -> None:
        needs(rig.keeps_records, "keeps_records")
        first = await write(rig.log, "s", "a", "b", key="k")
        await write(rig.log, "s", "c")
        log = await rig.reopen()
        repeat = await write(log, "s", "a", "b", key="k")
        assert (repeat.deduped, repeat.first, repeat.last, repeat.head) == (True, 1, 2, 2)
        assert (repeat.instance, repeat.ts) == (first.instance, first.ts)

    async def test_a_dropped_stream_stays_dropped(self, rig: LogRig) -> None:
        needs(rig.keeps_records, "keeps_records")
        first = await write(rig.log, "s", *"abc", key="k")
        await write(rig.log, "gone", *"abc")
        await rig.log.drop("s")
        await rig.log.drop("gone")
        await write(rig.log, "s", "new")
        log = await rig.reopen()
        assert [state.name for state in await log.streams()] == ["s"]
        reading = await read_all(log, "s", Cursor(3, first.instance))
        assert (reading.gaps, [r.payload for r in reading.records]) == ([Gap(1, 0, Loss.RECREATED)], [b"new"])

    async def test_an_ephemeral_stream_says_that_it_was_lost(self, rig: LogRig) -> None:
        needs(rig.keeps_records, "keeps_records")
        receipt = await write(rig.log, "s", *"abc", create=EPHEMERAL)
        log = await rig.reopen()
        state = await log.state("s")
        assert (state.settings, state.instance, state.count) == (EPHEMERAL, receipt.instance, 0)
        head = state.marks.head
        assert head >= 3
        reading = await read_all(log, "s", Cursor(1, receipt.instance))
        assert (reading.gaps, reading.records) == ([Gap(2, head, Loss.CRASH)], [])
        assert (await write(log, "s", "d")).first == head + 1
        assert (await read_all(log, "s", Cursor(head))).seqs == [head + 1]

    # -- after a crash

    async def test_what_was_acknowledged_as_durable_survives_a_crash(self, rig: LogRig) -> None:
        needs(rig.survives_crash, "survives_crash")
        log = rig.log
        puts = [Put("p", b"k", b"v")]
        await log.append(Append(stream="s", drafts=drafts("a", "b"), create=FSYNC, key="k", puts=puts))
        await write(log, "capped", *"abcd", create=StreamSettings(cap_records=2))
        await write(log, "deleted", *"abcd")
        await log.delete("deleted", Selector(seqs=(1, 3)))
        await write(log, "dropped", "a")
        await log.drop("dropped")
        await log.configure("configured", StreamSettings(cap_records=9))
        before = await everything(log)
        log = await rig.crash()
        assert await everything(log) == before
        assert isinstance(log, Shelf)
        assert log.fetch("p", b"k") == b"v"
        assert (await write(log, "s", "a", "b", key="k")).deduped
        assert (await write(log, "s", "c")).first == 3, "a stream of class fsync reserves nothing"

    async def test_a_crash_loses_only_an_unsynced_tail_and_says_so(self, rig: LogRig) -> None:
        needs(rig.survives_crash, "survives_crash")
        for name, settings in (("disk", DISK), ("memory", MEMORY)):
            log = rig.log
            await write(log, name, *"abc", create=settings)
            await settled(log, name)
            acknowledged = [await write(log, name, f"{n}", f"{n}+") for n in range(3)]
            log = await rig.crash()
            state = await log.state(name)
            marks = state.marks
            assert marks.head >= acknowledged[-1].head, "an acknowledged seq is never given out again"
            reading = await read_all(log, name)
            kept = reading.seqs
            assert kept == list(range(1, len(kept) + 1))
            assert len(kept) >= 3
            assert len(kept) % 2 == 1, "a batch is there as a whole or not at all"
            assert reading.gaps == ([Gap(len(kept) + 1, marks.head, Loss.CRASH)] if marks.head > len(kept) else [])
            assert state.count == len(kept)
            assert (await write(log, name, "next")).first == marks.head + 1
            assert (await read_all(log, name, Cursor(marks.head))).seqs == [marks.head + 1]

    async def test_a_crash_gap_is_told_from_every_cursor(self, rig: LogRig) -> None:
        needs(rig.survives_crash, "survives_crash")
        await write(rig.log, "s", *"abc", create=DISK)
        await settled(rig.log, "s")
        await write(rig.log, "s", "d")
        log = await rig.crash()
        head = (await log.state("s")).marks.head
        await write(log, "s", *"xyz")
        full = await read_all(log, "s")
        assert len(full.gaps) == 1, "class disk reserves ahead, so a crash always leaves a range that was never used"
        (gap,) = full.gaps
        assert (gap.last, gap.loss) == (head, Loss.CRASH)
        for seq in range(head + 4):
            for records_max in (1, 256):
                reading = await read_all(log, "s", Cursor(seq), records_max=records_max)
                assert reading.seqs == [s for s in full.seqs if s > seq]
                expected = [Gap(max(gap.first, seq + 1), gap.last, Loss.CRASH)] if seq < gap.last else []
                assert reading.gaps == expected
        log = await rig.reopen()
        assert (await read_all(log, "s")).gaps == full.gaps

    async def test_a_loss_that_was_told_stays_lost_after_a_crash(self, rig: LogRig) -> None:
        needs(rig.survives_crash and rig.follows_clock, "survives_crash and follows_clock")
        log = rig.log
        for name, settings in (("fsync", FSYNC), ("disk", DISK)):
            await write(log, name, *"abc", create=settings)
            await log.configure(name, StreamSettings(durability=settings.durability, ttl_ms=1_000))
        rig.clock.advance(2)
        for name in ("fsync", "disk"):
            assert (await read_all(log, name)).gaps == [Gap(1, 3, Loss.TTL)]
        rig.clock.step(-2)
        log = await rig.crash()
        for name in ("fsync", "disk"):
            reading = await read_all(log, name)
            assert reading.records == []
            assert (reading.gaps[0].first, (await log.state(name)).marks.evict_floor >= 4) == (1, True)

    async def test_crashing_again_and_again_repeats_no_seq(self, rig: LogRig) -> None:
        needs(rig.survives_crash, "survives_crash")
        given: set[int] = set()
        for turn in range(4):
            for n in range(3):
                receipt = await write(rig.log, "s", f"{turn}.{n}", create=DISK)
                assert receipt.first not in given
                given.add(receipt.first)
            await rig.crash()
        reading = await read_all(rig.log, "s")
        lost = {seq for gap in reading.gaps for seq in range(gap.first, gap.last + 1)}
        assert given <= lost | set(reading.seqs)
        assert not lost & set(reading.seqs)
