"""Flag lists: which flags of a namespace somebody subscribes to, and the one form in which a list is hashed and signed."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field

from seamark.errors import MalformedList, TooManyFlags
from seamark.limits import FLAGS_PER_NAMESPACE_MAX
from seamark.manifest.paths import is_key


@dataclass(frozen=True, slots=True)
class FlagList:
    """`keys` are distinct and in byte order; None stands for `*`, which is every flag, now and later. `token` is how the
    closure endpoint takes it: base64 for URLs, without padding, over the canonical form."""

    canonical: str
    keys: tuple[str, ...] | None = field(compare=False)
    token: str = field(compare=False)

    @classmethod
    def of(cls, keys: Iterable[str] | None) -> FlagList:
        distinct = None if keys is None else tuple(sorted(set(keys)))
        canonical = "*" if distinct is None else ",".join(distinct)
        return cls(canonical, distinct, urlsafe_b64encode(canonical.encode()).rstrip(b"=").decode())


EVERY_FLAG = FlagList.of(None)


def parse_flag_list(text: str) -> FlagList:
    """`*`, or keys with commas between them; a key that is named twice counts once. Raises MalformedList, TooManyFlags."""
    if text == "*":
        return EVERY_FLAG
    keys = set(text.split(","))
    for key in keys:
        if not is_key(key):
            raise MalformedList("a list of flags is `*`, or keys with commas between them")
    if len(keys) > FLAGS_PER_NAMESPACE_MAX:
        raise TooManyFlags(
            f"a list names {FLAGS_PER_NAMESPACE_MAX} flags at the most, not {len(keys)}", max=FLAGS_PER_NAMESPACE_MAX
        )
    return FlagList.of(keys)


def from_token(token: str) -> FlagList:
    """The list in a URL, which need not be in canonical form. Raises MalformedList, TooManyFlags."""
    try:
        raw = token.encode("ascii")
        text = urlsafe_b64decode(raw + b"=" * (-len(raw) % 4))
        if urlsafe_b64encode(text).rstrip(b"=") != raw:  # padding, letters that are skipped, or bits to spare
            raise ValueError(token)
        return parse_flag_list(text.decode("ascii"))
    except (binascii.Error, ValueError):
        raise MalformedList("a subscription is base64 for URLs, without padding, over a list of flags") from None
