"""JSON values as text: what an identifier value says before its handler looks at it, and payloads in the one form in which
they are stored."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from seamark.errors import BadField, NotJson

ENCODER = msgspec.json.Encoder(order="sorted")
"""Compact, keys sorted at every level."""

UNSIGNED_MAX = 2**64 - 1
SIGNED_MIN = -(2**63)
_LONG_NUMBER = b"0" * 19  # digits of which 64 bits may be too few
_QUOTE = ord('"')
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")


def scalar_text(name: str, value: object) -> str:
    """A scalar as text, a number in JSON notation. Raises BadField for anything else; constraint objects are for watching
    and are taken out before."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):  # what is left of big integers are floats
        return ENCODER.encode(value).decode()
    if value is None:
        raise BadField(f"Field '{name}' cannot be null", field=name)
    if isinstance(value, list):
        raise BadField(f"Field '{name}' must be a scalar value or constraint object, got array", field=name)
    raise BadField(f"Field '{name}' constraint object is not supported for notify operation", field=name)


def decimal_text(number: float) -> str:
    """The shortest decimal that reads back as this number, never with an exponent, without a useless `.0`."""
    text = repr(number)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def has_long_numbers(body: bytes) -> bool:
    """Whether some integer in a text may be beyond 64 bits: cheap, and sometimes yes without need."""
    alike = body.translate(_DIGITS_ALIKE)
    at = alike.find(_LONG_NUMBER)
    while at > 0 and alike[at - 1] == _QUOTE:  # a string that begins with digits, as stamps do: what follows it counts
        at = alike.find(_LONG_NUMBER, alike.find(b'"', at))
    return at >= 0


def within_64_bits(value: Any) -> Any:
    """The same value, in which integers beyond 64 bits have become floats, as every reader of this protocol takes them.
    Raises NotJson for one that is beyond floats as well."""
    if isinstance(value, dict):
        return {key: within_64_bits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [within_64_bits(item) for item in value]
    if type(value) is int and not SIGNED_MIN <= value <= UNSIGNED_MAX:
        try:
            return float(value)
        except OverflowError:
            raise NotJson("JSON parsing failed: number out of range") from None
    return value
