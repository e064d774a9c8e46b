"""What a watcher must be told, worked out from what is in the topics: naive on purpose, and knowing nothing of channels,
groups or pages. Topics are models of streams; a leg is one reader's place in one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Gap, Loss
from seamark.testing.model import StreamModel
from seamark.topics.model import TopicConfig, resolved, settings_of
from seamark.topics.render import REASONS

NOBODY = 0  # the life of no topic: that of a place which the topic has not come to
Told = tuple[Any, ...]


class Options(NamedTuple):
    """What one watcher asked for."""

    limit: int
    max_batch_bytes: int
    node: str | None
    consistency: str


@dataclass(slots=True)
class Topic:
    """A name with its present life, if any: the lives of a name are numbered."""

    life: int = 0
    config: TopicConfig = field(default_factory=TopicConfig)
    log: StreamModel | None = None

    def make(self, config: TopicConfig, name: str, now_ns: int) -> None:
        config = resolved(config, name)
        if self.log is None:
            self.life += 1
            self.log = StreamModel(settings_of(config))
        else:
            self.log.configure(settings_of(config), now_ns)
        self.config = config

    @property
    def there(self) -> StreamModel:
        assert self.log is not None
        return self.log


@dataclass(slots=True)
class Leg:
    """One reader's place in one topic: what the session keeps, and what its connection does."""

    topic: Topic
    options: Options
    seq: int
    life: int
    before: int | None = None  # the life that this connection found gone, with another in its place
    first_read: bool = True
    told: bool = False  # "caught up" was said, and nothing since
    gone: bool = False  # the topic was removed, whatever is there under its name now
    over: bool = False  # and that was said

    def connect(self, given: int | None) -> None:
        """A new connection, with what its client says of this topic."""
        if given is not None:
            if self.before is not None and given > self.seq:
                self.seq, self.life = given, self.before
            else:
                self.seq = min(self.seq, given)
        self.before = None
        self.first_read = True
        self.told = self.gone = self.over = False

    def wants(self, record: Record) -> bool:
        node = self.options.node
        return node is None or not self.topic.config.dedupe_node or record.node != node

    def follows(self, record: Record) -> bool:
        """Whether a record that is written now is the next for this reader, who has all before it."""
        there = not (self.over or self.gone or self.first_read)
        return there and (self.life, self.seq) == (self.topic.life, record.seq - 1)

    # -- what is said

    def read(self, now_ns: int) -> Iterator[Told]:
        """Everything from the place to the head, a page at a time."""
        if self.over:
            return
        log = self.topic.log
        if log is None or self.gone:
            self.over = True
            yield "topic-deleted", self.seq, "deleted"
            return
        log.retain(now_ns)
        while True:
            gap = self._gap(log)
            if gap is not None:
                reason = REASONS[gap.loss]
                if self.first_read and gap.loss is not Loss.RECREATED and gap.first < log.evict_floor:
                    reason = "from_seq_too_old"
                if gap.loss is Loss.RECREATED:
                    self.before, self.life = self.life, self.topic.life
                self.seq, self.told = gap.last, False
                yield "tombstone", reason, gap.first, gap.last, log.earliest, log.head
            self.first_read = False
            yield from self._page(log)
            if self.seq == log.head:
                break
        if not self.told:
            self.told = True
            yield "caught-up", log.head

    def hear(self, records: Sequence[Record]) -> Iterator[Told]:
        """A batch that was just written and follows the place: whoever is live gets all of it, also what a bound has taken
        by the same write."""
        log = self.topic.there
        pieces = [*self._pieces([record for record in records if self.wants(record)])]
        for piece in pieces:
            yield self._record(piece, records[-1].seq if piece is pieces[-1] else piece[-1].seq, log.head)
        self.seq = records[-1].seq
        if pieces:
            self.told = True
            yield "caught-up", log.head

    def lose_topic(self, head: int) -> None:
        """The topic goes while there is a connection, to be told when that reads. Its head is where reading ends."""
        if not (self.over or self.gone):
            self.gone = True
            self.seq = max(self.seq, head)

    # -- inside

    def _gap(self, log: StreamModel) -> Gap | None:
        """What is missing right behind the place."""
        gaps = log.read(Cursor(self.seq, str(self.life)), instance=str(self.topic.life)).gaps
        return gaps[0] if gaps and (gaps[0].loss is Loss.RECREATED or gaps[0].first == self.seq + 1) else None

    def _page(self, log: StreamModel) -> Iterator[Told]:
        """At most one frame of records, up to the next loss."""
        hole = next((gap.first for gap in log.ranges if gap.first > self.seq), log.head + 1)
        ahead = [record for record in log.records if self.seq < record.seq < hole]
        pieces = [*self._pieces([record for record in ahead if self.wants(record)])]
        if not pieces:
            self.seq = hole - 1
        elif len(pieces[0]) == self.options.limit:
            yield self._record(pieces[0], pieces[0][-1].seq, log.head)
        elif len(pieces) == 1:
            yield self._record(pieces[0], hole - 1, log.head)
        else:  # the next one was too large, and what is not wanted before it was examined
            examined = [record.seq for record in ahead if record.seq < pieces[1][0].seq]
            yield self._record(pieces[0], examined[-1], log.head)

    def _record(self, records: Sequence[Record], to: int, head: int) -> Told:
        after, self.seq, self.told = self.seq, to, False
        rows = tuple(
            (record.seq, record.ts // 1_000_000, record.node, json.loads(record.payload)) for record in records
        )
        return "record", rows, after, to, head

    def _pieces(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """As many as one frame may hold: so many, and so many bytes, but at least one."""
        piece: list[Record] = []
        for record in records:
            size = sum(one.size for one in piece)
            if piece and (len(piece) == self.options.limit or size + record.size > self.options.max_batch_bytes):
                yield piece
                piece = []
            piece.append(record)
        if piece:
            yield piece
