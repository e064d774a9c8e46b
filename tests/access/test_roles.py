"""Who has one of the roles that were named."""

from __future__ import annotations

import pytest

from seamark.access.roles import has_role
from seamark.access.user import User


@pytest.mark.parametrize(
    ("realm", "roles", "wanted", "has"),
    [
        ("ocean", ["reader"], {"ocean": ["reader"]}, True),
        ("ocean", ["x", "reader"], {"ocean": ["writer", "reader"]}, True),
        ("ocean", ["reader"], {"ocean": ["writer"]}, False),
        ("ocean", ["reader"], {"desert": ["reader"]}, False),
        ("ocean", [], {"ocean": ["*"]}, True),
        ("ocean", [], {"desert": ["*"]}, False),
        ("ocean", ["*"], {"ocean": ["reader"]}, False),  # a star is a word of the file, not of tokens
        ("Ocean", ["reader"], {"ocean": ["reader"]}, False),
        ("ocean", ["Reader"], {"ocean": ["reader"]}, False),
        ("", ["reader"], {"": ["reader", "*"]}, False),
        ("", ["reader"], {"ocean": ["*"]}, False),
        ("ocean", ["reader"], {}, False),
    ],
)
def test_roles(realm: str, roles: list[str], wanted: dict[str, list[str]], has: bool) -> None:
    assert has_role(User(name="u", realm=realm, roles=frozenset(roles)), wanted) is has
