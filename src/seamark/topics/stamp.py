"""Where a copy comes from, told in its meta by routers that promise `exactly_once`.

The stamp is the member `_topics_router` of meta. A meta that is no object, or that has no room for another key, becomes the
member `_topics_original_meta` of a new one. What stood in meta stays as it was written, number for number.

Clients know the source's life as `source_topic_id`, a number, with `source_epoch`. Our instance ids are text, so the number
is a hash of it, short enough for the whole numbers of JSON readers that only have doubles; the epoch is always the first.
"""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_intdigest

from seamark.limits import META_KEYS_MAX
from seamark.log.record import Record

MEMBER = "_topics_router"
ORIGINAL = "_topics_original_meta"
EPOCH = 1
_ID_BITS = 53
_MARK = b'"' + MEMBER.encode() + b'"'


class _Stamp(msgspec.Struct):
    idempotency_key: str


class _Stamped(msgspec.Struct, rename={"stamp": MEMBER}):
    stamp: _Stamp


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_stamped = msgspec.json.Decoder(_Stamped)
_encode = msgspec.json.Encoder().encode


class Stamps:
    """Writes and reads the stamps of one router for one life of its source."""

    def __init__(self, router: str, source: str, instance: str) -> None:
        self.instance = instance
        topic_id = xxh3_64_intdigest(instance.encode()) >> (64 - _ID_BITS)
        self._key = f"router:{router}:{topic_id}:{EPOCH}:"
        self._facts = {"router": router, "source_topic": source, "source_topic_id": topic_id, "source_epoch": EPOCH}

    def key(self, seq: int) -> str:
        return f"{self._key}{seq}"

    def on(self, meta: bytes | None, seq: int) -> bytes:
        """`meta` with the stamp of the copy of source record `seq`."""
        stamp = msgspec.Raw(_encode({"idempotency_key": self.key(seq), **self._facts, "source_seq": seq}))
        if meta is None:
            return _encode({MEMBER: stamp})
        try:
            members = _members.decode(meta)
        except msgspec.ValidationError:
            members = None
        if members is None or (len(members) >= META_KEYS_MAX and MEMBER not in members):
            members = {ORIGINAL: msgspec.Raw(meta)}
        members[MEMBER] = stamp
        return _encode(members)

    def seq(self, record: Record) -> int | None:
        """Which source record this is a copy of; None when this router did not make it from this source."""
        try:
            key = _stamped.decode(record.meta or b"").stamp.idempotency_key
        except msgspec.DecodeError:
            return None
        digits = key.removeprefix(self._key)
        if digits == key or not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
            return None
        return int(digits)


def may_be_stamped(record: Record) -> bool:
    """A cheap look, to pass over those that cannot be."""
    return record.meta is not None and _MARK in record.meta
