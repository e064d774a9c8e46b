"""Frames, byte for byte: the samples of the contract, and what no sample shows."""

from __future__ import annotations

import pytest

from seamark.log.record import Record
from seamark.log.watermarks import Cursor, Gap, Loss, Watermarks
from seamark.stream.dialect import Bounded, Close, Span
from seamark.topics.cursor import topic_set
from seamark.topics.model import stream_of
from seamark.topics.render import Variant
from seamark.topics.script import WatchScript, script_for
from seamark.topics.sessions import Wanted, WatchSession

MS = 1_000_000


def script(
    *names: str, variant: Variant = Variant(), strong: bool = False, places: tuple[int, ...] = ()
) -> WatchScript:
    """What a session on these topics says; `places` in byte order of name."""
    wanted = Wanted("anyone", (), variant, 256, 1_000, 15_000, strong)
    cursors = [Cursor(seq) for seq in places or (0,) * len(names)]
    return script_for(WatchSession(b"k", wanted, topic_set(map(stream_of, names)), cursors))


def span(name: str, after: int, to: int, head: int, *, live: bool = False, earliest: int = 1, synced: int = 0) -> Span:
    marks = Watermarks(head=head, synced=synced or head, evict_floor=earliest, earliest=earliest)
    return Span(stream_of(name), after, to, marks, live)


def burst(says: WatchScript, covers: Span, *records: Record) -> bytes:
    fragments = [says.dialect.fragment(record, covers.live) for record in records]
    raw = says.dialect.assemble(fragments, covers)
    stamped = says.stamp(raw, covers) if says.personal else None
    return raw if stamped is None else stamped


ORDERS = (
    Record(4097, 1748467200111 * MS, b'{"sku":"AEROPRESS-GO","qty":1,"total":3499}', "node-B", "order-7731"),
    Record(4098, 1748467200119 * MS, b'{"sku":"FILTER-PACK","qty":2,"total":1598}', "node-C"),
)


def test_the_contracts_record_frame() -> None:
    says = script("orders", variant=Variant(tags=True))
    assert burst(says, span("orders", 4096, 4098, 5210), *ORDERS) == (
        b"id: eyJvcmRlcnMiOjQwOTh9\n"
        b"event: record\n"
        b'data: {"topic":"orders","records":[{"$seq":4097,"$ts":1748467200111,"$node":"node-B","$tag":"order-7731",'
        b'"data":{"sku":"AEROPRESS-GO","qty":1,"total":3499}},{"$seq":4098,"$ts":1748467200119,"$node":"node-C",'
        b'"data":{"sku":"FILTER-PACK","qty":2,"total":1598}}],"from_seq":4096,"to_seq":4098,"head_seq":5210}\n\n'
    )


def test_the_contracts_tombstone() -> None:
    says = script("notifications")
    assert says.gap(
        Gap(80000, 83000, Loss.CAP),
        span("notifications", 79999, 83000, 88130, earliest=83001),
        first_read=False,
    ) == (
        b"id: eyJub3RpZmljYXRpb25zIjo4MzAwMH0\n"
        b"event: tombstone\n"
        b'data: {"topic":"notifications","reason":"cap","gap_from":80000,"gap_to":83000,"earliest_seq":83001,'
        b'"head_seq":88130}\n\n'
    )


def test_the_contracts_caught_up_and_topic_deleted() -> None:
    assert script("orders").caught_up(span("orders", 5210, 5210, 5210)) == (
        b'id: eyJvcmRlcnMiOjUyMTB9\nevent: caught-up\ndata: {"topic":"orders","head_seq":5210}\n\n'
    )
    assert script("orders.dlq").dropped("topics:orders.dlq", 12) == (
        b"id: eyJvcmRlcnMuZGxxIjoxMn0\n"
        b'event: topic-deleted\ndata: {"topic":"orders.dlq","head_seq":12,"reason":"deleted"}\n\n'
    )


def test_the_opening_and_the_heartbeat() -> None:
    assert script("o").opening() == b"retry: 2000\n\n"
    assert script("o").heartbeat() == b": hb\n\n"


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("first_read", [True, False])
@pytest.mark.parametrize("earliest", [4, 1])
def test_only_a_cursor_that_came_too_late_is_called_so(loss: Loss, first_read: bool, earliest: int) -> None:
    """With records before the loss, the cursor is not before what the topic holds."""
    raw = script("o").gap(Gap(2, 3, loss), span("o", 1, 3, 9, earliest=earliest), first_read=first_read)
    too_old = first_read and loss is not Loss.RECREATED and earliest > 2
    words = {Loss.SOURCE: "source_trim", Loss.CRASH: "mixed"}
    assert b'"reason":"%b"' % (b"from_seq_too_old" if too_old else words.get(loss, loss).encode()) in raw


def test_a_live_burst_of_one_topic_says_caught_up_by_itself() -> None:
    says = script("o")
    assert not says.personal
    record = Record(3, MS, b'"c"')
    frame = b'id: eyJvIjozfQ\nevent: record\ndata: {"topic":"o","records":[{"$seq":3,"$ts":1,"data":"c"}],"from_seq":2,"to_seq":3,"head_seq":%d}\n\n'
    live = burst(says, span("o", 2, 3, 3, live=True), record)
    assert live == frame % 3 + b'id: eyJvIjozfQ\nevent: caught-up\ndata: {"topic":"o","head_seq":3}\n\n'
    assert burst(says, span("o", 2, 3, 4, live=True), record) == frame % 4  # a piece of a bigger burst
    assert burst(says, span("o", 2, 3, 3), record) == frame % 3  # from history


def test_several_topics_have_an_id_of_their_own_before_what_is_shared() -> None:
    says = script("a", "b", places=(10, 7))
    assert says.personal
    raw = burst(says, span("b", 7, 8, 8), Record(8, MS, b"null"))
    assert raw.startswith(b"id: eyJhIjoxMCwiYiI6OH0\nevent: record\n")  # {"a":10,"b":8}
    assert says.gap(Gap(11, 20, Loss.TTL), span("a", 10, 20, 30), first_read=False).startswith(
        b"id: eyJhIjoyMCwiYiI6OH0\n"
    )
    assert says.caught_up(span("a", 30, 30, 30)).startswith(b"id: eyJhIjozMCwiYiI6OH0\n")
    assert says.dropped("topics:b", 9).startswith(b"id: eyJhIjozMCwiYiI6OX0\n")


def test_a_topic_that_was_gone_before_had_its_head_where_the_session_stands() -> None:
    assert b'"head_seq":7' in script("a", "b", places=(10, 7)).dropped("topics:b", 0)
    assert b'"head_seq":12' in script("o", places=(12,)).dropped("topics:o", 0)


def test_a_strong_reader_knows_of_nothing_beyond_what_is_durable() -> None:
    says = script("a", "b", strong=True)
    assert b'"head_seq":5' in burst(says, span("a", 3, 5, 9, synced=5), Record(5, MS, b"1"))
    assert b'"head_seq":5' in says.caught_up(span("a", 5, 5, 9, synced=5))
    assert script("a", "b").caught_up(span("a", 5, 5, 9, synced=5)) == b""


def test_sessions_that_ask_for_the_same_share_their_bytes() -> None:
    assert script("o").dialect is script("p").dialect
    assert script("o").dialect.projection != script("a", "b").dialect.projection
    assert script("o").dialect.projection != script("o", variant=Variant(tags=True)).dialect.projection
    assert script("o").dialect.projection != script("o", strong=True).dialect.projection
    dialect = script("o").dialect
    assert isinstance(dialect, Bounded)
    assert (dialect.burst_records_max, dialect.burst_bytes_max) == (256, 1_000)


@pytest.mark.parametrize(
    ("variant", "parts"),
    [
        (Variant(), b'"$node":"n","data":{"a":1},"meta":{"m":1}'),
        (Variant(tags=True), b'"$node":"n","$tag":"t","data":{"a":1},"meta":{"m":1}'),
        (Variant(meta=False), b'"$node":"n","data":{"a":1}'),
        (Variant(data=False, tags=True), b'"$node":"n","$tag":"t","meta":{"m":1}'),
        (Variant(data=False, meta=False), b'"$node":"n"'),
    ],
)
def test_what_a_record_shows(variant: Variant, parts: bytes) -> None:
    record = Record(1, 2 * MS, b'{"a":1}', "n", "t", b'{"m":1}')
    assert script("o", variant=variant).dialect.fragment(record, True) == b'{"$seq":1,"$ts":2,%b}' % parts


def test_a_pretty_payload_stays_one_line() -> None:
    raw = burst(script("o"), span("o", 0, 1, 1), Record(1, MS, b'{\r\n  "a": 1\n}', meta=b'{\n"m":1}'))
    assert raw.count(b"\n") == 4
    assert b"\r" not in raw
    assert b'"data":{    "a": 1 },"meta":{ "m":1}' in raw


def test_why_a_stream_ended() -> None:
    closing = script("o", places=(7,)).closing
    assert closing(Close.SHUTDOWN) == (
        b'id: eyJvIjo3fQ\nevent: error\ndata: {"code":503,"error":"shutting_down","message":"the server is stopping; reconnect to go on",'
        b'"retry_after_ms":2000}\n\n'
    )
    codes = {Close.REPLACED: 409, Close.REVOKED: 410, Close.SLOW: 408, Close.FAULT: 500}
    for reason, code in codes.items():
        assert closing(reason).startswith(b'id: eyJvIjo3fQ\nevent: error\ndata: {"code":%d,"error":"' % code)
    for reason in (Close.DROPPED, Close.END, Close.DEADLINE):
        assert closing(reason) == b""
