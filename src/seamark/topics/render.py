"""JSON as this surface writes it: compact, keys in the contract's order, payload bytes as they were sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from seamark.clock import NS_PER_MS
from seamark.log.protocol import Page, Receipt, StreamState
from seamark.log.record import Record
from seamark.log.watermarks import Gap, Loss, Watermarks
from seamark.topics.model import TopicConfig, config_of, topic_of

ENCODER = msgspec.json.Encoder()
_LF, _CR = b"\n\r"  # as integers: a one-byte needle of type bytes costs seven times as much
_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_TRUE, _FALSE = b"true", b"false"

# How this surface calls what the log lost. What a crash took was at nobody's wish, like an eviction.
REASONS = {
    Loss.CAP: "cap", Loss.TTL: "ttl", Loss.MIXED: "mixed", Loss.SOURCE: "source_trim", Loss.CRASH: "mixed",
    Loss.RECREATED: "recreated",
}  # fmt: skip


class Variant(NamedTuple):
    """Which parts of a record a reader wants. Equal variants make equal bytes, so these can be shared."""

    meta: bool = True
    tags: bool = False
    data: bool = True

    def record(self, record: Record) -> bytes:
        """One record, on one line whatever white space its data came with."""
        node, tag, meta = record.node, record.tag if self.tags else None, record.meta if self.meta else None
        if node is None and tag is None and meta is None and self.data:
            return b'{"$seq":%d,"$ts":%d,"data":%b}' % (
                record.seq, record.ts // NS_PER_MS, one_line(record.payload),
            )  # fmt: skip
        parts = [b'{"$seq":%d,"$ts":%d' % (record.seq, record.ts // NS_PER_MS)]
        if node is not None:
            parts.append(b'"$node":' + ENCODER.encode(node))
        if tag is not None:
            parts.append(b'"$tag":' + ENCODER.encode(tag))
        if self.data:
            parts.append(b'"data":' + one_line(record.payload))
        if meta is not None:
            parts.append(b'"meta":' + one_line(meta))
        return b",".join(parts) + b"}"


def one_line(text: bytes) -> bytes:
    """JSON without line ends: inside its strings they are always escaped, so these are white space between tokens."""
    return text.translate(_BREAKS) if _LF in text or _CR in text else text


def performance(seconds: float) -> dict[str, float]:
    """What every answer says of itself; `seconds` is the time it took."""
    return {"server_total_ms": round(seconds * 1_000, 3)}


def answer(facts: dict[str, object], seconds: float) -> bytes:
    """An answer's facts with how long it took."""
    facts["performance"] = performance(seconds)
    return ENCODER.encode(facts)


def receipt_json(receipt: Receipt, count: int, seconds: float, *, seqs: bool) -> bytes:
    """The answer to a write of `count` records. Names of topics that exist need no escaping."""
    first, last = receipt.first, receipt.last
    listed = b""
    if seqs:
        listed = b'"seqs":[%d],' % first if first == last else b'"seqs":%b,' % ENCODER.encode([*range(first, last + 1)])
    timing = b""
    if not receipt.deduped:
        timing = b',"wal_append_ms":%.4f,"fsync_ms":%.4f' % (receipt.write_ms, receipt.sync_ms)
    return (
        b'{"topic":"%b","first_seq":%d,"last_seq":%d,%b"head_seq":%d,"count":%d,"created":%b,"deduped":%b,'
        b'"performance":{"server_total_ms":%.3f%b}}'
    ) % (
        topic_of(receipt.stream).encode(), first, last, listed, receipt.head, count, _TRUE if receipt.created else _FALSE,
        _TRUE if receipt.deduped else _FALSE, seconds * 1_000, timing,
    )  # fmt: skip


def tombstone(gap: Gap, marks: Watermarks) -> dict[str, object]:
    """A loss as diff tells it. A topic that was made again is told with all it holds now as the range, although reading
    goes on with the first of it; an empty one is told as one record missed, because that is what clients know."""
    first, last, missed = gap.first, gap.last, gap.missed
    if gap.loss is Loss.RECREATED:
        first, last, missed = 1, marks.head, max(marks.head, 1)
    return {
        "gap_from": first,
        "gap_to": last,
        "reason": REASONS[gap.loss],
        "missed_estimate": missed,
        "earliest_seq": marks.earliest,
        "head_seq": marks.head,
    }


def diff_json(name: str, page: Page, fragments: Sequence[bytes], *, scanned: int, seconds: float) -> bytes:
    """The answer of a diff, joined from the records' own bytes rather than rebuilt."""
    marks, gap, cursor = page.marks, page.gap, page.cursor.seq
    return (
        b'{"topic":"%b","records":[%b],"next_from_seq":%d,"head_seq":%d,"earliest_seq":%d,"caught_up":%b,"tombstone":%b,'
        b'"lag":%d,"performance":{"server_total_ms":%.3f,"records_scanned":%d}}'
    ) % (
        name.encode(), b",".join(fragments), cursor, marks.head, marks.earliest, _TRUE if page.caught_up else _FALSE,
        b"null" if gap is None else ENCODER.encode(tombstone(gap, marks)), max(marks.head - cursor, 0), seconds * 1_000, scanned,
    )  # fmt: skip


def config_dict(config: TopicConfig) -> dict[str, object]:
    """All settings, those at their default as well."""
    return msgspec.structs.asdict(config)


def state_dict(state: StreamState, priority: int, last_read_ms: int | None) -> dict[str, object]:
    """A topic as it stands."""
    marks, config = state.marks, config_of(state.settings)
    return {
        "topic": topic_of(state.name),
        "type": config.type,
        "head_seq": marks.head,
        "earliest_seq": marks.earliest,
        "next_seq": marks.head + 1,
        "count": state.count,
        "bytes": state.bytes,
        "config": config_dict(config),
        "effective_priority": priority,
        "last_write_ts": state.last_ts // NS_PER_MS or None,
        "last_read_ts": last_read_ms,
    }


def list_row(state: StreamState, priority: int) -> dict[str, object]:
    """A topic in a list of them."""
    marks = state.marks
    return {
        "topic": topic_of(state.name),
        "head_seq": marks.head,
        "earliest_seq": marks.earliest,
        "count": state.count,
        "bytes": state.bytes,
        "durable": config_of(state.settings).durable,
        "effective_priority": priority,
    }
