"""Roles: whether a user has one of those that were named, realm by realm."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from seamark.access.user import User

EVERY_ROLE = "*"
Roles = Mapping[str, Collection[str]]
"""Realm -> roles; `*` stands for every role of the realm, and for a user of it who has none."""


def has_role(user: User, wanted: Roles) -> bool:
    """Only the user's own realm counts. A user without one has no role anywhere, also where a realm has an empty name."""
    named = wanted.get(user.realm, ()) if user.realm else ()
    return EVERY_ROLE in named or not user.roles.isdisjoint(named)
