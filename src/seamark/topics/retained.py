"""Which copies a dest already holds beyond the place of its router.

A copy and the router's place move in one commit, so a dest never holds a copy that the router would make again; unless
somebody wrote one there that carries its key. A router that promises `exactly_once` looks for those: everything that it did
not write itself into its dest is read once, and the place of that reading is kept beside the router's own.
"""

from __future__ import annotations

from seamark import limits
from seamark.log.protocol import Log, Receipt
from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Loss
from seamark.topics.stamp import Stamps, may_be_stamped


class Retained:
    """The keys found ahead of one router, at most ROUTER_KEYS_MAX: beyond that, reading waits until the router has passed
    some of them."""

    def __init__(self, log: Log, dest: str, cursor: Cursor) -> None:
        self._log = log
        self._dest = dest
        self._cursor = cursor
        self._found: dict[int, int] = {}  # seq of the source: seq of the dest

    def cursor(self, passed: int) -> Cursor:
        """From where a later process has to read to find what concerns source records after `passed`."""
        ahead = [place for seq, place in self._found.items() if seq > passed]
        return Cursor(min(ahead) - 1, self._cursor.instance) if ahead else self._cursor

    def wrote(self, receipt: Receipt) -> None:
        """The router's own copies need not be read."""
        if receipt.first == self._cursor.seq + 1 and receipt.instance == self._cursor.instance:
            self._cursor = Cursor(receipt.last, receipt.instance)

    async def look(self, stamps: Stamps, passed: int) -> None:
        """Read what is new in the dest, for keys of source records after `passed`."""
        self._found = {seq: place for seq, place in self._found.items() if seq > passed}
        while len(self._found) < limits.ROUTER_KEYS_MAX:
            page = await self._log.read(
                self._dest, self._cursor, records_max=limits.ROUTER_BATCH_RECORDS, accept=may_be_stamped
            )
            if page.gap is not None and page.gap.loss is Loss.RECREATED:
                self._found.clear()
            for record in page.records:
                seq = stamps.seq(record)
                if seq is not None and seq > passed:
                    self._found[seq] = record.seq
            self._cursor = page.cursor
            if page.caught_up:
                return

    async def without(self, records: list[Record]) -> list[Record]:
        """Those of which the dest holds no copy."""
        if not self._found:
            return records
        return [record for record in records if not await self._holds(record.seq)]

    async def _holds(self, seq: int) -> bool:
        """It may have been removed since it was found."""
        place = self._found.get(seq)
        if place is None:
            return False
        page = await self._log.read(self._dest, Cursor(place - 1, self._cursor.instance), records_max=1)
        return bool(page.records) and page.records[0].seq == place
