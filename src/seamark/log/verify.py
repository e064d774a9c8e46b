"""Walk a store and prove that every byte that matters is what was written: structure, seals, order, counts, marks.

Reads only. The file's structure is proven first, page by page and without mapping it, because a map of a broken file
may end the process that reads it; only a sound file is then opened and read value by value.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import lmdb

from seamark import limits
from seamark.errors import Corrupt, StoreLocked
from seamark.log import keys, purge
from seamark.log import meta as metas
from seamark.log.commit import NEXT_ID
from seamark.log.engines import directory
from seamark.log.engines.embedded import LmdbView
from seamark.log.findings import Finding, Report
from seamark.log.inspection import Inspection
from seamark.log.meta import Meta
from seamark.log.seal import Damaged, unseal
from seamark.log.store import ID, SEQ, Space

__all__ = ["Finding", "Report", "verify"]

Progress = Callable[[int, int], None]


def verify(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Report:
    """Everything that is wrong with the store in `path`. `progress` is told streams done and streams in all."""
    home = Path(path)
    data = home / directory.DATA_NAME
    report = Report()
    with directory.Watch(home) as watch:
        report.at_rest = not watch.owned
        if not data.exists() or data.stat().st_size == 0:
            report.note("", 0, f"{data} is missing or empty")
            return report
        _check_file(data, report)
        if report.findings:
            return report
        try:
            _Walk(home, report, progress or (lambda done, total: None)).run()
        except (lmdb.Error, Corrupt) as error:
            report.note("", 0, f"the store cannot be read: {error}")
    return report


def _check_file(data: Path, report: Report) -> None:
    try:
        tail = directory.Tail(data)
    except Corrupt as damage:
        report.note("", 0, damage.message)
        return
    if tail.cut:
        report.note("", 0, f"the file has {tail.size} bytes, its header says at least {tail.expected}")
    if not report.at_rest:
        return
    if not tail.paired:
        report.note("", 0, "the two headers of the file do not follow one another")
    for problem in directory.structure_problems(data):
        report.note("", 0, problem)


class _Walk:
    """The values of one sound file."""

    def __init__(self, home: Path, report: Report, progress: Progress) -> None:
        self._home = home
        self._report = report
        self._progress = progress
        self._streams: dict[int, str] = {}
        self._dropped: set[int] = set()
        self._heads: dict[int, int] = {}

    def run(self) -> None:
        env = self._open()
        try:
            dbs = {space: env.open_db(space.name.lower().encode("ascii"), create=False) for space in Space}
            with env.begin(buffers=True) as txn:
                view = LmdbView(txn, dbs)
                next_id = self._check_next_id(view)
                found = self._load(view, next_id)
                self._check_dropped(view)
                for number, (name, meta) in enumerate(found):
                    self._progress(number, len(found))
                    Inspection(name, meta, view, self._report).run()
                self._progress(len(found), len(found))
                self._check_owners(view)
                self._check_keys(view)
                self._check_seals(view)
                self._check_searches(view)
        finally:
            env.close()

    def _open(self) -> lmdb.Environment:
        try:
            return lmdb.open(
                str(self._home),
                readonly=True,
                create=False,
                lock=not self._report.at_rest,
                max_dbs=len(Space),
                max_readers=limits.STORE_READERS_MAX,
            )
        except lmdb.Error as error:
            if self._report.at_rest:
                raise
            message = f"{self._home} is open in this process: verify a backup, or from another process"
            raise StoreLocked(message, path=str(self._home), owner="this process") from error

    def _check_next_id(self, view: LmdbView) -> int:
        raw = view.get(Space.FACTS, NEXT_ID)
        if raw is None:
            return 1
        try:
            body = unseal(NEXT_ID, raw)
            return int(ID.unpack(body)[0])
        except Damaged as damage:
            self._report.note("", 0, f"the next stream id is damaged: {damage}")
            return 2**32

    def _load(self, view: LmdbView, next_id: int) -> list[tuple[str, Meta]]:
        found: list[tuple[str, Meta]] = []
        for key, value in view.scan(Space.STREAMS, b""):
            name = key.decode("utf-8", "replace")
            try:
                meta = metas.decode(key, value)
            except Damaged as damage:
                self._report.note(name, 0, f"the metadata is damaged: {damage}")
                continue
            if meta.id in self._streams or meta.id >= next_id:
                self._report.note(name, 0, f"the stream id {meta.id} is used twice or was never given out")
            self._streams[meta.id] = name
            self._heads[meta.id] = meta.head
            found.append((name, meta))
        self._report.streams = len(found)
        return found

    def _check_dropped(self, view: LmdbView) -> None:
        for key, value in view.scan(Space.DROPPED, b""):
            try:
                unseal(key, value)
                self._dropped.add(ID.unpack(key)[0])
            except Damaged as damage:
                self._report.note("", 0, f"the note of a dropped stream is damaged: {damage}")

    def _check_owners(self, view: LmdbView) -> None:
        """Nothing may be filed under an id that no stream has."""
        for space in purge.OWNED:
            start: bytes | None = b""
            while start is not None:
                first = next(iter(view.scan(space, start)), None)
                if first is None:
                    break
                owner = ID.unpack_from(first[0])[0]
                if owner not in self._streams and owner not in self._dropped:
                    self._report.note("", 0, f"{space.name.lower()} of a stream {owner} that does not exist")
                start = ID.pack(owner + 1) if owner < 2**32 - 1 else None

    def _check_keys(self, view: LmdbView) -> None:
        for place, value in view.scan(Space.KEYS, b""):
            owner = ID.unpack_from(place)[0]
            name = self._streams.get(owner, "")
            try:
                row = keys.receipt_of(place, value)
            except Damaged as damage:
                self._report.note(name, 0, f"an idempotency key is damaged: {damage}")
                continue
            if name and not (1 <= row.first <= row.last + 1 and row.last <= self._heads[owner]):
                self._report.note(name, row.first, "an idempotency key stands for seqs that were never given out")

    def _check_seals(self, view: LmdbView) -> None:
        for space in (Space.FACTS, Space.EXPIRY, Space.SHELF):
            for key, value in view.scan(space, b""):
                try:
                    unseal(key, value)
                except Damaged as damage:
                    self._report.note("", 0, f"a value of {space.name.lower()} is damaged: {damage}")
                if space is Space.EXPIRY and len(key) <= SEQ.size + ID.size:
                    self._report.note("", 0, "an expiry without a key")

    def _check_searches(self, view: LmdbView) -> None:
        """The walk went from leaf to leaf. Whoever looks for one key is led there by the inner pages."""
        for space in Space:
            astray = sum(view.get(space, key) is None for key, _ in view.scan(space, b""))
            if astray:
                self._report.note("", 0, f"{astray} keys of {space.name.lower()} are not found where they are")
