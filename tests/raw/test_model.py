"""Bodies as the raw surface reads them."""

from __future__ import annotations

import msgspec
import pytest

from seamark import limits
from seamark.errors import BadInput, BadRequest, RecordTooLarge
from seamark.log.protocol import Receipt
from seamark.raw import model
from seamark.raw.model import decode_append

ONE = b'{"data":1}'


def body(*records: bytes) -> bytes:
    return b'{"records":[%b]}' % b",".join(records)


def test_the_most_and_one_more() -> None:
    most = limits.RECORDS_PER_APPEND_MAX
    assert len(decode_append(body(*[ONE] * most)).records) == most
    with pytest.raises(RecordTooLarge):
        decode_append(body(*[ONE] * (most + 1)))
    with pytest.raises(RecordTooLarge):  # with keys that count as one only when read
        decode_append(body(*[b'{"d\\u0061ta":1}'] * (most + 1)))


def test_far_too_many_are_refused_without_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unused:
        def decode(self, text: bytes) -> None:
            raise AssertionError("it was read")

    monkeypatch.setattr(model, "_APPEND", Unused())
    with pytest.raises(RecordTooLarge) as caught:
        decode_append(body(*[ONE] * 20_000))
    assert caught.value.fields["records"] == 20_000


def test_braces_in_payloads_are_not_records() -> None:
    payload = b'{"data":[%b],"tag":"}{"}' % b",".join([b'{"a":"{\\"{"}'] * 20_000)
    assert [bytes(record.data)[:6] for record in decode_append(body(payload, payload)).records] == [b'[{"a":'] * 2


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"records":[]}', b'{"records":1}', b"[" + b"{" * 200_000])
def test_what_is_no_append_is_refused(text: bytes) -> None:
    with pytest.raises((BadRequest, BadInput)):
        decode_append(text)


def test_a_receipt_is_json() -> None:
    receipt = Receipt("raw:a", "i", 1, 2, 3, 4_000_000, created=True, write_ms=1 / 3, sync_ms=0.0)
    assert msgspec.json.decode(model.receipt_json(receipt, "a.b:c-_9")) == {
        "stream": "a.b:c-_9", "instance": "i", "first": 1, "last": 2, "head": 3, "ts_ms": 4, "created": True,
        "deduped": False, "write_ms": 0.333, "sync_ms": 0.0,
    }  # fmt: skip
