"""One append on its way through a turn, and the turn's working set."""

from __future__ import annotations

from seamark.errors import SeamarkError
from seamark.log.keys import FirstReceipt
from seamark.log.protocol import Append, Done, Put, Receipt
from seamark.log.record import Record
from seamark.log.revision import Revision


class Ticket:
    """An admitted append: it has its seqs, and waits to be acknowledged."""

    __slots__ = (
        "answered",
        "append",
        "created",
        "done",
        "early",
        "first",
        "followers",
        "last",
        "records",
        "revision",
        "size",
        "ts",
    )

    def __init__(self, append: Append, done: Done, size: int) -> None:
        self.append = append
        self.done = done
        self.size = size
        self.answered = False
        self.revision: Revision | None = None
        self.first = 0
        self.last = 0
        self.ts = 0
        self.created = False
        self.early = False
        self.records: list[Record] = []
        self.followers: list[Done] | None = None

    def row(self, now: int) -> FirstReceipt:
        return FirstReceipt(created=now, first=self.first, last=self.last, head=self.last, ts=self.ts)

    def receipt(self, write_ms: float, sync_ms: float) -> Receipt:
        ledger = None if self.revision is None else self.revision.ledger
        return Receipt(
            "" if ledger is None else ledger.name,
            "" if ledger is None else ledger.meta.instance,
            self.first,
            self.last,
            self.last,
            self.ts,
            self.created,
            False,
            write_ms,
            sync_ms,
        )


class Group:
    """Everything one turn works on."""

    __slots__ = ("answers", "bytes", "early", "keys", "now", "puts", "revisions", "tickets")

    def __init__(self, now: int) -> None:
        self.now = now
        self.revisions: dict[str, Revision] = {}
        self.tickets: list[Ticket] = []
        self.keys: dict[tuple[int, str], Ticket] = {}
        self.puts: list[tuple[Revision | None, Put]] = []
        self.answers: list[tuple[Done, Receipt | SeamarkError]] = []  # decided without a commit
        self.bytes = 0
        self.early = False  # some ticket is acknowledged before the commit
