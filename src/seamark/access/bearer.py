"""The `Authorization` header of the notify contract, before anybody looks behind it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

BEARER = "bearer"
BASIC = "basic"


class Presented(NamedTuple):
    """What a caller shows."""

    scheme: str  # in lower case
    secret: str
    header: bytes  # the whole value, as it came


def presented(headers: Sequence[tuple[bytes, bytes]], schemes: Collection[str]) -> Presented | None:
    """What stands in the header, None when there is nothing that counts: no header, more than one, another scheme, nothing
    after it. The contract takes all of these for a caller that shows nothing."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, secret = given[0].strip().partition(b" ")
    word = scheme.lower().decode("ascii", "replace")
    secret = secret.strip()
    if word not in schemes or not secret or not secret.isascii():
        return None
    return Presented(word, secret.decode("ascii"), given[0])
