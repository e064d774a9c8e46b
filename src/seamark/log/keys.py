"""How things that belong to a stream are filed beside its records: subjects, idempotency keys, their expiry."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_128_digest

from seamark.clock import NS_PER_MS
from seamark.log.seal import Buffer, Damaged, seal, unseal
from seamark.log.store import ID, SEQ, Change, Space


class FirstReceipt(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What an idempotency key stands for: when it was used, and what it brought."""

    created: int
    first: int
    last: int
    head: int
    ts: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FirstReceipt)


def subject_prefix(stream_id: int, subject: tuple[str, ...]) -> bytes:
    return ID.pack(stream_id) + xxh3_128_digest(_encoder.encode(subject))


def subject_key(stream_id: int, subject: tuple[str, ...], seq: int) -> bytes:
    return subject_prefix(stream_id, subject) + SEQ.pack(seq)


def subject_put(stream_id: int, subject: tuple[str, ...], seq: int) -> Change:
    key = subject_key(stream_id, subject, seq)
    return Space.SUBJECTS, key, seal(key, b"")


def subject_removal(stream_id: int, subject: tuple[str, ...], seq: int) -> Change:
    return Space.SUBJECTS, subject_key(stream_id, subject, seq), None


def idempotency_key(stream_id: int, key: str) -> bytes:
    return ID.pack(stream_id) + key.encode()


def receipt_puts(stream_id: int, key: str, row: FirstReceipt, window_ms: int) -> list[Change]:
    """File a first receipt, and note when it may be forgotten."""
    place = idempotency_key(stream_id, key)
    return [(Space.KEYS, place, seal(place, _encoder.encode(row))), expiry_put(place, row.created, window_ms)]


def expiry_put(place: bytes, created: int, window_ms: int) -> Change:
    key = SEQ.pack(max(created + window_ms * NS_PER_MS, 0)) + place
    return Space.EXPIRY, key, seal(key, b"")


def receipt_of(place: bytes, value: Buffer) -> FirstReceipt:
    """Raises Damaged."""
    try:
        return _decoder.decode(unseal(place, value))
    except msgspec.MsgspecError as error:
        raise Damaged(str(error)) from error
