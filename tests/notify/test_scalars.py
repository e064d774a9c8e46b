"""Values as text, and payloads in the form in which they are stored."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadField, NotJson
from seamark.notify.request import parse
from seamark.notify.scalars import ENCODER, decimal_text, has_long_numbers, scalar_text, within_64_bits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        ("", ""),
        (" 4 ", " 4 "),
        (4, "4"),
        (-4, "-4"),
        (42.5, "42.5"),
        (4.0, "4.0"),
        (1e20, "1e20"),
        (1e16, "1e16"),
        (1e15, "1000000000000000.0"),
        (1e-5, "0.00001"),
        (1e-7, "1e-7"),
        (-0.0, "-0.0"),
        (2**64 - 1, "18446744073709551615"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_scalars(value: object, text: str) -> None:
    assert scalar_text("f", value) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "Field 'f' cannot be null"),
        ([], "Field 'f' must be a scalar value or constraint object, got array"),
        ({}, "Field 'f' constraint object is not supported for notify operation"),
    ],
)
def test_what_is_no_scalar(value: object, why: str) -> None:
    with pytest.raises(BadField) as caught:
        scalar_text("f", value)
    assert caught.value.message == why
    assert caught.value.fields == {"field": "f"}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (42.0, "42"),
        (1e3, "1000"),
        (1e21, "1000000000000000000000"),
        (1.5e300, "15" + "0" * 299),
        (1e-7, "0.0000001"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e16, "10000000000000000"),
        (123456789012345.6, "123456789012345.6"),
        (5e-324, "0." + "0" * 323 + "5"),
        (-2.5, "-2.5"),
    ],
)
def test_decimals(number: float, text: str) -> None:
    assert decimal_text(number) == text


def slow_decimals(number: float) -> set[str]:
    """From the definition: of the decimals that read back as this number those with the fewest digits, of these the
    nearest, written out."""
    exact = Decimal(number)
    for digits in range(1, 18):
        roundings = (Context(digits, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
        near = [found for found in (context.plus(exact) for context in roundings) if float(found) == number]
        if near:
            nearest = min(abs(found - exact) for found in near)
            return {plain(found) for found in near if abs(found - exact) == nearest}
    raise AssertionError("seventeen digits are always enough")


def plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimals_are_the_shortest_that_read_back(number: float) -> None:
    text = decimal_text(number)
    assert text in slow_decimals(number)
    assert float(text) == number
    assert "e" not in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(2**70), 2**70) | st.integers(2**64 - 2, 2**64 + 2)
    | st.integers(-(2**63) - 2, -(2**63) + 2) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def slow_copy(value: Any) -> Any:
    """As the contract's own JSON library reads it."""
    if isinstance(value, dict):
        return {key: slow_copy(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list(map(slow_copy, value))
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return float(value)
    return value


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_a_payload_is_stored_compact_sorted_and_in_64_bits(value: Any, indent: int | None, ascii_only: bool) -> None:
    body = json.dumps({"event_type": "e", "identifier": {}, "payload": value}, indent=indent, ensure_ascii=ascii_only)
    stored = ENCODER.encode(parse(body.encode()).payload)
    back = json.loads(stored)
    wanted = slow_copy(value)
    assert back == wanted
    # The same text, but for how a float is written.
    dumped = json.dumps(wanted, separators=(",", ":"), ensure_ascii=False)
    assert canonical(stored.decode()) == canonical(dumped)


def canonical(text: str) -> object:
    """Keys in their order, and which numbers are floats."""
    return json.loads(text, object_pairs_hook=tuple, parse_float=lambda digits: ("float", Decimal(digits).normalize()))


@pytest.mark.parametrize(
    ("payload", "stored"),
    [
        (b"1.0", b"1.0"),
        (b"1.50", b"1.5"),
        (b"1E2", b"100.0"),
        (b"18446744073709551615", b"18446744073709551615"),
        (b"18446744073709551616", b"1.8446744073709552e19"),
        (b"-9223372036854775808", b"-9223372036854775808"),
        (b"-9223372036854775809", b"-9.223372036854776e18"),
        (b'[{"a":100000000000000000000}]', b'[{"a":1e20}]'),
        (b'{"b":1,"a":{"d":1,"c":[{"z":1,"y":2}]}}', b'{"a":{"c":[{"y":2,"z":1}],"d":1},"b":1}'),
        (b'{"a":1,"b":2,"a":3}', b'{"a":3,"b":2}'),
        (b'"\\u00e9\\/\\ud83d\\ude00\\u0001"', '"é/😀\\u0001"'.encode()),
        (b" [ 1 , 2 ] ", b"[1,2]"),
        (b"true", b"true"),
        (b"null", b"null"),
        (b'""', b'""'),
    ],
)
def test_payloads(payload: bytes, stored: bytes) -> None:
    assert ENCODER.encode(parse(b'{"event_type":"e","identifier":{},"payload":%b}' % payload).payload) == stored


def test_beyond_floats() -> None:
    with pytest.raises(NotJson, match="number out of range"):
        within_64_bits([10**400])
    assert within_64_bits({"a": [2**64, 2**64 - 1, True]}) == {"a": [2.0**64, 2**64 - 1, True]}


def test_long_numbers_are_noticed() -> None:
    assert has_long_numbers(b"[1234567890123456789]")
    assert not has_long_numbers(b"[123456789012345678,123456789012345678]")
    assert not has_long_numbers(b'{"at":"1234567890123456789"}')
    assert not has_long_numbers(b'["1234567890123456789123456789012345678","1234567890123456789"]')


@given(st.integers(2**63, 2**80) | st.integers(-(2**80), -(2**63) - 1), st.sampled_from(["", " ", "\t", "\r\n"]))
def test_no_integer_beyond_64_bits_is_overlooked(number: int, space: str) -> None:
    for text in (
        f"[{space}{number}]",
        f'{{"a":{space}{number}}}',
        f'["{"1" * 40}\\"{"1" * 40}",{number}]',
        f"[0,{space}{number},1]",
        f"{space}{number}",
    ):
        assert has_long_numbers(text.encode())
