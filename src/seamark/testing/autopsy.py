"""Opening a damaged store in a process of its own, because a map of a broken file may end the process that reads it.
Says what could still be read; whether that is right is for the caller to know.

`python -m seamark.testing.autopsy` is the small process that forks one child for every examination it is asked for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from seamark.clock import SystemClock
from seamark.errors import SeamarkError
from seamark.log.engines.embedded import open_embedded
from seamark.log.protocol import Append, Log
from seamark.log.record import Draft, Record
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.telemetry import logs
from seamark.telemetry.metrics import Metrics

PATIENCE_SECONDS = 60
AFTER_THE_DAMAGE = b"after the damage"
PAGE_RECORDS = 16  # small pages, so that one damaged value hides little


class Wish(msgspec.Struct):
    """Verify a store, then open it, read these streams, and then, if asked, append to each of them."""

    path: str
    streams: list[str]
    write: bool


class Remains(msgspec.Struct):
    """What was left of a store. An error is written as its code."""

    open_error: str | None = None
    list_error: str | None = None
    records: dict[str, list[Record]] = msgspec.field(default_factory=dict)
    read_errors: dict[str, str] = msgspec.field(default_factory=dict)
    write_error: str | None = None

    @property
    def errors(self) -> set[str]:
        found = {self.open_error, self.list_error, self.write_error, *self.read_errors.values()}
        return {error for error in found if error is not None}


class Verdict(msgspec.Struct):
    """How an examination went. Nothing is certain: each part may be missing because the process ended before it."""

    findings: list[str] | None = None  # what `verify` says, before anything was opened
    remains: Remains | None = None
    unforeseen: str = ""  # the traceback of an exception that is no SeamarkError
    ended_by: int = 0  # the signal that ended the process


class Morgue:
    """The examining process. Use it as a context manager."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "seamark.testing.autopsy"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Morgue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def examine(self, path: Path, streams: Iterable[str], *, write: bool = False) -> Verdict:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(Wish(str(path), list(streams), write)) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Verdict)


def main() -> None:
    logs.configure(level="critical", style="json")
    for line in sys.stdin.buffer:
        verdict = _in_a_child(msgspec.json.decode(line, type=Wish))
        sys.stdout.buffer.write(msgspec.json.encode(verdict) + b"\n")
        sys.stdout.buffer.flush()


def _in_a_child(wish: Wish) -> Verdict:
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_SECONDS)
        with open(there, "wb", buffering=0) as answer:
            _answer(wish, answer)
        os._exit(0)
    os.close(there)
    with open(here, "rb") as said:
        lines = said.read().splitlines()
    _, status = os.waitpid(child, 0)
    verdict = msgspec.json.decode(lines[-1], type=Verdict) if lines else Verdict()
    verdict.ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return verdict


def _answer(wish: Wish, answer: IO[bytes]) -> None:
    """Say after every step what is known; the last line counts."""
    verdict, path = Verdict(), Path(wish.path)
    try:
        verdict.findings = [str(finding) for finding in verify(path).findings]
        answer.write(msgspec.json.encode(verdict) + b"\n")
        verdict.remains = asyncio.run(_examine(path, wish))
    except BaseException:
        verdict.unforeseen = traceback.format_exc()
    answer.write(msgspec.json.encode(verdict) + b"\n")


async def _examine(path: Path, wish: Wish) -> Remains:
    remains = Remains()
    try:
        log = open_embedded(path, SystemClock(), Metrics())
    except SeamarkError as error:
        remains.open_error = error.code
        return remains
    try:
        await log.streams(limit=1_000)
    except SeamarkError as error:
        remains.list_error = error.code
    for name in wish.streams:
        await _read(log, name, remains)
    if wish.write:
        await _write(log, wish.streams, remains)
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
            await log.append(Append(stream=name, drafts=[Draft(AFTER_THE_DAMAGE)]))
        except SeamarkError as error:
            remains.write_error = error.code


if __name__ == "__main__":
    main()
