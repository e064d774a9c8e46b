"""Contract: removal on request. Silent, permanent, exact, and never of anything that came later."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from seamark.errors import BadInput, StreamNotFound
from seamark.log.protocol import Append, Log, Selector, TagMatch
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.testing.contract.base import EVERY_CLASS, FSYNC, ContractBase, draft, needs, write
from seamark.testing.model import StreamModel
from seamark.testing.reading import read_all
from seamark.testing.rig import LogRig

RECORDS = [
    Draft(b"%d" % n, tag=(None, "a", "ab", "b", "é")[n % 5], subject=(None, ("x",), ("x", "y"))[n % 3])
    for n in range(30)
]
PARTS: dict[str, list[object]] = {
    "before": [1, 12, 31, 10**6],
    "tag": [TagMatch("a"), TagMatch("a", prefix=True), TagMatch("", prefix=True), TagMatch("é"), TagMatch("none")],
    "seqs": [(), (1, 7, 8, 30), (99, 0, 5, 5), tuple(range(1, 31))],
    "subject": [("x",), ("x", "y"), ("none",)],
}


def _selectors() -> list[Selector]:
    """Every combination of parts, with one or two values of each."""
    chosen = []
    for parts in itertools.product([False, True], repeat=len(PARTS)):
        names = [name for name, used in zip(PARTS, parts, strict=True) if used]
        for turn in range(5 if len(names) < 3 else 3):
            fields = {name: PARTS[name][(turn + at) % len(PARTS[name])] for at, name in enumerate(names)}
            chosen.append(Selector(**fields))  # type: ignore[arg-type]
    return [selector for selector in chosen if selector != Selector()]


class DeletionContract(ContractBase):
    """`Log.delete`."""

    @pytest.mark.parametrize(
        "settings", [FSYNC, StreamSettings(sparse=True), StreamSettings(latest_per_subject=50)], ids=("plain", "sparse", "subject")
    )  # fmt: skip
    async def test_every_selector_removes_exactly_what_it_says(self, log: Log, settings: StreamSettings) -> None:
        for number, selector in enumerate(_selectors()):
            name = f"s{number}"
            model = StreamModel(settings)
            receipt = await log.append(Append(stream=name, drafts=RECORDS[:17], create=settings))
            model.append(RECORDS[:17], receipt.ts)
            receipt = await log.append(Append(stream=name, drafts=RECORDS[17:]))
            model.append(RECORDS[17:], receipt.ts)
            deleted = await log.delete(name, selector)
            assert deleted.count == model.delete(selector, receipt.ts), selector
            assert (deleted.state.count, deleted.state.bytes) == (model.count, model.bytes)
            assert deleted.state.marks == model.marks(synced=30)
            assert await log.state(name) == deleted.state
            reading = await read_all(log, name, records_max=4)
            assert (reading.records, reading.gaps) == (model.records, [])
            assert reading.cursor.seq == 30

    async def test_nothing_selected_is_refused(self, log: Log) -> None:
        await write(log, "s", "a")
        with pytest.raises(BadInput):
            await log.delete("s", Selector())
        with pytest.raises(StreamNotFound):
            await log.delete("absent", Selector(before=5))
        assert (await log.state("s")).count == 1

    async def test_deleting_again_finds_nothing(self, log: Log) -> None:
        await write(log, "s", *"abc")
        assert (await log.delete("s", Selector(seqs=(2,)))).count == 1
        assert (await log.delete("s", Selector(seqs=(2,)))).count == 0
        assert (await log.delete("s", Selector(before=10**9))).count == 2
        assert (await log.delete("s", Selector(before=10**9))).count == 0

    async def test_later_records_are_never_touched(self, log: Log) -> None:
        await write(log, "s", *"abc")
        assert (await log.delete("s", Selector(before=100))).count == 3
        receipt = await write(log, "s", "d")
        assert receipt.first == 4
        assert (await read_all(log, "s")).seqs == [4]

    async def test_records_written_during_a_deletion_stay(self, log: Log) -> None:
        await log.append(Append(stream="s", drafts=[draft("x", tag="t")] * 10_000, create=FSYNC))
        await log.append(Append(stream="s", drafts=[draft("x", tag="t")] * 10_000))
        deletion = asyncio.ensure_future(log.delete("s", Selector(tag=TagMatch("t"))))
        later = []
        while not deletion.done():
            later += [(await log.append(Append(stream="s", drafts=[draft("y", tag="t")]))).first]
            await asyncio.sleep(0)
        gone = 20_000 + later[-1] - 20_000 - len((await read_all(log, "s")).seqs)
        assert (await deletion).count == gone >= 20_000
        left = (await read_all(log, "s")).seqs
        assert left == later[len(later) - len(left) :], "what came after the bound stays, without a hole"

    async def test_a_removed_front_moves_earliest_and_no_floor(self, log: Log) -> None:
        await write(log, "s", *"abcdef")
        earliest = []
        for selector in (Selector(seqs=(3,)), Selector(seqs=(1,)), Selector(seqs=(2,)), Selector(before=7)):
            marks = (await log.delete("s", selector)).state.marks
            earliest.append(marks.earliest)
            assert marks.evict_floor == 1
        assert earliest == [1, 2, 4, 7]
        for seq in range(7):
            page = await log.read("s", Cursor(seq))
            assert (page.records, page.gap, page.cursor.seq) == ([], None, 6)

    @EVERY_CLASS
    async def test_seqs_are_not_used_again(self, log: Log, durability: str) -> None:
        settings = StreamSettings(durability=durability)  # type: ignore[arg-type]
        await write(log, "s", "a", "b", create=settings)
        await log.delete("s", Selector(before=3))
        assert (await write(log, "s", "c")).first == 3
        await log.delete("s", Selector(seqs=(3,)))
        assert (await write(log, "s", "d")).first == 4
        assert (await read_all(log, "s")).seqs == [4]

    async def test_a_cursor_inside_a_deletion_goes_on(self, log: Log) -> None:
        await write(log, "s", *"abcdefgh")
        await log.delete("s", Selector(seqs=(3, 4, 5)))
        for seq in (2, 3, 4, 5):
            page = await log.read("s", Cursor(seq), records_max=1)
            assert (page.gap, page.resume, [r.seq for r in page.records]) == (None, seq, [6])

    async def test_deletions_outlive_the_process(self, rig: LogRig) -> None:
        needs(rig.keeps_records, "keeps_records")
        log = rig.log
        await log.append(Append(stream="s", drafts=RECORDS, create=FSYNC))
        await log.delete("s", Selector(tag=TagMatch("a", prefix=True)))
        before = (await log.state("s"), (await read_all(log, "s")).records)
        log = await rig.reopen()
        assert (await log.state("s"), (await read_all(log, "s")).records) == before
        assert len(before[1]) == 18
