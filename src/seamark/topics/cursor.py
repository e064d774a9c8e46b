"""Composite cursors: the places of a session on all its topics, as one event id and back. Pure.

An id is base64url (no padding) of the JSON object `{topic: seq}`. Where that would grow beyond what fits a header, it is a
checkpoint token instead: `ckpt_` and the same numbers packed in the order of the session's topics, with a mark of which
topics those are. Both stand for themselves, so any id ever given out can be resumed from, also after a restart.
"""

from __future__ import annotations

import re
import zlib
from array import array
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Annotated
from weakref import WeakValueDictionary

import msgspec

from seamark.limits import WATCH_INLINE_BYTES_MAX, WATCH_INLINE_TOPICS_MAX
from seamark.topics.model import U64_MAX, topic_of

CHECKPOINT = b"ckpt_"
_MARK_BYTES = 4
_NARROW, _WIDE = "I", "Q"  # four and eight bytes for each seq
_NARROW_MAX = 2**32 - 1
_BASE64URL = re.compile(rb"[A-Za-z0-9_-]+={0,2}")
_MAP = msgspec.json.Decoder(dict[str, Annotated[int, msgspec.Meta(ge=0)]])

Places = list[tuple[int, int]]
"""Pairs of a topic's position in its session and a seq."""


def solo_id(name: bytes, seq: int) -> bytes:
    """The id of a session with one topic, which all sessions on that topic have in common."""
    return _packed(b'{"%b":%d}' % (name, seq))


class TopicSet:
    """The topics of one session, in byte order of name. Made by `topic_set`, so that sessions on the same have one object."""

    __slots__ = ("__weakref__", "_keys", "_mark", "streams")

    def __init__(self, streams: tuple[str, ...]) -> None:
        self.streams = streams
        # Names of topics that exist need no escaping in JSON.
        inline = len(self.streams) <= WATCH_INLINE_TOPICS_MAX
        self._keys = tuple(b'"%b":' % topic_of(stream).encode() for stream in self.streams) if inline else ()
        self._mark = zlib.crc32("\n".join(self.streams).encode()).to_bytes(_MARK_BYTES, "little")

    def __len__(self) -> int:
        return len(self.streams)

    def position(self, stream: str) -> int:
        """Where one of the set's streams stands in it."""
        return bisect_left(self.streams, stream)

    def event_id(self, seqs: Sequence[int]) -> bytes:
        """The id for these seqs, one for each stream in order."""
        if self._keys:
            inside = b",".join([b"%b%d" % pair for pair in zip(self._keys, seqs, strict=True)])
            if len(inside) <= WATCH_INLINE_BYTES_MAX:
                return _packed(b"{%b}" % inside)
        width = _NARROW if max(seqs) <= _NARROW_MAX else _WIDE
        return CHECKPOINT + _packed(self._mark + array(width, seqs).tobytes())

    def places(self, event_id: bytes) -> Places:
        """What an id says about the set's topics. Of an id that is none, or another session's, nothing."""
        if event_id.startswith(CHECKPOINT):
            return self._checkpoint(_unpacked(event_id.removeprefix(CHECKPOINT)))
        try:
            seqs = _MAP.decode(_unpacked(event_id))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return []
        found = []
        for position, stream in enumerate(self.streams):
            seq = seqs.get(topic_of(stream))
            if seq is not None and seq <= U64_MAX:
                found.append((position, seq))
        return found

    def _checkpoint(self, raw: bytes) -> Places:
        for width in (_NARROW, _WIDE):
            seqs = array(width)
            if raw.startswith(self._mark) and len(raw) == _MARK_BYTES + len(self) * seqs.itemsize:
                seqs.frombytes(raw[_MARK_BYTES:])
                return list(enumerate(seqs))
        return []


_sets: WeakValueDictionary[tuple[str, ...], TopicSet] = WeakValueDictionary()


def topic_set(streams: Iterable[str]) -> TopicSet:
    """The set of these streams."""
    ordered = tuple(sorted(streams))
    found = _sets.get(ordered)
    if found is None:
        found = _sets[ordered] = TopicSet(ordered)
    return found


def rewound(stored: int, given: int) -> int:
    """A session's place is authoritative: what a client says can only take it back."""
    return min(stored, given)


def restored(stored: int, given: int, head: int) -> int:
    """The same for a place that was saved some time before a crash, and is only known to be passed: whoever holds an id
    beyond it was given one."""
    return given if stored <= given <= head else rewound(stored, given)


def _packed(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def _unpacked(text: bytes) -> bytes:
    """b"" for what is not base64url."""
    if not _BASE64URL.fullmatch(text):
        return b""
    bare = text.rstrip(b"=")
    if len(bare) % 4 == 1:
        return b""
    return urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
