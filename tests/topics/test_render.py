"""Records and answers as bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.log.protocol import Receipt
from seamark.log.record import Record
from seamark.log.watermarks import Gap, Loss, Watermarks
from seamark.topics.render import REASONS, Variant, one_line, receipt_json, tombstone

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=8)  # fmt: skip
VARIANTS = st.builds(Variant, st.booleans(), st.booleans(), st.booleans())
NO_META = object()


@given(
    seq=st.integers(1, 2**63 - 1),
    ts=st.integers(0, 2**63 - 1),
    data=JSON,
    node=st.none() | TEXT,
    tag=st.none() | TEXT,
    meta=st.just(NO_META) | JSON,
    variant=VARIANTS,
    indent=st.sampled_from([None, 0, 2]),
    breaks=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_record_is_one_line_with_its_keys_in_order(
    *, seq: int, ts: int, data: Any, node: str | None, tag: str | None, meta: Any, variant: Variant, indent: int | None, breaks: str
) -> None:  # fmt: skip
    def text(value: Any) -> bytes:
        return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", breaks).encode()

    record = Record(seq, ts, text(data), node, tag, None if meta is NO_META else text(meta))
    line = variant.record(record)
    assert b"\n" not in line
    assert b"\r" not in line
    wanted: dict[str, Any] = {"$seq": seq, "$ts": ts // 1_000_000}
    wanted |= {} if node is None else {"$node": node}
    wanted |= {"$tag": tag} if variant.tags and tag is not None else {}
    wanted |= {"data": data} if variant.data else {}
    wanted |= {"meta": meta} if variant.meta and meta is not NO_META else {}
    read = json.loads(line)
    assert read == wanted
    assert list(read) == list(wanted)
    assert line.startswith(b'{"$seq":%d,"$ts":%d' % (seq, ts // 1_000_000))


def test_bytes_without_line_ends_are_not_even_copied() -> None:
    text = b'{ "a": "\\n" }'
    assert one_line(text) is text
    assert one_line(b'{\r\n"a":\n1}') == b'{  "a": 1}'


@pytest.mark.parametrize(("first", "last", "seqs"), [(1, 1, [1]), (7, 9, [7, 8, 9])])
def test_a_receipt(first: int, last: int, seqs: list[int]) -> None:
    receipt = Receipt("topics:a.b:c-_9", "i", first, last, last, 0, created=True, write_ms=1 / 3, sync_ms=0.00012)
    shown = msgspec.json.decode(receipt_json(receipt, len(seqs), 0.0012345, seqs=True))
    assert shown == {
        "topic": "a.b:c-_9", "first_seq": first, "last_seq": last, "seqs": seqs, "head_seq": last, "count": len(seqs),
        "created": True, "deduped": False,
        "performance": {"server_total_ms": 1.234, "wal_append_ms": 0.3333, "fsync_ms": 0.0001},
    }  # fmt: skip
    assert "seqs" not in msgspec.json.decode(receipt_json(receipt, 1, 0.0, seqs=False))


def test_every_loss_has_a_reason_on_this_wire() -> None:
    assert set(REASONS) == set(Loss)
    assert set(REASONS.values()) == {"cap", "ttl", "mixed", "source_trim", "recreated"}


def test_what_was_made_again_is_told_whole() -> None:
    marks = Watermarks(head=9, synced=9, evict_floor=4, earliest=4)
    told = tombstone(Gap(1, 3, Loss.RECREATED), marks)
    assert (told["gap_from"], told["gap_to"], told["missed_estimate"], told["earliest_seq"]) == (1, 9, 9, 4)
    empty = tombstone(Gap(1, 0, Loss.RECREATED), Watermarks())
    assert (empty["gap_from"], empty["gap_to"], empty["missed_estimate"]) == (1, 0, 1)
