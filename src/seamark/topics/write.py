"""A write as a client sends it, and what the log is asked to append."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark import limits
from seamark.errors import BadInput, BadRequest, BatchTooLarge
from seamark.log.record import Draft
from seamark.topics.model import TopicConfig
from seamark.wire.exchange import Exchange
from seamark.wire.strictjson import decode, opened


class RecordIn(msgspec.Struct, gc=False):
    """One record. `data` and `meta` are any JSON, kept byte for byte; no meta and `null` are the same."""

    data: msgspec.Raw
    tag: str | None = None
    node: str | None = None
    meta: msgspec.Raw = msgspec.Raw()


class WriteBody(msgspec.Struct, gc=False):
    records: list[RecordIn]
    node: str | None = None
    idempotency_key: str | None = None
    create: bool | None = None
    config: TopicConfig | None = None
    disable_backpressure: bool | None = None  # understood, and without effect: nothing here paces by processor load


_WRITE = msgspec.json.Decoder(WriteBody)
_META_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RECORD_JSON_BYTES_MIN = len('{"data":1}')
_META_KEY_BYTES_MIN = len('"a":1,')
_RECORDS_LEVEL = 3  # the body, its list, each record


def decode_write(text: bytes) -> WriteBody:
    """The body of a write. A large one may hold millions of records, and is counted before an object is made for each.
    Raises BadRequest, BatchTooLarge."""
    most = limits.RECORDS_PER_APPEND_MAX
    if len(text) > most * _RECORD_JSON_BYTES_MIN and text.count(b"{") > most:
        check_count(opened(text, _RECORDS_LEVEL))
    return decode(text, _WRITE)


def check_count(count: int) -> None:
    """Raises BadInput, BatchTooLarge."""
    if count > limits.RECORDS_PER_APPEND_MAX:
        message = f"{count} records in one write; the most is {limits.RECORDS_PER_APPEND_MAX}"
        raise BatchTooLarge(message, records=count, max=limits.RECORDS_PER_APPEND_MAX)
    if not count:
        raise BadInput("records is empty: a write needs at least one record")


def drafts_of(body: WriteBody) -> list[Draft]:
    """What the log is asked to append; sizes other than those of meta are its business. Raises BadInput."""
    everybody = body.node
    return [
        Draft(
            bytes(record.data),
            everybody if record.node is None else record.node,
            record.tag,
            checked_meta(bytes(record.meta)) if record.meta else None,
        )
        for record in body.records
    ]


def checked_meta(meta: bytes) -> bytes | None:
    """Raises BadInput."""
    if meta == b"null":
        return None
    if len(meta) > limits.META_BYTES_MAX:
        raise BadInput(f"meta has at most {limits.META_BYTES_MAX} bytes", max=limits.META_BYTES_MAX)
    if _may_have_many_keys(meta) and len(_META_KEYS.decode(meta)) > limits.META_KEYS_MAX:
        raise BadInput(f"meta has at most {limits.META_KEYS_MAX} keys", max=limits.META_KEYS_MAX)
    return meta


def _may_have_many_keys(meta: bytes) -> bool:
    return meta[:1] == b"{" and len(meta) > limits.META_KEYS_MAX * _META_KEY_BYTES_MIN


def key_of(exchange: Exchange, body: WriteBody) -> str | None:
    """The idempotency key: the body's, else the header's. Raises BadRequest."""
    if body.idempotency_key is not None:
        return body.idempotency_key
    header = exchange.header(b"idempotency-key")
    if not header:
        return None
    try:
        return header.decode()
    except UnicodeDecodeError:
        raise BadRequest("the Idempotency-Key header is not UTF-8") from None


def size_of(drafts: Sequence[Draft]) -> int:
    """What a batch counts against a topic's cap."""
    return sum(len(draft.payload) + len(draft.meta or b"") for draft in drafts)
