from __future__ import annotations

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark import limits
from seamark.errors import BadRequest
from seamark.wire.strictjson import decode, depth, opened


class Body(msgspec.Struct, forbid_unknown_fields=True):
    data: msgspec.Raw


DECODER = msgspec.json.Decoder(Body)
MAX = limits.JSON_DEPTH_MAX


def body(data: bytes) -> bytes:
    return b'{"data":%b}' % data


@pytest.mark.parametrize(
    "data",
    [b"null", b"0", b'"\\ud83d\\ude00"', '"ü\u2028"'.encode(), b'{ "b":1,\n"a" :[ ] }', b"12345678901234567890123"],
)
def test_bytes_are_kept(data: bytes) -> None:
    assert bytes(decode(body(data), DECODER).data) == data


@pytest.mark.parametrize(
    "data",
    [
        b"NaN", b"Infinity", b"-Infinity", b"", b"tru", b"01", b"1.", b"-", b'"\xff"', b'"\\ud800"', b'"\\udc00 x"', b'"a\nb"', b"[1,]",
        b'"\xed\xa0\x80"', b"1} x", b"[" * 200_000, b"[" * 200_000 + b"]" * 200_000, b"[" * MAX + b"]" * MAX,
        b'{"a":' * 500 + b"1" + b"}" * 500, b'["\\"",' * 200 + b"1" + b"]" * 200,
    ],
)  # fmt: skip
def test_refused(data: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(body(data), DECODER)


@pytest.mark.parametrize("text", [b"", b"\xef\xbb\xbf{}", b"[]", b"{}", b'{"data":1,"more":2}'])
def test_whole_bodies_refused(text: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(text, DECODER)


@pytest.mark.parametrize("text", [b"", b" \r\n"])
def test_an_empty_body_is_called_so(text: bytes) -> None:
    with pytest.raises(BadRequest, match=r"^the body is empty$"):
        decode(text, DECODER)


def test_wide_is_not_deep() -> None:
    wide = b"[" + b",".join([b'{"a":[{}],"b":"]]]][[[["}'] * 2_000) + b"]"
    assert bytes(decode(body(wide), DECODER).data) == wide


def test_the_deepest_allowed() -> None:
    deepest = b"[" * (MAX - 1) + b"]" * (MAX - 1)
    assert bytes(decode(body(deepest), DECODER).data) == deepest


JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab"\\[]{}ü\n'),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='"\\[]{}x', max_size=4), inner, max_size=4)
    ),
    max_leaves=40,
)


def test_deep_and_wide_costs_one_pass() -> None:
    """Seven megabytes that once took a look per level; a test that hangs here has found that again."""
    hostile = b"[" + b",".join([b"[" * 900 + b"]" * 900] * 4_000) + b"]"
    assert depth(hostile) == 901


def naive_opened(value: Any, level: int) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 if level == 1 else sum(naive_opened(item, level - 1) for item in inner)


@given(JSON, st.integers(1, 4), st.sampled_from([1, 5, limits.JSON_SLICE_BYTES]))
def test_opened_equals_the_naive_walk(value: Any, level: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "JSON_SLICE_BYTES", size)
        assert opened(json.dumps(value).encode(), level) == naive_opened(value, level)


def naive_depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(naive_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(naive_depth, value), default=0)
    return 0


@pytest.mark.parametrize(
    "unit", [b"[", b"[]", b'"",', b'["[\\"]",1],', b'"\\\\[",'], ids=["deep", "wide", "quotes", "quoted", "escaped"]
)
def test_a_big_text_needs_little_memory_beside_itself(unit: bytes) -> None:
    text = b"[" + unit * (8 * limits.MIB // len(unit))
    tracemalloc.start()
    try:
        depth(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(text)  # copies of the text, never an object or a wide number for each byte


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_slices_change_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[{"a":"]]\\"[["},"[",[[{"ü€😀":["}"]}]]]'.encode()
    expected = depth(text)
    monkeypatch.setattr(limits, "JSON_SLICE_BYTES", size)
    assert depth(text) == expected == 5
    whole = b'{"data":%b}' % (text + b" " * 300)
    assert bytes(decode(whole, DECODER).data) == text
    for at in range(8, len(text)):
        broken = bytearray(whole)
        broken[at] = 0xFF
        with pytest.raises(UnicodeDecodeError) as told:
            bytes(broken).decode()
        with pytest.raises(BadRequest, match=f"invalid byte at {told.value.start}$"):
            decode(bytes(broken), DECODER)


@given(JSON, st.booleans())
def test_depth_equals_the_naive_walk(value: Any, ascii_only: bool) -> None:
    assert depth(json.dumps(value, ensure_ascii=ascii_only).encode()) == naive_depth(value)
