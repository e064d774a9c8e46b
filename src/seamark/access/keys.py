"""API keys: who holds one, what it may do, and on which names.

The text form is a comma-separated list of `key`, `key:scopes`, `key:scopes:prefixes` or `key::prefixes`: scopes joined by
`+` (read, write, delete, admin, or their short forms), prefixes joined by `|`. No scopes means all, no prefixes means any
name. Keys are kept as digests only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import NoReturn

from seamark.access.presented import presented_key
from seamark.errors import BadConfig, Unauthenticated

ACTIONS = frozenset({"read", "write", "delete", "admin"})
_WORDS: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "r": frozenset({"read"}),
    "write": frozenset({"write"}),
    "w": frozenset({"write"}),
    "rw": frozenset({"read", "write"}),
    "delete": frozenset({"delete"}),
    "del": frozenset({"delete"}),
    "d": frozenset({"delete"}),
    "admin": frozenset({"admin"}),
    "a": frozenset({"admin"}),
}
_ACCEPTS = "comma-separated key[:scope+scope[:prefix|prefix]], scopes read, write, delete, admin"


class Anyone:
    """The only principal of a server without keys: everything is open, which is why such a server binds to loopback."""

    __slots__ = ()
    name = "anyone"

    def can(self, action: str) -> bool:
        return True

    def may(self, action: str, resource: str) -> bool:
        return True


class Nobody:
    """A caller without credentials on a route that needs none, at a server that has keys."""

    __slots__ = ()
    name = "nobody"

    def can(self, action: str) -> bool:
        return False

    def may(self, action: str, resource: str) -> bool:
        return False


class KeyHolder:
    """Whoever presents one key."""

    __slots__ = ("name", "prefixes", "scopes")

    def __init__(self, *, name: str, scopes: frozenset[str], prefixes: tuple[str, ...]) -> None:
        self.name = name
        self.scopes = scopes
        self.prefixes = prefixes

    def can(self, action: str) -> bool:
        return action in self.scopes

    def may(self, action: str, resource: str) -> bool:
        if action not in self.scopes:
            return False
        return not self.prefixes or resource.startswith(self.prefixes)


ANYONE = Anyone()
NOBODY = Nobody()


class KeyRing:
    """All keys of a server. Falsy when there are none."""

    __slots__ = ("_holders",)

    def __init__(self, holders: dict[bytes, KeyHolder]) -> None:
        self._holders = holders

    def __len__(self) -> int:
        return len(self._holders)

    def authenticate(
        self, headers: Sequence[tuple[bytes, bytes]], query: bytes = b"", *, in_query: bool = False
    ) -> Anyone | KeyHolder:
        """The principal behind a request; `in_query` where the key may stand there. Raises Unauthenticated."""
        if not self._holders:
            return ANYONE
        digest = hashlib.sha256(presented_key(headers, query, in_query=in_query)).digest()
        found: KeyHolder | None = None
        for known, holder in self._holders.items():
            # Every digest is compared, so that the time taken says nothing about which key was close.
            if hmac.compare_digest(known, digest):
                found = holder
        if found is None:
            raise Unauthenticated("the API key is not known here")
        return found


def parse_keys(text: str, *, place: str) -> KeyRing:
    """The key ring that `text` describes; `place` says in errors where the text came from."""
    holders: dict[bytes, KeyHolder] = {}
    for number, entry in enumerate(text.split(","), start=1):
        if not entry.strip():
            continue
        secret, scope_words, prefix_words = [*(part.strip() for part in entry.split(":", 2)), "", ""][:3]
        if not secret:
            _refuse(place, number, "the key itself is empty")
        digest = hashlib.sha256(secret.encode()).digest()
        if digest in holders:
            _refuse(place, number, "the same key is given twice")
        holders[digest] = KeyHolder(
            name=f"key-{digest.hex()[:32]}",
            scopes=_scopes(scope_words, place, number),
            prefixes=_prefixes(prefix_words, place, number),
        )
    return KeyRing(holders)


def _scopes(words: str, place: str, number: int) -> frozenset[str]:
    if not words:
        return ACTIONS
    granted: set[str] = set()
    for word in words.lower().split("+"):
        scopes = _WORDS.get(word.strip())
        if scopes is None:
            # Also the empty word: a stray "+" must not end as full access.
            _refuse(place, number, f"{word.strip()!r} is not a scope")
        granted |= scopes
    return frozenset(granted)


def _prefixes(words: str, place: str, number: int) -> tuple[str, ...]:
    if not words:
        return ()
    prefixes = tuple(word.strip() for word in words.split("|") if word.strip())
    if not prefixes:
        # As with scopes: a stray "|" must not end as access to every name.
        _refuse(place, number, "there is no prefix between the bars")
    return prefixes


def _refuse(place: str, number: int, why: str) -> NoReturn:
    message = f"api_keys ({place}): entry {number}: {why}; accepted: {_ACCEPTS}"
    raise BadConfig(message, name="api_keys", place=place, accepts=_ACCEPTS)
