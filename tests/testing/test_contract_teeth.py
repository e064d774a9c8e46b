"""The contract has teeth: a log that breaks one promise fails the test that is about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from seamark.errors import SeamarkError
from seamark.log.protocol import Append, Deleted, News, Page, Receipt, Selector, StreamState
from seamark.log.record import Record
from seamark.log.watermarks import Cursor
from seamark.testing.contract import LogContract
from seamark.testing.naive import Listener, NaiveLog, NaiveStream
from seamark.testing.rig import LogRig


class Forgetful(NaiveLog):
    """Knows no idempotency keys."""

    def _append_to(self, stream: NaiveStream, append: Append, now: int) -> Any:
        keyless = Append(stream=append.stream, drafts=append.drafts, expect_head=append.expect_head)
        return super()._append_to(stream, keyless, now)


class Torn(NaiveLog):
    """Writes the good records of a bad batch."""

    def _write(self, append: Append) -> Receipt:
        try:
            return super()._write(append)
        except SeamarkError:
            if len(append.drafts) > 1 and append.stream in self._streams:
                super()._write(Append(stream=append.stream, drafts=append.drafts[:1]))
            raise


class Silent(NaiveLog):
    """States no loss."""

    async def read(self, name: str, cursor: Cursor, **options: Any) -> Page:
        page = await super().read(name, cursor, **options)
        return page if page.gap is None else Page(page.records, None, cursor.seq, page.cursor, page.marks, page.scanned)


class Boundless(NaiveLog):
    """Pays no heed to the page's bounds."""

    async def read(self, name: str, cursor: Cursor, **options: Any) -> Page:
        return await super().read(name, cursor, synced=bool(options.get("synced")), accept=options.get("accept"))


class Blind(NaiveLog):
    """Does not see that a cursor is of another instance."""

    async def read(self, name: str, cursor: Cursor, **options: Any) -> Page:
        return await super().read(name, Cursor(cursor.seq), **options)


class Chatty(NaiveLog):
    """Announces everything twice."""

    def _tell(self, news: News) -> None:
        super()._tell(news)
        super()._tell(news)


class Fragile(NaiveLog):
    """One failing listener takes the others with it."""

    def _tell(self, news: News) -> None:
        for listener in self._listeners:
            try:
                listener([news])
            except RuntimeError:
                return


class Deaf(NaiveLog):
    """Misses every third piece of news."""

    told = 0

    def _tell(self, news: News) -> None:
        self.told += 1
        if self.told % 3:
            super()._tell(news)


class Clinging(NaiveLog):
    """Never lets a listener go."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        super().subscribe(listener)
        return lambda: None


class Greedy(NaiveLog):
    """Deletes everything below the highest seq selected."""

    async def delete(self, name: str, selector: Selector) -> Deleted:
        if selector.seqs:
            return await super().delete(name, Selector(before=max(selector.seqs) + 1))
        return await super().delete(name, selector)


class Unsorted(NaiveLog):
    """Lists streams as they were made."""

    async def streams(self, *, prefix: str = "", after: str = "", limit: int = 1_000) -> list[StreamState]:
        return [await self.state(name) for name in self._streams if name.startswith(prefix) and name != after][:limit]


class Careless(NaiveLog):
    """Moves the values of an append that was refused."""

    def _write(self, append: Append) -> Receipt:
        self._put(append)
        return super()._write(append)


class Impatient(NaiveLog):
    """Loses a record as soon as its age is its ttl."""

    def _find(self, name: str) -> NaiveStream:
        stream = super()._find(name)
        stream.model.retain(self._clock.now_ns() + 1)
        return stream


class Hesitant(NaiveLog):
    """Stops at a record that is not accepted."""

    async def read(
        self, name: str, cursor: Cursor, *, accept: Callable[[Record], bool] | None = None, **o: Any
    ) -> Page:
        page = await super().read(name, cursor, **o)
        if accept is None:
            return page
        records: Sequence[Record] = page.records
        taken = next((at for at, record in enumerate(records) if not accept(record)), len(records))
        at = records[taken].seq if taken < len(records) else page.cursor.seq
        end = Cursor(at, page.cursor.instance)
        return Page(list(records[:taken]), page.gap, page.resume, end, page.marks, taken)


BROKEN: list[tuple[type[NaiveLog], str]] = [
    (Forgetful, "test_a_repeated_key_answers_with_the_first_receipt"),
    (Forgetful, "test_concurrent_duplicates_are_written_once"),
    (Torn, "test_one_bad_record_refuses_its_whole_batch"),
    (Silent, "test_one_page_states_at_most_one_gap_before_its_records"),
    (Silent, "test_caps_hold_after_every_append"),
    (Boundless, "test_pages_end_at_records_max"),
    (Boundless, "test_pages_end_at_the_byte_budget"),
    (Blind, "test_a_cursor_of_another_instance_starts_again"),
    (Blind, "test_a_recreated_stream_is_told_although_its_head_has_passed_the_cursor"),
    (Chatty, "test_each_record_is_announced_once_in_order"),
    (Fragile, "test_a_failing_listener_harms_nobody"),
    (Deaf, "test_each_record_is_announced_once_in_order"),
    (Deaf, "test_history_to_live_neither_loses_nor_repeats"),
    (Clinging, "test_listeners_are_told_until_they_stop"),
    (Greedy, "test_a_removed_front_moves_earliest_and_no_floor"),
    (Greedy, "test_every_selector_removes_exactly_what_it_says"),
    (Unsorted, "test_streams_are_listed_in_byte_order"),
    (Careless, "test_puts_share_the_fate_of_their_append"),
    (Impatient, "test_worked_examples"),
    (Hesitant, "test_rejected_records_are_examined_and_passed"),
]
ARGUMENTS: dict[str, Any] = {"records_max": 3, "what": "tag", "durability": "fsync"}


class BrokenRig(LogRig):
    kind: ClassVar[type[NaiveLog]] = NaiveLog
    has_quota: ClassVar[bool] = True

    async def start(self, quota_bytes: int) -> NaiveLog:
        return self.kind(self.clock, quota_bytes=quota_bytes)


class Contract(LogContract):
    __test__ = False

    def make_rig(self, place: Path) -> LogRig:
        return BrokenRig()


async def run(kind: type[NaiveLog], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from seamark.testing.contract import base
    from seamark.testing.contract.base import FSYNC
    from seamark.testing.examples import OWN_EXAMPLES

    monkeypatch.setattr(base, "PATIENCE_SECONDS", 0.3)
    rig = BrokenRig()
    monkeypatch.setattr(BrokenRig, "kind", kind)
    log = await rig.open()
    test = getattr(Contract(), name)
    known = {**ARGUMENTS, "rig": rig, "log": log, "settings": FSYNC, "example": OWN_EXAMPLES[0]}
    await test(**{argument: known[argument] for argument in inspect.signature(test).parameters})


@pytest.mark.parametrize(("kind", "name"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
async def test_a_broken_log_fails(kind: type[NaiveLog], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((AssertionError, TimeoutError, SeamarkError, pytest.fail.Exception)):
        await run(kind, name, monkeypatch)


@pytest.mark.parametrize("name", sorted({name for _, name in BROKEN}))
async def test_a_whole_log_passes_the_same_tests(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(NaiveLog, name, monkeypatch)
