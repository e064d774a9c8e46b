from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.bench import wire
from seamark.log.record import Record
from seamark.log.watermarks import Watermarks
from seamark.raw.script import RawDialect
from seamark.stream.dialect import Span
from seamark.stream.pipe import Block
from seamark.topics.render import Variant
from seamark.topics.script import Shape, SoloDialect

cuts = st.lists(st.integers(1, 200), max_size=30)


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    """`data` as reads of these sizes, the rest last."""
    out = []
    for size in sizes:
        out.append(data[:size])
        data = data[size:]
    return [part for part in [*out, data] if part]


@given(st.integers(0, 10**19 - 1))
def test_payloads_are_json_of_one_length(stamp: int) -> None:
    data = wire.payload(stamp)
    assert len(data) == wire.PAYLOAD_BYTES
    assert int(json.loads(data)["t"]) == stamp


def test_a_body_is_what_the_raw_surface_takes() -> None:
    records = json.loads(wire.append_body(3, 7))["records"]
    assert len(records) == 3
    assert all(int(record["data"]["t"]) == 7 for record in records)


def test_requests_are_whole() -> None:
    assert wire.request("GET", "/x").endswith(b"\r\n\r\n")
    head, _, body = wire.request("POST", "/x", b"{}").partition(b"\r\n\r\n")
    assert b"Content-Length: 2" in head
    assert body == b"{}"


def test_the_bare_server_says_what_the_real_one_says() -> None:
    record = Record(12, 1_700_000_000_000 * 1_000_000, wire.payload(5))
    said = RawDialect(wire.INSTANCE.decode()).fragment(record, True)
    assert wire.event(12, 1_700_000_000_000, wire.payload(5)) == said


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8), cuts)
def test_chunked_coding_comes_off_however_it_is_cut(chunks: list[bytes], sizes: list[int]) -> None:
    coded = b"".join(Block(chunk).framed for chunk in chunks)
    unchunker = wire.Unchunker()
    assert b"".join(map(unchunker.feed, pieces(coded, sizes))) == b"".join(chunks)


@given(st.integers(1, 6), st.integers(1, 10**12), cuts)
def test_the_newest_seq_is_seen_however_reads_are_cut(count: int, first: int, sizes: list[int]) -> None:
    text = b"".join(wire.event(first + number, 1, wire.payload()) for number in range(count))
    newest = 0
    for part in pieces(Block(text).framed, sizes):
        seq = wire.last_seq(bytearray(part), len(part))
        if seq is not None:
            assert first <= seq < first + count
            newest = max(newest, seq)
    if all(size > 40 for size in sizes) or not sizes:
        assert newest == first + count - 1


def topics_frame(first: int, last: int) -> bytes:
    """What a watch of one topic says live."""
    dialect = SoloDialect(Shape(Variant(), 256, 1 << 20, False))
    records = [Record(seq, 1_700_000_000_000 * 1_000_000, wire.payload(seq)) for seq in range(first, last + 1)]
    marks = Watermarks(head=last, synced=last, evict_floor=1, earliest=1)
    fragments = [dialect.fragment(record, True) for record in records]
    return dialect.assemble(fragments, Span("topics:t", first - 1, last, marks, True))


@given(st.integers(1, 10**12), st.integers(0, 5), cuts)
def test_frames_of_topics_are_counted_however_reads_are_cut(first: int, more: int, sizes: list[int]) -> None:
    text = topics_frame(first, first + more)
    assert list(wire.events(text)) == [(seq, seq) for seq in range(first, first + more + 1)]
    newest = 0
    for part in pieces(Block(text).framed, sizes):
        newest = max(newest, wire.last_seq(bytearray(part), len(part)) or 0)
        assert newest <= first + more
    if all(size > 40 for size in sizes) or not sizes:
        assert newest == first + more


def test_only_the_given_bytes_of_the_buffer_count() -> None:
    text = wire.event(5, 1, wire.payload())
    buffer = bytearray(text + wire.event(6, 1, wire.payload()))
    assert wire.last_seq(buffer, len(text)) == 5
    assert wire.last_seq(bytearray(b": hb\n\n"), 6) is None


def test_events_give_seq_and_stamp() -> None:
    text = b": hb\n\n" + wire.event(1, 1, wire.payload(11)) + wire.event(2, 1, wire.payload(22))
    assert list(wire.events(text)) == [(1, 11), (2, 22)]


@pytest.mark.parametrize("name", [b"Content-Length", b"content-length"])
def test_an_answer_knows_its_length(name: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\nX: y\r\n%b: 5\r\n\r\nhello" % name
    assert wire.answer_bytes(bytearray(answer), len(answer)) == len(answer)
    assert wire.answer_bytes(bytearray(answer), len(answer) - 2) == len(answer)
    assert wire.answer_bytes(bytearray(answer), 20) is None


def test_an_answer_without_a_body_ends_with_its_head() -> None:
    answer = bytearray(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert wire.answer_bytes(answer, len(answer)) == len(answer)
