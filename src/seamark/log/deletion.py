"""Voluntary removal by a selector: silent, permanent, in bounded steps, bound at the head seen when it began."""

from __future__ import annotations

from itertools import islice

from seamark import limits
from seamark.errors import BadInput
from seamark.log.chunk import Chunk, chunks_from, records_of
from seamark.log.ledger import Ledger
from seamark.log.protocol import Selector
from seamark.log.record import Record
from seamark.log.revision import Revision


class Deletion:
    """One call of `delete`, worked off step by step."""

    def __init__(self, ledger: Ledger, selector: Selector) -> None:
        check(selector)
        self._selector = selector
        self._ledger = ledger
        self._bound = ledger.head if selector.before is None else min(ledger.head, selector.before - 1)
        self._at = 0  # examined up to here
        self._seqs = None if selector.seqs is None else sorted(set(selector.seqs))
        self.count = 0
        self.done = False

    def step(self) -> Revision | None:
        """The next part as a revision to commit; None when nothing matched in this part."""
        revision = Revision(self._ledger)
        with revision.reading():
            if self._seqs is None:
                self._sweep(revision)
            else:
                self._pick(revision, self._seqs)
        self.count += revision.removed_count
        return revision if revision.removed_count else None

    def _sweep(self, revision: Revision) -> None:
        """Walk chunk by chunk."""
        budget = limits.PURGE_RECORDS_MAX
        start = max(self._at + 1, revision.meta.earliest)
        with revision.reading() as view:
            for chunk in chunks_from(self._ledger.name, revision.meta.id, view, start):
                if chunk.first > self._bound:
                    break
                if budget <= 0:
                    return
                budget -= chunk.count
                self._examine(revision, chunk, start)
                self._at = chunk.last
        self.done = True

    def _examine(self, revision: Revision, chunk: Chunk, start: int) -> None:
        keep: list[Record] = []
        removed: list[Record] = []
        for record in records_of(self._ledger.name, chunk):
            if record.seq >= start:
                (removed if self._matches(record) else keep).append(record)
        if removed:
            revision.remove_from(chunk, keep, removed)

    def _pick(self, revision: Revision, seqs: list[int]) -> None:
        """Look up single seqs."""
        part = list(islice((seq for seq in seqs if seq > self._at), limits.PURGE_RECORDS_MAX))
        self.done = len(part) < limits.PURGE_RECORDS_MAX
        if part:
            revision.remove((seq for seq in part if seq <= self._bound), self._matches)
            self._at = part[-1]

    def _matches(self, record: Record) -> bool:
        selector = self._selector
        if record.seq > self._bound:
            return False
        if selector.tag is not None:
            if record.tag is None:
                return False
            if selector.tag.prefix:
                if not record.tag.startswith(selector.tag.text):
                    return False
            elif record.tag != selector.tag.text:
                return False
        return selector.subject is None or record.subject == selector.subject


def check(selector: Selector) -> None:
    if selector.before is None and selector.tag is None and selector.seqs is None and selector.subject is None:
        raise BadInput("a selector has at least one part")
    if selector.before is not None and selector.before < 0:
        raise BadInput("`before` is not negative")
    if selector.seqs is not None and any(type(seq) is not int or seq > limits.SEQ_MAX for seq in selector.seqs):
        raise BadInput("`seqs` are seqs")
