"""Opening a damaged store in a process of its own, because a map of a broken file may end the process that reads it.
Says what could still be read; whether it is right is for the caller to know."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from seamark.clock import SystemClock
from seamark.errors import SeamarkError
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Log
from seamark.log.record import Draft, Record
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics

PATIENCE_SECONDS = 60.0
PAGE_RECORDS = 16  # small pages, so that one damaged value hides little


class Remains(msgspec.Struct):
    """What was left of a store. An error is written as its code."""

    ended_by: int | None = None  # the signal that ended the examining process; 0 when it had to be ended
    open_error: str | None = None
    list_error: str | None = None
    records: dict[str, list[Record]] = msgspec.field(default_factory=dict)
    read_errors: dict[str, str] = msgspec.field(default_factory=dict)
    write_error: str | None = None

    @property
    def errors(self) -> set[str]:
        found = {self.open_error, self.list_error, self.write_error, *self.read_errors.values()}
        return {error for error in found if error is not None}


class Morgue:
    """Forks a fresh process for every examination, from a small one that has everything imported."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])

    def remains(self, path: Path, *, write: bool = False) -> Remains:
        """Open the store, read every stream, and if asked append to each."""
        answer, signal = self._ask(_remains, path, write)
        return msgspec.msgpack.decode(answer, type=Remains) if answer else Remains(ended_by=signal)

    def findings(self, path: Path) -> int:
        """How many findings `verify` has; -1 when it refuses to look at the file at all. It may not die."""
        answer, signal = self._ask(_findings, path, write=False)
        assert answer, f"verify was ended by signal {signal}"
        return msgspec.msgpack.decode(answer, type=int)

    def _ask(self, act: Callable[[str, bool], object], path: Path, write: bool) -> tuple[bytes, int]:
        """What the process answered, or nothing and the signal that ended it."""
        here, there = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_answer, args=(act, str(path), write, there), daemon=True)
        process.start()
        there.close()
        try:
            if here.poll(PATIENCE_SECONDS):
                return here.recv_bytes(), 0
            process.kill()
            return b"", 0
        except EOFError:
            process.join()
            return b"", -(process.exitcode or 0)
        finally:
            here.close()
            process.join()
            process.close()


def _answer(act: Callable[[str, bool], object], path: str, write: bool, there: Connection) -> None:
    there.send_bytes(msgspec.msgpack.encode(act(path, write)))


def _findings(path: str, _: bool) -> int:
    try:
        return len(verify(Path(path)).findings)
    except SeamarkError:
        return -1


def _remains(path: str, write: bool) -> Remains:
    return asyncio.run(_examine(Path(path), write))


async def _examine(path: Path, write: bool) -> Remains:
    remains = Remains()
    try:
        log = open_embedded(path, SystemClock(), Metrics())
    except SeamarkError as error:
        remains.open_error = error.code
        return remains
    try:
        names = [state.name for state in await log.streams(limit=1_000)]
    except SeamarkError as error:
        remains.list_error = error.code
        names = []
    for name in names:
        await _read(log, name, remains)
    if write:
        await _write(log, names, remains)
    try:
        await log.close()
    except SeamarkError as error:
        remains.write_error = error.code
    return remains


async def _read(log: Log, name: str, remains: Remains) -> None:
    """Read on after a damaged place, as a reader would who knows that it is there."""
    found: dict[int, Record] = {}
    seq = 0
    while True:
        try:
            page = await log.read(name, Cursor(seq), records_max=PAGE_RECORDS)
        except SeamarkError as error:
            remains.read_errors[name] = error.code
            at = int(error.fields.get("seq") or 0)
            seq = max(seq + 1, at)
            try:
                head = (await log.state(name)).marks.head
            except SeamarkError:
                break
            if seq >= head:
                break
            continue
        for record in page.records:
            found[record.seq] = record
        if page.caught_up:
            break
        seq = page.cursor.seq
    remains.records[name] = list(found.values())


async def _write(log: Log, names: list[str], remains: Remains) -> None:
    for name in names:
        try:
            await log.append(Append(stream=name, drafts=[Draft(b"after the damage")]))
        except SeamarkError as error:
            remains.write_error = error.code
