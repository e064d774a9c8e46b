"""The writer says one thing per block; the parser follows the WHATWG rules however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.stream.sse import Comment, Event, Parser, SseError, comment, event


def parse(raw: bytes, *, comments: bool = False) -> list[Event | Comment]:
    return Parser(comments=comments).feed(raw)


# -- writer


def test_fields_come_in_a_fixed_order() -> None:
    assert event("x", event="record", id="7", retry=5) == b"retry: 5\nid: 7\nevent: record\ndata: x\n\n"
    assert event("x", event="record", id="7", id_first=False) == b"event: record\nid: 7\ndata: x\n\n"


def test_a_lone_retry_is_a_block_of_its_own() -> None:
    assert event(retry=2000) == b"retry: 2000\n\n"


@pytest.mark.parametrize("data", ["a\nb", "a\rb", "a\r\nb", b"a\nb"])
def test_data_with_line_ends_takes_several_lines(data: str | bytes) -> None:
    assert event(data) == b"data: a\ndata: b\n\n"


def test_empty_data_is_still_an_event() -> None:
    assert event("") == b"data: \n\n"
    assert parse(event("")) == [Event("")]


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "a\0b"])
def test_names_and_ids_refuse_what_would_break_out(bad: str) -> None:
    with pytest.raises(ValueError, match="CR, LF or NUL"):
        event("x", id=bad)
    with pytest.raises(ValueError, match="CR, LF or NUL"):
        event("x", event=bad)


def test_an_event_needs_a_field() -> None:
    with pytest.raises(ValueError, match="at least one field"):
        event()
    with pytest.raises(ValueError, match="negative"):
        event(retry=-1)


def test_comments_are_verbatim_after_the_colon() -> None:
    assert comment(" hb") == b": hb\n\n"
    assert comment("keepalive") == b":keepalive\n\n"
    assert comment("a\nb") == b":a\n:b\n\n"


# -- parser, rule by rule


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"data: a\n\n", [Event("a")], id="lf"),
        pytest.param(b"data: a\r\n\r\n", [Event("a")], id="crlf"),
        pytest.param(b"data: a\r\r", [Event("a")], id="cr"),
        pytest.param(b"data: a\r\n\ndata: b\r\r", [Event("a"), Event("b")], id="mixed"),
        pytest.param(b"data:a\ndata:  b\n\n", [Event("a\n b")], id="one space goes"),
        pytest.param(b"data\n\n", [Event("")], id="field without colon"),
        pytest.param(b"data: a", [], id="unfinished"),
        pytest.param(b"data: a\n", [], id="not dispatched"),
        pytest.param(b"event: x\n\ndata: a\n\n", [Event("a")], id="name without data is forgotten"),
        pytest.param(b"event: x\ndata: a\n\ndata: b\n\n", [Event("a", "x"), Event("b")], id="name does not persist"),
        pytest.param(b"id: 1\ndata: a\n\ndata: b\n\n", [Event("a", id="1"), Event("b", id="1")], id="id persists"),
        pytest.param(b"id: 1\n\ndata: b\n\n", [Event("b", id="1")], id="id without data counts"),
        pytest.param(b"id: 1\ndata: a\n\nid\ndata: b\n\n", [Event("a", id="1"), Event("b")], id="empty id resets"),
        pytest.param(b"id: 1\x002\ndata: a\n\n", [Event("a")], id="id with nul ignored"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [Event("a")], id="bom"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [Event("b")], id="second bom is text"),
        pytest.param("data: a\u2028b\u0085c\n\n".encode(), [Event("a\u2028b\u0085c")], id="not line ends"),
        pytest.param(b"data: \xff\n\n", [Event("\ufffd")], id="bad utf-8 is replaced"),
        pytest.param(b"Data: a\nunknown: b\n\n", [], id="unknown fields"),
        pytest.param(b": hello\ndata: a\n\n", [Event("a")], id="comments dropped"),
    ],
)
def test_rules(raw: bytes, expected: list[Event]) -> None:
    assert parse(raw) == expected
    one_by_one = Parser()
    assert [out for byte in raw for out in one_by_one.feed(bytes([byte]))] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b"10", 10), (b"007", 7), (b"", None), (b"-1", None), (b"1e3", None), ("²".encode(), None), ("٣".encode(), None)],
)
def test_retry_takes_ascii_digits_only(value: bytes, expected: int | None) -> None:
    parser = Parser()
    parser.feed(b"retry: " + value + b"\n")
    assert parser.retry_ms == expected


def test_an_absurd_retry_does_not_raise() -> None:
    parser = Parser()
    parser.feed(b"retry: " + b"9" * 100_000 + b"\n")
    assert parser.retry_ms is not None


def test_comments_on_request() -> None:
    assert parse(b": hb\n\n:keepalive\n\n:\n", comments=True) == [Comment("hb"), Comment("keepalive"), Comment("")]


def test_the_last_event_id_counts_from_the_blank_line_on() -> None:
    parser = Parser(last_event_id="0")
    parser.feed(b"id: 1\ndata: a\n")
    assert parser.last_event_id == "0"  # a connection cut here resumes from before the unfinished block
    assert parser.feed(b"\n") == [Event("a", id="1")]
    assert parser.last_event_id == "1"


@pytest.mark.parametrize(
    "pieces", [[b"data: " + b"x" * 100], [b"data: "] + [b"x"] * 100, [b"data: " + b"x" * 100 + b"\n"]]
)
def test_a_line_is_bounded(pieces: list[bytes]) -> None:
    parser = Parser(line_bytes_max=64)
    with pytest.raises(SseError) as caught:
        [parser.feed(piece) for piece in pieces]
    assert caught.value.fields == {"max": 64}


def test_an_event_of_many_lines_is_bounded() -> None:
    parser = Parser(line_bytes_max=64)
    with pytest.raises(SseError):
        parser.feed(b"data: xxxxxxxxxx\n" * 7)


def test_an_event_of_empty_lines_is_bounded() -> None:
    parser = Parser(line_bytes_max=64)
    assert parser.feed(b"data\n" * 64 + b"\n") == [Event("\n" * 63)]
    parser.feed(b"data\n" * 64)
    with pytest.raises(SseError):
        parser.feed(b"data\n")


# -- properties

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = TEXT.filter(lambda text: not set(text) & set("\r\n\0"))
STREAM = st.lists(
    st.sampled_from(
        [b"data: a", b"data", b"event: e", b"id: 1", b"id: \xc3\xa9\xf0\x9f\x98\x80", b"id: \0", b"retry: 12",
         b": c", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n", b"\n\n", "\u2028é€😀".encode(), b"\xff\xc3", b""]
    ),
    max_size=40,
).map(b"".join)  # fmt: skip


@given(STREAM, st.lists(st.integers(0, 200), max_size=20))
def test_any_chunking_gives_the_same_events(raw: bytes, cuts: list[int]) -> None:
    whole, pieces = Parser(comments=True), Parser(comments=True)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    cut = [out for a, b in pairwise(edges) for out in pieces.feed(raw[a:b])]
    assert cut == whole.feed(raw)
    assert pieces.retry_ms == whole.retry_ms
    assert pieces.last_event_id == whole.last_event_id


@given(st.lists(st.tuples(TEXT, st.none() | NAME, st.none() | NAME)), st.integers(1, 7))
def test_what_is_written_is_what_is_read(said: list[tuple[str, str | None, str | None]], step: int) -> None:
    raw = b"".join(comment(" hb") + event(data, event=name, id=id) for data, name, id in said)
    parser = Parser()
    heard = [out for at in range(0, len(raw), step) for out in parser.feed(raw[at : at + step])]
    expected, last = [], ""
    for data, name, id in said:
        last = last if id is None else id
        plain = data.replace("\r\n", "\n").replace("\r", "\n")
        expected.append(Event(plain, name or "message", last))
    # One leading space of an empty name is the writer's own; a name that is empty means "message".
    assert heard == expected
