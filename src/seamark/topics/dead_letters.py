"""Jobs that were delivered too often move to another topic: first there, then away from here.

A move that is cut in two must neither lose the job nor leave it in both places. So the copy and a mark that says "this job
has moved" are one append; whoever opens the queue next finds the mark and finishes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from seamark import limits
from seamark.errors import SeamarkError
from seamark.log.protocol import Append, Log, Put, Shelf
from seamark.log.record import Draft, Record
from seamark.telemetry import events
from seamark.telemetry.logs import logger
from seamark.topics.model import stream_of, topic_of

_MOVED = "queue-moved"  # <stream> NUL <seq>: instance, for every job that is on its way
_COUNT = "queue-dead"  # <stream>: how many have moved in this instance
_SEQ_BYTES = 8
_ORIGINAL = "_topics_original_meta"  # where a meta goes that is no object

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_log = logger("topics")


class _Count(msgspec.Struct, array_like=True):
    instance: str
    moved: int


_COUNTS = msgspec.json.Decoder(_Count)


class DeadLetters:
    """What one queue has sent away. `moving` are the seqs whose copy is made and whose original may still be there."""

    def __init__(self, log: Log, stream: str, instance: str, ensure: Callable[[str], Awaitable[object]]) -> None:
        """`ensure` makes a topic where there is none."""
        self._log = log
        self._ensure = ensure
        self._shelf = log if isinstance(log, Shelf) else None
        self._stream = stream
        self._instance = instance
        self.moving: set[int] = set()
        self.count = 0
        if self._shelf is not None:
            self._load(self._shelf)

    async def move(self, target: str, jobs: Sequence[tuple[Record, int]]) -> None:
        """Copy jobs (with how often each was delivered) to topic `target`, which is made if need be; those that it took
        are in `moving` then. One that it does not take stays where it is."""
        answers = await asyncio.gather(*(self._copy(target, *job) for job in jobs), return_exceptions=True)
        for (record, _), answer in zip(jobs, answers, strict=True):
            if isinstance(answer, SeamarkError):
                _log.warning(
                    events.DEAD_LETTER_REFUSED,
                    queue=topic_of(self._stream),
                    seq=record.seq,
                    target=target,
                    error=answer.message,
                )
            elif isinstance(answer, BaseException):
                raise answer
            else:
                self.moving.add(record.seq)

    async def moved(self) -> None:
        """The originals in `moving` are gone: count them, and forget the marks."""
        seqs, self.moving = self.moving, set()
        self.count += len(seqs)
        if self._shelf is not None:
            count = Put(_COUNT, self._stream.encode(), _encode(_Count(self._instance, self.count)))
            await self._log.append(Append(puts=[count, *(Put(_MOVED, self._mark(seq), None) for seq in sorted(seqs))]))

    async def _copy(self, target: str, record: Record, deliveries: int) -> None:
        if self._shelf is not None and self._shelf.fetch(_MOVED, self._mark(record.seq)) is not None:
            return  # an attempt that failed had come further than it was told
        await self._ensure(target)
        meta = stamped(record.meta, source=topic_of(self._stream), deliveries=deliveries, seq=record.seq)
        await self._log.append(
            Append(
                stream=stream_of(target),
                drafts=[Draft(record.payload, record.node, record.tag, meta)],
                key=f"$dead_letter:{self._instance}:{record.seq}",
                puts=() if self._shelf is None else [Put(_MOVED, self._mark(record.seq), self._instance.encode())],
                stamp_bytes=limits.STAMP_BYTES_MAX,
            )
        )

    def _load(self, shelf: Shelf) -> None:
        stored = shelf.fetch(_COUNT, self._stream.encode())
        if stored is not None:
            count = _COUNTS.decode(stored)
            self.count = count.moved if count.instance == self._instance else 0
        for key, instance in shelf.scan(_MOVED, _prefix(self._stream)):
            if instance.decode() == self._instance:
                self.moving.add(int.from_bytes(key[-_SEQ_BYTES:]))

    def _mark(self, seq: int) -> bytes:
        return _prefix(self._stream) + seq.to_bytes(_SEQ_BYTES)


def interrupted(shelf: Shelf) -> Iterable[str]:
    """The streams that have moves to finish."""
    return {key[: -_SEQ_BYTES - 1].decode() for key, _ in shelf.scan(_MOVED)}


def forget(shelf: Shelf, stream: str) -> list[Put]:
    """What to put when the queue is gone."""
    puts = [Put(_MOVED, key, None) for key, _ in shelf.scan(_MOVED, _prefix(stream))]
    if shelf.fetch(_COUNT, stream.encode()) is not None:
        puts.append(Put(_COUNT, stream.encode(), None))
    return puts


def stamped(meta: bytes | None, *, source: str, deliveries: int, seq: int) -> bytes:
    """A record's meta with where it comes from. Everything else in it stays byte for byte."""
    fields = _fields(meta)
    stamps = {"from": source, "deliveries": str(deliveries), "src_seq": str(seq)}
    for name, value in stamps.items():
        fields.pop(f"$dead_letter_{name}", None)
        fields[f"$dead_letter_{name}"] = msgspec.Raw(_encode(value))
    return _encode(fields)


def _fields(meta: bytes | None) -> dict[str, msgspec.Raw]:
    if meta is None:
        return {}
    try:
        return _OBJECT.decode(meta)
    except msgspec.ValidationError:
        return {_ORIGINAL: msgspec.Raw(meta)}


def _prefix(stream: str) -> bytes:
    return stream.encode() + b"\0"
