from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.clock import ManualClock
from seamark.errors import BadInput, StreamNotFound
from seamark.log.engines.memory import MemoryStore
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Selector, TagMatch
from seamark.log.record import Draft, Record
from seamark.log.settings import StreamSettings
from seamark.log.store import Space
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

tags = st.sampled_from([None, "a", "ab", "b", ""])
subjects = st.sampled_from([None, ("s",), ("s", "t")])
drafts = st.lists(st.builds(Draft, st.binary(max_size=3), tag=tags, subject=subjects), min_size=1, max_size=12)
selectors = st.builds(
    Selector,
    before=st.none() | st.integers(0, 40),
    tag=st.none() | st.builds(TagMatch, st.sampled_from(["a", "b", ""]), st.booleans()),
    seqs=st.none() | st.lists(st.integers(-1, 40), max_size=8).map(tuple),
    subject=subjects,
)


def chosen(record: Record, selector: Selector) -> bool:
    tag = selector.tag
    return (
        (selector.before is None or record.seq < selector.before)
        and (
            tag is None
            or (record.tag is not None and (record.tag.startswith(tag.text) if tag.prefix else record.tag == tag.text))
        )
        and (selector.seqs is None or record.seq in selector.seqs)
        and (selector.subject is None or record.subject == selector.subject)
    )


@given(st.lists(drafts, min_size=1, max_size=4), st.lists(selectors, min_size=1, max_size=4), st.booleans())
def test_exactly_what_is_selected_goes(batches: list[list[Draft]], chain: list[Selector], sparse: bool) -> None:
    async def run() -> None:
        log = LocalLog(MemoryStore(), ManualClock(), Metrics())
        await log.configure("t", StreamSettings(sparse=sparse))
        for batch in batches:
            await log.append(Append(stream="t", drafts=batch))
        for selector in chain:
            if selector == Selector():
                continue
            before = (await log.read("t", Cursor())).records
            deleted = await log.delete("t", selector)
            page = await log.read("t", Cursor())
            assert page.records == [record for record in before if not chosen(record, selector)]
            assert page.gap is None
            assert deleted.count == len(before) - len(page.records)
            assert deleted.state.count == len(page.records)
            assert deleted.state.bytes == sum(record.size for record in page.records)
            head = deleted.state.marks.head
            assert deleted.state.marks.earliest == (page.records[0].seq if page.records else head + 1)
        await log.close()

    asyncio.run(run())


async def test_big_deletions_run_in_steps_and_spare_what_comes_meanwhile(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PURGE_RECORDS_MAX", 100)
    await log.configure("t", StreamSettings())
    for _ in range(5):
        await log.append(Append(stream="t", drafts=[Draft(b"x", tag="a")] * 200))
    deleting = asyncio.ensure_future(log.delete("t", Selector(tag=TagMatch("a"))))
    await asyncio.sleep(0)
    await log.append(Append(stream="t", drafts=[Draft(b"later", tag="a")]))
    assert not deleting.done()
    deleted = await deleting
    assert deleted.count == 1_000
    assert [record.seq for record in (await log.read("t", Cursor())).records] == [1_001]


async def test_many_single_seqs_run_in_steps_as_well(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PURGE_RECORDS_MAX", 10)
    await log.configure("t", StreamSettings(sparse=True))
    await log.append(Append(stream="t", drafts=[Draft(b"x")] * 50))
    deleted = await log.delete("t", Selector(seqs=tuple(range(1, 51, 2))))
    assert (deleted.count, deleted.state.marks.earliest) == (25, 2)


async def test_the_bytes_are_really_gone() -> None:
    store = MemoryStore()
    log = LocalLog(store, ManualClock(), Metrics())
    await log.configure("t", StreamSettings())
    await log.append(Append(stream="t", drafts=[Draft(b"keep"), Draft(b"secret", meta=b"hidden"), Draft(b"keep")]))
    await log.append(Append(stream="t", drafts=[Draft(b"secret")]))
    await log.delete("t", Selector(seqs=(2, 4)))
    stored = b"".join(bytes(value) for _, value in store.scan(Space.RECORDS, b"\0\0\0\1"))
    assert b"keep" in stored
    assert b"secret" not in stored
    assert b"hidden" not in stored
    await log.close()


async def test_a_selector_must_select(log: LocalLog) -> None:
    with pytest.raises(BadInput):
        await log.delete("t", Selector())
    with pytest.raises(BadInput):
        await log.delete("t", Selector(before=-1))
    with pytest.raises(StreamNotFound):
        await log.delete("t", Selector(before=1))


async def test_a_stream_dropped_under_a_deletion_ends_it(log: LocalLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PURGE_RECORDS_MAX", 10)
    await log.configure("t", StreamSettings())
    for _ in range(5):
        await log.append(Append(stream="t", drafts=[Draft(b"x")] * 20))
    deleting = asyncio.ensure_future(log.delete("t", Selector(before=1_000)))
    await asyncio.sleep(0)
    await log.drop("t")
    with pytest.raises(StreamNotFound):
        await deleting
