"""A naive, obviously right model of one stream: a list of what is live, and loops over it. Engines are compared with
it; it knows nothing of commits, chunks or files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from seamark.clock import NS_PER_MS
from seamark.errors import BadInput, HeadConflict, StreamFull
from seamark.log.protocol import Selector
from seamark.log.record import Draft, Record
from seamark.log.settings import Discard, StreamSettings
from seamark.log.watermarks import Cursor, Gap, Loss, Watermarks


@dataclass(frozen=True, slots=True)
class Written:
    """What an append came to; for a repeat, what the first one came to."""

    first: int
    last: int
    head: int
    ts: int
    deduped: bool = False


@dataclass(slots=True)
class Key:
    """An idempotency key, with the time it was first used by the wall clock."""

    written: Written
    used_ns: int
    expired_once: bool = False  # an engine may forget it from then on, even if the clock steps back


@dataclass(frozen=True, slots=True)
class Story:
    """Everything a reader is told from a cursor to the head."""

    gaps: list[Gap]
    records: list[Record]


@dataclass(slots=True)
class StreamModel:
    """One instance of one stream."""

    settings: StreamSettings
    records: list[Record] = field(default_factory=list)  # the live ones, in order
    head: int = 0
    floors: dict[Loss, int] = field(default_factory=dict)  # highest seq lost at the front, by reason
    ranges: list[Gap] = field(default_factory=list)  # losses in the middle, ascending
    keys: dict[str, Key] = field(default_factory=dict)
    last_ts: int = 0

    # -- where it stands

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def bytes(self) -> int:
        return sum(record.size for record in self.records)

    @property
    def evict_floor(self) -> int:
        return max(self.floors.values(), default=0) + 1

    @property
    def earliest(self) -> int:
        return self.records[0].seq if self.records else self.head + 1

    def marks(self, synced: int) -> Watermarks:
        return Watermarks(head=self.head, synced=synced, evict_floor=self.evict_floor, earliest=self.earliest)

    def copy(self) -> StreamModel:
        """A second one that goes its own way; records are immutable and shared."""
        return StreamModel(
            settings=self.settings,
            records=list(self.records),
            head=self.head,
            floors=dict(self.floors),
            ranges=list(self.ranges),
            keys={key: Key(known.written, known.used_ns, known.expired_once) for key, known in self.keys.items()},
            last_ts=self.last_ts,
        )

    # -- writing

    def append(
        self, drafts: Sequence[Draft], now_ns: int, *, key: str | None = None, expect_head: int | None = None
    ) -> Written:
        self.retain(now_ns)
        written = self._write(drafts, now_ns, key=key, expect_head=expect_head)
        self.retain(now_ns)
        return written

    def append_together(
        self, writers: Sequence[tuple[Sequence[Draft], str | None]], now_ns: int
    ) -> list[Written | StreamFull]:
        """Drafts and keys of several writers in one commit: bounds are looked at before and after all of them."""
        outcomes: list[Written | StreamFull] = []
        self.retain(now_ns)
        for drafts, key in writers:
            try:
                outcomes.append(self._write(drafts, now_ns, key=key))
            except StreamFull as full:
                outcomes.append(full)
        self.retain(now_ns)
        return outcomes

    def _write(
        self, drafts: Sequence[Draft], now_ns: int, *, key: str | None = None, expect_head: int | None = None
    ) -> Written:
        repeat = self.find_key(key, now_ns)
        if repeat is not None:
            return repeat
        if expect_head is not None and expect_head != self.head:
            raise HeadConflict("not at that head", expected=expect_head, head=self.head)
        self._admit(drafts)
        self.last_ts = max(self.last_ts, now_ns)
        first = self.head + 1
        for draft in drafts:
            self.head += 1
            self.records.append(_place(draft, self.head, self.last_ts))
        written = Written(first, self.head, self.head, self.last_ts)
        if key is not None:
            self.keys[key] = Key(written, now_ns)
        return written

    def find_key(self, key: str | None, now_ns: int) -> Written | None:
        known = self.keys.get(key) if key is not None else None
        if known is None or now_ns - known.used_ns > self.settings.dedupe_window_ms * NS_PER_MS:
            return None
        first = known.written
        return Written(first.first, first.last, first.head, first.ts, deduped=True)

    def _admit(self, drafts: Sequence[Draft]) -> None:
        if self.settings.discard is not Discard.REJECT:
            return
        cap_records, cap_bytes = self.settings.cap_records, self.settings.cap_bytes
        incoming = sum(len(draft.payload) + len(draft.meta or b"") for draft in drafts)
        if cap_records and self.count + len(drafts) > cap_records:
            raise StreamFull("no room", head=self.head, earliest=self.earliest)
        if cap_bytes and self.bytes + incoming > cap_bytes:
            raise StreamFull("no room", head=self.head, earliest=self.earliest)

    # -- losing and removing

    def configure(self, settings: StreamSettings, now_ns: int) -> None:
        """What was too old under the old settings is gone whatever the new ones say."""
        self.retain(now_ns)
        self.settings = settings
        self.retain(now_ns)

    def retain(self, now_ns: int) -> None:
        """Let go of what is too old, then of what was replaced, then of what is too much."""
        for known in self.keys.values():
            window_ns = self.settings.dedupe_window_ms * NS_PER_MS
            known.expired_once = known.expired_once or now_ns - known.used_ns > window_ns
        while self.settings.ttl_ms and self.records and self._is_too_old(self.records[0], now_ns):
            self._lose_oldest(Loss.TTL)
        self._replace()
        while self._is_over_cap():  # a stream that rejects gets here only when its bounds were tightened
            self._lose_oldest(Loss.CAP)

    def _is_too_old(self, record: Record, now_ns: int) -> bool:
        return now_ns - record.ts > self.settings.ttl_ms * NS_PER_MS

    def _is_over_cap(self) -> bool:
        cap_records, cap_bytes = self.settings.cap_records, self.settings.cap_bytes
        return bool((cap_records and self.count > cap_records) or (cap_bytes and self.bytes > cap_bytes))

    def _lose_oldest(self, loss: Loss) -> None:
        self.floors[loss] = self.records.pop(0).seq
        self._fold()

    def _replace(self) -> None:
        keep = self.settings.latest_per_subject
        if not keep:
            return
        seen: dict[tuple[str, ...], int] = {}
        kept = []
        for record in reversed(self.records):
            if record.subject is not None:
                seen[record.subject] = seen.get(record.subject, 0) + 1
            if record.subject is None or seen[record.subject] <= keep:
                kept.append(record)
        self.records = kept[::-1]

    def delete(self, selector: Selector, now_ns: int) -> int:
        self.retain(now_ns)
        if selector == Selector():
            raise BadInput("nothing selected")
        before = self.count
        self.records = [record for record in self.records if not _selects(selector, record)]
        return before - self.count

    def crash(self, head: int) -> None:
        """The seqs after the last one, up to `head`, may have been given out, and are gone."""
        if head > self.head:
            self.declare_lost(head, Loss.CRASH)

    def declare_lost(self, head: int, loss: Loss) -> None:
        """The seqs after the last one, up to `head`, are given out and hold nothing."""
        first = self.head + 1
        self.head = head
        if self.ranges and self.ranges[-1].last == first - 1 and self.ranges[-1].loss is loss:
            first = self.ranges.pop().first
        self.ranges.append(Gap(first, head, loss))
        self._fold()

    def forget(self, head: int) -> None:
        """A stream that lived in memory only has lost what was live, and the seqs up to `head` that it may have given out."""
        lost = head > 0 and (bool(self.records) or head > self.head)
        self.head = head
        self.records = []
        if lost:
            self.floors[Loss.CRASH] = head
        self._fold()

    def _fold(self) -> None:
        """A loss in the middle that the front has reached is a loss at the front."""
        while self.ranges and self.ranges[0].first <= self.evict_floor:
            reached = self.ranges.pop(0)
            self.floors[reached.loss] = max(self.floors.get(reached.loss, 0), reached.last)

    # -- reading

    def read(self, cursor: Cursor, *, instance: str) -> Story:
        """What a reader at `cursor` is told, when this stream's instance id is `instance`."""
        gaps: list[Gap] = []
        seq = cursor.seq
        if seq > self.head or cursor.instance not in {None, instance}:
            seq = self.earliest - 1
            gaps.append(Gap(1, seq, Loss.RECREATED))
        elif seq + 1 < self.evict_floor:
            gaps.append(Gap(seq + 1, self.evict_floor - 1, self._front_loss(seq + 1)))
            seq = self.evict_floor - 1
        gaps += [Gap(max(gap.first, seq + 1), gap.last, gap.loss) for gap in self.ranges if gap.last > seq]
        return Story(gaps, [record for record in self.records if record.seq > seq])

    def _front_loss(self, first: int) -> Loss:
        """Why the front from `first` on is gone: every reason whose floor reaches that far counts, but the source's only
        when no bound of the stream's own does."""
        reasons = {loss for loss, floor in self.floors.items() if floor >= first}
        if reasons & {Loss.CAP, Loss.TTL}:
            reasons -= {Loss.SOURCE}
        return Loss.MIXED if len(reasons) > 1 else reasons.pop()

    def is_seq_at(self, seq: int, ts: int) -> bool:
        """Whether reading from `seq` on gives exactly the live records stored at or after `ts`. Seqs without a live
        record make several answers right."""
        if not 1 <= seq <= self.head + 1:
            return False
        return all((record.ts >= ts) == (record.seq >= seq) for record in self.records)


def _place(draft: Draft, seq: int, ts: int) -> Record:
    return Record(
        seq=seq,
        ts=ts,
        payload=draft.payload,
        node=draft.node,
        tag=draft.tag,
        meta=draft.meta,
        subject=draft.subject,
        geometry=draft.geometry,
    )


def _selects(selector: Selector, record: Record) -> bool:
    if selector.before is not None and record.seq >= selector.before:
        return False
    if selector.tag is not None:
        text = selector.tag.text
        if record.tag is None or not (record.tag.startswith(text) if selector.tag.prefix else record.tag == text):
            return False
    if selector.seqs is not None and record.seq not in selector.seqs:
        return False
    return selector.subject is None or record.subject == selector.subject
