"""The raw surface's wire shapes: a log stream over HTTP with nothing on top of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import msgspec

from seamark import limits
from seamark.clock import NS_PER_MS
from seamark.errors import BadInput, RecordTooLarge
from seamark.log.protocol import Page, Receipt, StreamState
from seamark.log.record import Draft, Geometry, Record
from seamark.log.settings import Discard, Durability, StreamSettings
from seamark.match.spatial import geometry_of
from seamark.wire.strictjson import decode, opened

PREFIX = "raw:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}")

Count = Annotated[int, msgspec.Meta(ge=0, le=limits.SEQ_MAX)]
Span = Annotated[int, msgspec.Meta(ge=0, le=limits.SPAN_MS_MAX)]
_LF, _CR = b"\n\r"  # as integers: a one-byte needle of type bytes costs seven times as much
_BREAKS = bytes.maketrans(b"\r\n", b"  ")


class RawDraft(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One record as a client sends it. `data` is any JSON, kept byte for byte."""

    data: msgspec.Raw
    tag: str | None = None
    node: str | None = None
    subject: tuple[str, ...] | None = None
    polygon: str | None = None


class AppendBody(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    records: list[RawDraft]
    key: str | None = None


class SettingsBody(msgspec.Struct, forbid_unknown_fields=True):
    """What a client may set on a raw stream; an omitted field goes back to its default."""

    durability: Durability = Durability.FSYNC
    cap_records: Count = 0
    cap_bytes: Count = 0
    ttl_ms: Span = 0
    discard: Discard = Discard.OLD
    latest_per_subject: Count = 0
    dedupe_window_ms: Span = 120_000


class DeleteBody(msgspec.Struct, forbid_unknown_fields=True):
    before: Count | None = None
    tag: str | None = None
    tag_prefix: str | None = None
    seqs: tuple[Count, ...] | None = None


_APPEND = msgspec.json.Decoder(AppendBody)
_RECORD_JSON_BYTES_MIN = len('{"data":1}')
_RECORDS_LEVEL = 3  # the body, its list, each record


class _RecordOut(msgspec.Struct, omit_defaults=True, gc=False):
    seq: int
    ts_ms: int
    data: msgspec.Raw
    tag: str | None = None
    node: str | None = None
    subject: tuple[str, ...] | None = None
    polygon: str | None = None


ENCODER = msgspec.json.Encoder()
_RECEIPT = (
    b'{"stream":"%b","instance":"%b","first":%d,"last":%d,"head":%d,"ts_ms":%d,"created":%b,"deduped":%b,'
    b'"write_ms":%.3f,"sync_ms":%.3f}'
)


@lru_cache(limits.ROUTE_CACHE_MAX)
def stream_of(name: str) -> str:
    """The log's name for the raw stream `name`. Raises BadInput."""
    if NAME.fullmatch(name) is None:
        raise BadInput(
            f"{name!r} is not a stream name: letters, digits and ._:- with a letter or digit first, at most 255"
        )
    return PREFIX + name


def drafts_of(records: Sequence[RawDraft]) -> list[Draft]:
    """What the log is asked to append. Raises RecordTooLarge, BadFilter."""
    left = limits.GEOMETRY_BYTES_PER_APPEND_MAX

    def geometry(text: str) -> Geometry:
        nonlocal left
        left -= len(text)
        if left < 0:
            most = limits.GEOMETRY_BYTES_PER_APPEND_MAX
            raise RecordTooLarge(f"the polygons of one append have more than {most} characters", max=most)
        return geometry_of(text)

    return [
        Draft(
            bytes(record.data),
            record.node,
            record.tag,
            None,
            record.subject,
            None if record.polygon is None else geometry(record.polygon),
        )
        for record in records
    ]


def settings_of(body: SettingsBody) -> StreamSettings:
    return StreamSettings(**msgspec.structs.asdict(body))


def record_json(record: Record) -> bytes:
    """One record, on one line whatever white space its data came with."""
    payload = record.payload
    if _LF in payload or _CR in payload:
        # Inside JSON strings line ends are always escaped, so these are white space between tokens.
        payload = payload.translate(_BREAKS)
    geometry = record.geometry
    if record.tag is None and record.node is None and record.subject is None and geometry is None:
        return b'{"seq":%d,"ts_ms":%d,"data":%b}' % (record.seq, record.ts // NS_PER_MS, payload)
    return ENCODER.encode(
        _RecordOut(
            record.seq,
            record.ts // NS_PER_MS,
            msgspec.Raw(payload),
            record.tag,
            record.node,
            record.subject,
            None if geometry is None else geometry.text,
        )
    )


def receipt_json(receipt: Receipt, name: str) -> bytes:
    """A receipt; `name` is one that `NAME` matches, which needs no escaping."""
    return _RECEIPT % (
        name.encode(),
        receipt.instance.encode(),
        receipt.first,
        receipt.last,
        receipt.head,
        receipt.ts // NS_PER_MS,
        b"true" if receipt.created else b"false",
        b"true" if receipt.deduped else b"false",
        receipt.write_ms,
        receipt.sync_ms,
    )


def page_json(page: Page) -> bytes:
    """A page of records from stored bytes, joined rather than rebuilt."""
    gap = page.gap
    head = ENCODER.encode(
        {
            "instance": page.cursor.instance,
            "next": page.cursor.seq,
            "caught_up": page.caught_up,
            "head": page.marks.head,
            "synced": page.marks.synced,
            "earliest": page.marks.earliest,
            "evict_floor": page.marks.evict_floor,
            "gap": None if gap is None else {"first": gap.first, "last": gap.last, "loss": gap.loss},
        }
    )
    return b'%b,"records":[%b]}' % (head[:-1], b",".join(page.each(record_json, record_json)))


def state_dict(state: StreamState) -> dict[str, object]:
    settings = msgspec.to_builtins(state.settings)
    for name in ("extra", "sparse", "indexed"):  # what only other surfaces use
        settings.pop(name)
    return {
        "stream": state.name.removeprefix(PREFIX),
        "instance": state.instance,
        "head": state.marks.head,
        "synced": state.marks.synced,
        "earliest": state.marks.earliest,
        "evict_floor": state.marks.evict_floor,
        "count": state.count,
        "bytes": state.bytes,
        "last_ts_ms": state.last_ts // NS_PER_MS,
        "settings": settings,
    }


def decode_append(body: bytes) -> AppendBody:
    """The body of an append. What the log would refuse is refused before any work is done for it: a large body may hold
    millions of records, and is counted before an object is made for each."""
    most = limits.RECORDS_PER_APPEND_MAX
    if len(body) > most * _RECORD_JSON_BYTES_MIN and body.count(b"{") > most:
        _check_count(opened(body, _RECORDS_LEVEL))
    append = decode(body, _APPEND)
    if not append.records:
        raise BadInput("records is empty: an append needs at least one record")
    _check_count(len(append.records))
    return append


def _check_count(count: int) -> None:
    if count > limits.RECORDS_PER_APPEND_MAX:
        message = f"{count} records in one append; the most is {limits.RECORDS_PER_APPEND_MAX}"
        raise RecordTooLarge(message, records=count, max=limits.RECORDS_PER_APPEND_MAX)
