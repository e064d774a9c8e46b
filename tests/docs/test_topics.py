"""The page about topics names every field that the surface knows."""

from __future__ import annotations

import re

import msgspec
import pytest

from seamark.log.settings import Durability
from seamark.topics.diff import DiffBody
from seamark.topics.model import TopicConfig
from seamark.topics.queue_model import ClaimBody, ExtendBody, NackBody
from seamark.topics.router_routes import RouterBody
from seamark.topics.surface import OPERATIONS
from seamark.topics.watch_routes import WatchBody
from seamark.topics.write import RecordIn, WriteBody
from tests.docs.markdown import ROOT, blocks

PATH = ROOT / "docs" / "topics.md"
PAGE = PATH.read_text(encoding="utf-8")
CALL = re.compile(r"curl (?:-N )?(?:-X (?P<method>[A-Z]+) )?\"?http://[^/]+(?P<path>/[^\s\"?]*)(?P<rest>[^\n]*)")


@pytest.mark.parametrize(
    "body", [WriteBody, RecordIn, TopicConfig, DiffBody, WatchBody, RouterBody, ClaimBody, NackBody, ExtendBody]
)
def test_every_field_is_named(body: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(body):
        assert f"`{field.encode_name}`" in PAGE, field.name


def test_defaults_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `([^`|]+)` \| ", PAGE.partition("## Configuration")[2], re.MULTILINE))
    for field in msgspec.structs.fields(TopicConfig):
        if field.name in rows and field.name != "durability":
            assert msgspec.json.decode(rows[field.name]) == field.default
    assert {"type", "ttl_ms", "discard", "idempotency_window_ms", "dedupe_node", "auto_create"} <= set(rows)


def test_every_class_is_named() -> None:
    for durability in Durability:
        assert f"`{durability}`" in PAGE


def test_every_route_has_an_example_that_runs() -> None:
    called = set()
    for block in blocks(PATH):
        if "run" in block.tags:
            for call in CALL.finditer(block.text):
                method = call["method"] or ("POST" if " -d " in call["rest"] or call["rest"].endswith("\\") else "GET")
                called.add((method, call["path"]))
    for method, pattern in OPERATIONS:
        like = re.compile(re.sub(r"\{[a-z]+\}", "[^/]+", pattern))
        known = pattern in {"/healthz", "/readyz"}  # other names of two that are shown
        assert known or any(verb == method and like.fullmatch(path) for verb, path in called), (method, pattern)
