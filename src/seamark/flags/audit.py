"""Who changed what, and when: a record of the stream `audit:flags` for every change, without secrets.

A record moves in the same commit as the values that it is about, so there is no change without its record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import msgspec

from seamark import limits
from seamark.errors import BadRequest, SeamarkError, StreamNotFound
from seamark.flags import instant
from seamark.log.protocol import Append, Log, Put, Shelf
from seamark.log.record import Draft, Record
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.telemetry import events
from seamark.telemetry.logs import logger

STREAM = "audit:flags"
OWED = "flags:audit-owed"

_log = logger("flags")
_SETTINGS = StreamSettings()  # durable, and nothing is ever evicted


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change. `before` and `after` are what the API shows of the thing; None where it is not there."""

    actor: str
    action: str
    subject: str  # a slug, a token's id, or `tenant/namespace@version`
    tenant: str = ""
    namespace: str = ""
    request_id: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None

    @property
    def place(self) -> str:
        return f"{self.tenant}/{self.namespace}"


class Author(NamedTuple):
    """Who makes a change: the id of a token, or the name of a part of Seamark; and in which request."""

    name: str
    request_id: str = ""

    def entry(
        self,
        action: str,
        subject: str,
        *,
        tenant: str = "",
        namespace: str = "",
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> Entry:
        """The record of a change that this author makes."""
        return Entry(
            actor=self.name,
            request_id=self.request_id,
            action=action,
            subject=subject,
            tenant=tenant,
            namespace=namespace,
            before=before,
            after=after,
        )


class Trail(NamedTuple):
    """A part of the log of changes, the oldest first."""

    entries: list[dict[str, object]]
    after: int  # go on from here
    caught_up: bool


_encode = msgspec.json.Encoder().encode
_entry = msgspec.json.Decoder(Entry)


def draft(entry: Entry) -> Draft:
    return Draft(_encode(entry), node=entry.actor, tag=entry.tenant or None)


def append(entry: Entry, puts: Sequence[Put], *, expect_head: int | None = None) -> Append:
    """The change and its record as one unit."""
    return Append(stream=STREAM, drafts=[draft(entry)], create=_SETTINGS, puts=puts, expect_head=expect_head)


def entry_of(record: Record) -> Entry:
    return _entry.decode(record.payload)


async def head(log: Log) -> int:
    """The number of changes so far."""
    try:
        return (await log.state(STREAM)).marks.head
    except StreamNotFound:
        return 0


async def records(log: Log, after: int) -> AsyncIterator[Record]:
    """All changes after a place, to the end."""
    cursor = Cursor(after)
    while cursor.seq < await head(log):
        page = await log.read(STREAM, cursor)
        for record in page.records:
            yield record
        cursor = page.cursor


def owed(key: str, entry: Entry) -> Put:
    """For a change whose commit is a record of another stream: the line moves with it, and is appended here by `Debts`."""
    return Put(OWED, key.encode(), _encode(entry))


class Debts:
    """Pays what is owed, in order. Belongs to the loop it was made in."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._open: list[Put] = []
        self._lock = asyncio.Lock()

    async def settle(self) -> None:
        """What a crash left owed. Before anything is changed: whoever changes something pays for it."""
        assert isinstance(self._log, Shelf)
        for key, value in list(self._log.scan(OWED)):
            await self._pay(Put(OWED, key, value))

    async def pay(self, debt: Put) -> None:
        """The change is made, whatever becomes of its line: one that the store refuses now is paid with the next."""
        self._open.append(debt)
        async with self._lock:
            while self._open:
                try:
                    await self._pay(self._open[0])
                except SeamarkError as error:
                    _log.warning(events.AUDIT_OWED, lines=len(self._open), error=error.message)
                    return
                self._open.pop(0)

    async def _pay(self, debt: Put) -> None:
        assert debt.value is not None
        await self._log.append(append(_entry.decode(debt.value), [Put(OWED, debt.key, None)]))


async def read(log: Log, after: int, limit: int, *, tenant: str | None = None) -> Trail:
    """Up to `limit` changes after a place, those of one tenant where one is named. Raises BadRequest for a place that is
    none."""

    def accept(record: Record) -> bool:
        return record.tag == tenant

    try:
        page = await log.read(
            STREAM,
            Cursor(after),
            records_max=limit,
            bytes_max=limits.PAGE_BYTES_MAX,
            accept=None if tenant is None else accept,
        )
    except StreamNotFound:
        return Trail([], 0, True)
    if page.gap is not None:
        raise BadRequest("the cursor is not one that this log of changes gave out", name="cursor")
    return Trail([_shown(record) for record in page.records], page.cursor.seq, page.caught_up)


def _shown(record: Record) -> dict[str, object]:
    entry = entry_of(record)
    return {
        "sequence": record.seq,
        "at": instant.text(record.ts),
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "tenant": entry.tenant or None,
        "namespace": entry.namespace or None,
        "request_id": entry.request_id or None,
        "before": entry.before,
        "after": entry.after,
    }
