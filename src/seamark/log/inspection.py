"""One stream under inspection: every chunk against its header, every seq accounted for, the metadata against it all."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.log.chunk import Chunk, chunks_from
from seamark.log.columns import PLACE as COLUMN
from seamark.log.columns import Block, first_of, hash_of, number_of
from seamark.log.findings import Report
from seamark.log.keys import subject_key
from seamark.log.meta import Meta
from seamark.log.record import Record
from seamark.log.seal import Buffer, Damaged, unseal
from seamark.log.settings import Durability
from seamark.log.store import ID, PLACE, Space, View, after


class Inspection:
    """Walks what belongs to one stream and notes findings."""

    def __init__(self, name: str, meta: Meta, view: View, report: Report) -> None:
        self._name = name
        self._meta = meta
        self._view = view
        self._report = report
        self._count = 0
        self._bytes = 0
        self._first_live = 0
        self._last = 0
        self._last_ts = 0
        self._subjects: set[bytes] = set()
        self._unreadable = False

    def run(self) -> None:
        self._check_marks()
        if self._meta.settings.durability is not Durability.EPHEMERAL:
            for key, value in self._own(Space.RECORDS):
                self._check_value(key, value)
            self._check_totals()
            self._check_subjects()
            self._check_columns()

    def _own(self, space: Space) -> Iterator[tuple[bytes, Buffer]]:
        prefix = ID.pack(self._meta.id)
        return self._view.scan(space, prefix, after(prefix))

    def _note(self, seq: int, what: str) -> None:
        self._report.note(self._name, seq, what)

    def _check_marks(self) -> None:
        meta = self._meta
        if not 1 <= meta.evict_floor <= meta.earliest <= meta.head + 1:
            self._note(0, f"marks out of order: floor {meta.evict_floor}, earliest {meta.earliest}, head {meta.head}")
        before = meta.evict_floor
        for gap in meta.lost:
            if not before < gap.first <= gap.last <= meta.head:
                self._note(gap.first, f"a lost range out of place: {gap.first} to {gap.last}")
            before = gap.last
        lost = sum(gap.missed for gap in meta.lost)
        span = meta.head - meta.evict_floor + 1
        if span != meta.count + meta.removed + lost:
            self._note(0, f"{span} seqs since the floor, but {meta.count} live, {meta.removed} removed, {lost} lost")

    def _check_value(self, key: bytes, value: Buffer) -> None:
        self._report.chunks += 1
        seq = PLACE.unpack(key)[1] if len(key) == PLACE.size else 0
        try:
            chunk = Chunk(key, value)
            records = chunk.records()
        except Damaged as damage:
            self._unreadable = True
            self._note(seq, f"a chunk is damaged: {damage}")
            return
        self._check_header(chunk, records)
        if chunk.last < self._meta.earliest and not self._meta.leftovers:
            self._note(chunk.first, "a chunk below the first live record was not removed")
        for record in records:
            self._check_record(record)

    def _check_header(self, chunk: Chunk, records: list[Record]) -> None:
        if chunk.first <= self._last:
            self._note(chunk.first, "a chunk overlaps the one before it")
        if not records or chunk.count != len(records):
            self._note(chunk.first, f"a chunk's header counts {chunk.count} records, it holds {len(records)}")
            return
        if chunk.bytes != sum(record.size for record in records):
            self._note(chunk.first, "a chunk's header has another number of bytes than its records")
        first, last = records[0], records[-1]
        if first.seq < chunk.first or last.seq != chunk.last:
            self._note(chunk.first, "a chunk's records do not lie where its key and header say")
        if (first.ts, last.ts) != (chunk.first_ts, chunk.last_ts):
            self._note(chunk.first, "a chunk's header has other times than its records")

    def _check_record(self, record: Record) -> None:
        meta, seq = self._meta, record.seq
        if seq <= self._last:
            self._note(seq, f"a record follows {self._last}")
        if record.ts < self._last_ts:
            self._note(seq, "a record is older than the one before it")
        self._last, self._last_ts = seq, record.ts
        if seq < meta.earliest:
            return
        self._report.records += 1
        self._report.bytes += record.size
        self._count += 1
        self._bytes += record.size
        self._first_live = self._first_live or seq
        if seq > meta.head:
            self._note(seq, f"a record beyond the head, which is {meta.head}")
        if any(gap.first <= seq <= gap.last for gap in meta.lost):
            self._note(seq, "a record inside a lost range")
        if meta.settings.latest_per_subject and record.subject is not None:
            self._subjects.add(subject_key(meta.id, record.subject, seq))

    def _check_totals(self) -> None:
        meta = self._meta
        if self._unreadable:
            return  # the damage is told; totals would only repeat it
        if self._count != meta.count:
            self._note(0, f"{self._count} live records are stored, the metadata counts {meta.count}")
        if self._bytes != meta.bytes:
            self._note(0, f"{self._bytes} live bytes are stored, the metadata counts {meta.bytes}")
        earliest = self._first_live or meta.head + 1
        if earliest != meta.earliest:
            self._note(earliest, f"the first live record is at {earliest}, the metadata says {meta.earliest}")
        if self._last_ts > meta.last_ts:
            self._note(self._last, "a record is younger than the metadata's last time")

    def _check_subjects(self) -> None:
        indexed: set[bytes] = set()
        for key, value in self._own(Space.SUBJECTS):
            indexed.add(key)
            try:
                unseal(key, value)
            except Damaged as damage:
                self._note(0, f"an entry of the subject index is damaged: {damage}")
        if not self._unreadable and indexed != self._subjects:
            missing, extra = len(self._subjects - indexed), len(indexed - self._subjects)
            self._note(0, f"the subject index misses {missing} records and has {extra} too many")

    def _check_columns(self) -> None:
        """Every column against its seal, and every live record against its block: what the columns do not know of,
        selective readers would never see."""
        blocks: dict[int, Block] = {}
        for key, value in self._own(Space.COLUMNS):
            number = COLUMN.unpack(key)[1]
            try:
                unseal(key, value)
                blocks.setdefault(number, Block(self._view, self._meta.id, number))
            except Damaged as damage:
                self._note(first_of(number), f"a column is damaged: {damage}")
                return
        for number, block in blocks.items():
            if not self._unreadable:
                self._check_block(number, block)

    def _check_block(self, number: int, block: Block) -> None:
        positions = 0 if block.summary is None else block.summary.positions
        columns = [block.hashes(position).tolist() for position in range(positions)]
        try:
            distinct = [_numbered(block, position) for position in range(positions)]
        except Damaged as damage:
            self._note(first_of(number), f"a column is damaged: {damage}")
            return
        for record in self._live_in(number):
            subject = record.subject or ()
            known = [column[record.seq - first_of(number)] for column in columns]
            if known != [hash_of(token) for token in subject] + [0] * (positions - len(subject)):
                self._note(record.seq, "its columns say otherwise than the record")
            elif any(
                tokens.get(token) != str(number_of(token)) for tokens, token in zip(distinct, subject, strict=False)
            ):
                self._note(record.seq, "its columns do not know its tokens")

    def _live_in(self, number: int) -> Iterator[Record]:
        start = max(first_of(number), self._meta.earliest)
        for chunk in chunks_from(self._name, self._meta.id, self._view, start):
            if chunk.first >= first_of(number + 1):
                return
            yield from (record for record in chunk.records() if start <= record.seq < first_of(number + 1))


def _numbered(block: Block, position: int) -> dict[str, str]:
    """The distinct tokens of a column with what they are as numbers, as text: no NaN equals another."""
    distinct = block.distinct(position)
    numbers = block.numbers(position, distinct).tolist()
    return {distinct.token(place): str(number) for place, number in enumerate(numbers)}
