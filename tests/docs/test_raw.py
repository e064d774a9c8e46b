"""The page about the raw surface names every field that the surface knows."""

from __future__ import annotations

import re

import msgspec
import pytest

from seamark.log.settings import Durability
from seamark.match.constraint import Op
from seamark.raw.filters import FilterBody
from seamark.raw.model import AppendBody, DeleteBody, RawDraft, SettingsBody
from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs" / "raw.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("body", [AppendBody, RawDraft, SettingsBody, DeleteBody, FilterBody])
def test_every_field_is_named(body: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(body):
        assert f"`{field.encode_name}`" in PAGE, field.name


def test_defaults_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)`.*? \| `?([^|`]+)`? \| ", PAGE.partition("## Settings")[2], re.MULTILINE))
    for field in msgspec.structs.fields(SettingsBody):
        if field.name in rows:
            assert msgspec.json.decode(rows[field.name]) == field.default
    assert {"durability", "ttl_ms", "discard", "dedupe_window_ms"} <= set(rows)


def test_every_operator_and_class_is_named() -> None:
    for op in Op:
        assert f'{{"{op}":' in PAGE
    for durability in Durability:
        assert f"`{durability}`" in PAGE
