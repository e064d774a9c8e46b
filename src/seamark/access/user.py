"""A person or a program that some other service knows: who they are by their token, and the roles they have there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A principal without scopes. What it may do hangs on its roles, and on the thing that it wants to do it to."""

    name: str
    realm: str = ""  # none: it matches nobody's roles
    roles: frozenset[str] = frozenset()
    attributes: Mapping[str, object] = MappingProxyType({})

    def can(self, action: str) -> bool:
        return False

    def may(self, action: str, resource: str) -> bool:
        return False
