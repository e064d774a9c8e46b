"""The versions of all manifests: committed one after the other, found again by number, and let go when they are old.

A version is one record of its namespace's stream, and its number is the record's seq. Its file index and the contents that
are new move with the record in one commit, so a version is there whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from seamark.clock import NS_PER_SECOND, Clock
from seamark.errors import Busy, Fault, HeadConflict, SeamarkError, StreamNotFound, VersionConflict
from seamark.flags import rows
from seamark.flags.kept import KeptVersions
from seamark.flags.once import Once
from seamark.flags.rows import owner_of, stream_of
from seamark.flags.seats import Seats
from seamark.flags.version import Entry, Facts, KeptClosures, Version
from seamark.limits import (
    FLAG_PRUNED_PER_COMMIT,
    FLAG_READINGS_AT_ONCE,
    FLAG_VERSION_DAYS,
    FLAG_VERSIONS_MIN,
    LINT_SLICE_WEIGHT,
)
from seamark.log.protocol import Append, Log, Put, Shelf
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.manifest.closure import Index, closure_by, closure_hash, index_of
from seamark.manifest.diagnostic import Diagnostic
from seamark.manifest.document import weight_of
from seamark.manifest.lint import Files, Linted, Linting, references_in
from seamark.manifest.memo import Memo
from seamark.manifest.model import Manifest
from seamark.manifest.subscription import FlagList
from seamark.telemetry import events
from seamark.telemetry.logs import logger

_NS_PER_DAY = 86_400 * NS_PER_SECOND
_READ_SLICE_FILES = 256  # contents fetched before the loop goes on

_SETTINGS = StreamSettings()
_encode = msgspec.json.Encoder().encode
_facts = msgspec.json.Decoder(Facts)
_log = logger("flags")


Also = Callable[[int], Sequence[Put]]


def _nothing(number: int) -> Sequence[Put]:
    return ()


class Committed(NamedTuple):
    """A version that is durable."""

    version: Version
    ts: int  # ns


class _Candidate(msgspec.Struct, frozen=True):
    """What is to be the next version, whatever its number."""

    stream: str
    index: Index
    files: Files
    facts: Facts
    manifest: Manifest
    also: Also


class Versions:
    """Belongs to the loop it was made in."""

    def __init__(self, log: Log, clock: Clock) -> None:
        assert isinstance(log, Shelf), "manifests need an engine that keeps small values"
        self._log: Log = log
        self._shelf: Shelf = log
        self._clock = clock
        self._memo = Memo()  # single files that were read, of all namespaces
        self._kept = KeptVersions()
        self._closures = KeptClosures()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._turn = asyncio.Lock()  # to read what files mean, for a part of a second
        self._seats = Seats(FLAG_READINGS_AT_ONCE)
        self._readings: Once[Version, None] = Once()

    # -- finding

    async def head(self, tenant: str, namespace: str) -> int:
        """The number of the current version, 0 while there is none."""
        return await self._head(stream_of(tenant, namespace))

    async def current(self, tenant: str, namespace: str) -> Version | None:
        """The current version, read; None while there is none."""
        number = await self.head(tenant, namespace)
        return await self.at(tenant, namespace, number) if number else None

    async def at(self, tenant: str, namespace: str, number: int) -> Version | None:
        """A version, read; None when its file index was pruned, or it never was."""
        version = self.at_now(stream_of(tenant, namespace), number)
        if version is not None and not version.is_read:
            await self._read_apart(version)
        return version

    def at_now(self, stream: str, number: int) -> Version | None:
        """The same without waiting. What it means may still have to be read, which takes its time when somebody asks."""
        version = self._kept.find(stream, number)
        if version is not None:
            if number < rows.floor(self._shelf, stream):  # another process let it go, and its contents with it
                self._kept.drop(version)
                return None
            return version
        index = rows.index_of(self._shelf, stream, number)
        return None if index is None else self._kept.keep(self._version(stream, number, index))

    def content(self, version: Version, path: str) -> bytes:
        """The bytes of one of its files."""
        return rows.content(self._shelf, version.stream, version.index[path])

    def files(self, version: Version, index: Index | None = None) -> dict[str, bytes]:
        """All its files, or those of a part of it."""
        part = version.index if index is None else index
        return {path: rows.content(self._shelf, version.stream, sha) for path, sha in part.items()}

    async def history(self, tenant: str, namespace: str, *, before: int | None = None, limit: int) -> list[Entry]:
        """What was uploaded, the newest first, before a version where one is named. Pruned versions are in it."""
        stream = stream_of(tenant, namespace)
        head = await self._head(stream)
        last = head if before is None else min(before - 1, head)
        first = max(last - limit, 0) + 1
        floor = rows.floor(self._shelf, stream)
        found: list[Entry] = []
        while first + len(found) <= last:
            left = last - first - len(found) + 1
            page = await self._log.read(stream, Cursor(first + len(found) - 1), records_max=left)
            assert page.records, "versions are never evicted"
            for record in page.records:
                facts = _facts.decode(record.payload)
                found.append(Entry(number=record.seq, ts=record.ts, facts=facts, files_available=record.seq >= floor))
        return found[::-1]

    # -- committing

    async def lint(self, files: Files, *, slug: str, found: Sequence[Diagnostic] = ()) -> Linted:
        """Whether files are a manifest. Beside the loop, and a part at a time in turn with others: a big manifest takes a
        second, and one that was made to be slow most of a minute."""
        linting = Linting(files, slug=slug, memo=self._memo, found=found)
        while True:
            async with self._turn:
                linted = await asyncio.to_thread(linting.go_on, LINT_SLICE_WEIGHT)
            if linted is not None:
                return linted

    async def commit(
        self,
        tenant: str,
        namespace: str,
        files: Files,
        linted: Linted,
        *,
        by: str,
        expect: int | None = None,
        restored: int | None = None,
        also: Also = _nothing,
    ) -> Committed:
        """Store `files`, which passed as `linted` says, as the next version, and with it what `also` gives for its number.
        Raises VersionConflict when the current one is not `expect`. Durable when it returns."""
        manifest = linted.manifest
        assert manifest is not None, "what does not pass is not stored"
        stream = stream_of(tenant, namespace)
        index = index_of(files)
        facts = Facts(
            uploaded_by=by,
            flag_count=len(manifest.flags),
            segment_count=len(manifest.segments),
            file_count=len(files),
            bytes=sum(map(len, files.values())),
            closure_hash=closure_hash(index),
            warnings=len(linted.warnings),
            restored=restored,
        )
        candidate = _Candidate(stream, index, files, facts, manifest, also)
        async with self._lock(stream):
            while True:
                head = await self._head(stream)
                if expect is not None and expect != head:
                    raise VersionConflict(f"the current version is {head}, not {expect}", current_version=head)
                try:
                    committed = await self._append(candidate, head)
                    break
                except HeadConflict:
                    continue  # another process was faster; unless a version is expected, ours comes after it
            await self._prune(stream, head + 1)
            return committed

    async def _append(self, candidate: _Candidate, head: int) -> Committed:
        stream, index, files = candidate.stream, candidate.index, candidate.files
        before = self.at_now(stream, head) if head else None
        known = frozenset(before.index.values()) if before is not None else frozenset()
        new = {digest: files[path] for path, digest in index.items() if digest not in known}
        # Kept before it is committed: streams are told of it within the commit.
        version = self._kept.keep(self._version(stream, head + 1, index, candidate.manifest))
        append = Append(
            stream=stream,
            drafts=[Draft(_encode(candidate.facts))],
            create=_SETTINGS,
            expect_head=head,
            puts=[*rows.version_puts(stream, head + 1, index, new), *candidate.also(head + 1)],
        )
        try:
            receipt = await self._log.append(append)
        except BaseException:
            self._kept.drop(version)  # whether it was stored after all, the store knows
            raise
        return Committed(version, receipt.ts)

    # -- letting go

    async def _prune(self, stream: str, head: int) -> None:
        """A version keeps its file index while it is among the newest, or young. A failure here is none of the commit's."""
        try:
            young = await self._log.seq_at(stream, max(0, self._clock.now_ns() - FLAG_VERSION_DAYS * _NS_PER_DAY))
            keep_from = min(head - FLAG_VERSIONS_MIN + 1, young)
            floor = rows.floor(self._shelf, stream)
            upto = min(keep_from, floor + FLAG_PRUNED_PER_COMMIT)
            if upto <= floor:
                return
            puts: list[Put] = [rows.floor_put(stream, upto)]
            index = rows.index_of(self._shelf, stream, floor) or {}
            for number in range(floor, upto):
                following = rows.index_of(self._shelf, stream, number + 1) or {}
                puts += rows.removal(self._shelf, stream, number, index, following)
                index = following
            # Held to the head: a content that a commit brings back meanwhile must stay.
            await self._log.append(Append(stream=stream, expect_head=head, puts=puts))
        except HeadConflict:
            return
        except SeamarkError as error:
            _log.error(events.FLAGS_PRUNE_FAILED, stream=stream, error=error.message)

    # -- reading what files mean

    def _version(self, stream: str, number: int, index: Index, manifest: Manifest | None = None) -> Version:
        return Version(stream, number, index, manifest=manifest, narrow=self._narrow, closures=self._closures)

    def _narrow(self, version: Version, wanted: FlagList) -> dict[str, bytes]:
        """A closure of a version that is not read, from the few files that it needs. Raises Busy when they are a lot."""
        left = LINT_SLICE_WEIGHT

        def references(path: str) -> Iterable[str]:
            nonlocal left
            content = self.content(version, path)
            known = self._memo.find(self._memo.key(path, content))
            if known is None:
                left -= weight_of(content)
                if left < 0:
                    raise Busy(f"version {version.number} of {version.stream} has to be read first", limit="reading")
            return references_in(path, content, memo=self._memo)

        return closure_by(references, version.index, wanted)

    async def _read_apart(self, version: Version) -> None:
        await self._readings.share(version, lambda: self._learn(version))

    async def _learn(self, version: Version) -> None:
        tenant, slug = owner_of(version.stream)
        async with self._seats.of(tenant):
            files: dict[str, bytes] = {}
            for number, path in enumerate(version.index, start=1):
                files[path] = self.content(version, path)
                if number % _READ_SLICE_FILES == 0:
                    await asyncio.sleep(0)
            linted = await self.lint(files, slug=slug)
        if not version.is_read:
            version.learn(_passed(version, linted))
            if self._kept.find(version.stream, version.number) is version:
                self._kept.keep(version)

    # -- within

    async def _head(self, stream: str) -> int:
        try:
            return (await self._log.state(stream)).marks.head
        except StreamNotFound:
            return 0

    def _lock(self, stream: str) -> asyncio.Lock:
        lock = self._locks.get(stream)
        if lock is None:
            lock = self._locks[stream] = asyncio.Lock()
        return lock


def _passed(version: Version, linted: Linted) -> Manifest:
    if linted.manifest is None:
        first = linted.errors[0]
        raise Fault(f"version {version.number} of {version.stream} cannot be read: {first.code} at {first.path}")
    return linted.manifest
