"""The page about flags names every field, type and permission that the surface knows."""

from __future__ import annotations

import msgspec
import pytest

from seamark.access.tokens import TYPES
from seamark.flags.evaluate_routes import FlagsBody
from seamark.flags.manifest_routes import RollbackBody
from seamark.flags.namespace_routes import NamespaceBody
from seamark.flags.tenant_routes import TenantBody
from seamark.flags.token_routes import TokenBody
from seamark.manifest.predicate import COMBINATORS, Op
from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("body", [TenantBody, NamespaceBody, TokenBody, FlagsBody])
def test_every_field_is_named(body: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(body):
        assert f"`{field.encode_name}`" in PAGE, field.name


def test_the_fields_of_a_rollback_are_shown() -> None:
    assert [field.name for field in msgspec.structs.fields(RollbackBody)] == ["version"]
    assert '`{"version": 1}`' in PAGE


def test_every_type_is_there_with_what_it_permits() -> None:
    rows = {row.split("`")[1]: row for row in PAGE.splitlines() if row.startswith("| `") and "`exd_" in row}
    assert set(rows) == set(TYPES)
    for name, row in TYPES.items():
        assert f"`{row.prefix}`" in rows[name]
    for permission in frozenset[str]().union(*(row.permissions for row in TYPES.values())):
        assert f"`{permission}`" in PAGE


def test_every_operator_and_combinator_is_there() -> None:
    for op in Op:
        assert f"`{op.value}`" in PAGE
    for combinator in COMBINATORS:
        assert f"{{ {combinator} = " in PAGE
