from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.log.seal import Damaged, seal, unseal


@given(st.binary(), st.binary())
def test_what_was_sealed_comes_back(key: bytes, body: bytes) -> None:
    assert bytes(unseal(key, seal(key, body))) == body


@given(st.binary(), st.binary(), st.data())
def test_any_changed_bit_is_noticed(key: bytes, body: bytes, data: st.DataObject) -> None:
    value = bytearray(seal(key, body))
    value[data.draw(st.integers(0, len(value) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Damaged):
        unseal(key, value)


@given(st.binary(), st.binary(), st.binary())
def test_a_value_under_another_key_is_noticed(key: bytes, other: bytes, body: bytes) -> None:
    if key != other:
        with pytest.raises(Damaged):
            unseal(other, seal(key, body))


@pytest.mark.parametrize("value", [b"", b"1234567"])
def test_a_value_too_short_for_a_seal_is_damaged(value: bytes) -> None:
    with pytest.raises(Damaged):
        unseal(b"k", value)
