"""ULIDs: 128 bits as 26 letters of Crockford's alphabet, which sort as the numbers do."""

from __future__ import annotations

from uuid import UUID

from seamark.clock import NS_PER_MS

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS = 26
_RANDOM_BITS = 80
RANDOM_BYTES = _RANDOM_BITS // 8


def spelled(number: int) -> str:
    """A number of 128 bits."""
    assert 0 <= number < 1 << 128
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(5 * (_LETTERS - 1), -1, -5))


def of_request(request_id: str) -> str:
    """A request's id as this surface writes it: the same bits that `X-Request-ID` has as a UUID."""
    return spelled(UUID(request_id).int)


def made(now_ns: int, random_bytes: bytes, *, after: str = "") -> str:
    """A new one: the millisecond, and then chance. It comes after `after` whatever the clock says, so that the order of ids is
    the order in which they were made."""
    assert len(random_bytes) == RANDOM_BYTES
    new = spelled(now_ns // NS_PER_MS << _RANDOM_BITS | int.from_bytes(random_bytes))
    return new if new > after else spelled(_number(after) + 1)


def _number(text: str) -> int:
    number = 0
    for letter in text:
        number = number << 5 | _ALPHABET.index(letter)
    return number
