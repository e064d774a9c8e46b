"""What a job carries with it when it moves."""

from __future__ import annotations

import json

import pytest

from seamark.topics.dead_letters import stamped

STAMPS = {"$dead_letter_from": "jobs", "$dead_letter_deliveries": "3", "$dead_letter_src_seq": "7"}


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        (None, {}),
        (b"{}", {}),
        (b'{"b":1,"a":{"x":[1]}}', {"b": 1, "a": {"x": [1]}}),
        (b'{"$dead_letter_from":"elsewhere","k":1}', {"k": 1}),
        (b"[1,2]", {"_topics_original_meta": [1, 2]}),
        (b'"text"', {"_topics_original_meta": "text"}),
    ],
)
def test_everything_stays_and_where_it_comes_from_is_added(meta: bytes | None, kept: dict[str, object]) -> None:
    found = json.loads(stamped(meta, source="jobs", deliveries=3, seq=7))
    assert found == {**kept, **STAMPS}
    assert list(found)[-3:] == list(STAMPS)


def test_numbers_stay_as_they_were_written() -> None:
    found = stamped(b'{"n":12345678901234567890123.10}', source="jobs", deliveries=1, seq=1)
    assert b'"n":12345678901234567890123.10' in found
