from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from seamark.flags.tree import pack, unpack

paths = st.text(st.characters(codec="utf-8"), max_size=40)
indexes = st.dictionaries(paths, st.binary(max_size=8).map(lambda seed: hashlib.sha256(seed).digest()))


@given(indexes)
def test_what_is_packed_comes_back(index: dict[str, bytes]) -> None:
    assert unpack(pack(index)) == index


@given(indexes)
def test_equal_indexes_give_equal_bytes(index: dict[str, bytes]) -> None:
    assert pack(dict(reversed(index.items()))) == pack(index)


def test_paths_are_in_byte_order() -> None:
    assert list(unpack(pack({"b": bytes(32), "é": bytes(32), "a-b": bytes(32), "a.b": bytes(32)}))) == [
        "a-b",
        "a.b",
        "b",
        "é",
    ]
