"""The notifications of the benchmarks are in order, and all of them are taken."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from seamark.bench import notices
from seamark.bench.bench import Bench
from seamark.bench.notify_validate import checked
from seamark.config import load
from seamark.notify.settings import read_options


def test_both_event_types_have_seven_fields() -> None:
    schema = notices.options().schema
    assert [len(event.fields) for event in schema] == [7, 7]


def test_bodies_differ_and_are_the_same_each_time() -> None:
    for event_type in (notices.VALUES, notices.PLACES):
        bodies = notices.bodies(event_type, 50)
        assert len(set(bodies)) == 50
        assert bodies == notices.bodies(event_type, 50)
        drafts = [checked(notices.options().schema, body) for body in bodies]
        assert all(draft.subject and len(draft.subject) == len(set(notices.SCHEMA[event_type]["topic"]["key_order"])) for draft in drafts)  # fmt: skip
        assert all((draft.geometry is not None) == (event_type == notices.PLACES) for draft in drafts)


def test_the_file_is_one_that_a_server_starts_with(bench: Bench, tmp_path: Path) -> None:
    options = read_options(load(environ={}, file=notices.file(bench), directory=tmp_path))
    assert options.schema.names == [notices.PLACES, notices.VALUES]
    assert options.history_max >= 1_000_000
    assert options.batch_pause_seconds == 0


def test_a_body_carries_its_stamp() -> None:
    found = notices.identifiers(notices.VALUES, random.Random(1))
    body = msgspec.json.decode(notices.body(notices.VALUES, next(found), 42))
    assert int(body["payload"]["t"]) == 42
