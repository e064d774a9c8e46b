from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.client.flags.event import BadEvent, Inline, Resync, Snapshot, read_event
from seamark.manifest.delta import FileChange

ZERO, ONE = "sha256:" + "0" * 64, "sha256:" + "1" * 64
INLINE: dict[str, Any] = {
    "protocol": "v2",
    "namespace": "billing",
    "version": 42,
    "prev_version": 41,
    "prev_closure_hash": ZERO,
    "closure_hash": ONE,
    "delivery": "inline",
    "files": [{"path": "segments/legacy.toml", "op": "leave"}],
}
WHOLE: dict[str, Any] = {
    "protocol": "v2",
    "namespace": "billing",
    "version": 42,
    "prev_version": None,
    "prev_closure_hash": None,
    "closure_hash": ONE,
    "delivery": "snapshot",
    "snapshot_url": "http://h/closure?version=42",
    "snapshot_size_bytes": 3,
}
RESYNC: dict[str, Any] = {
    "protocol": "v2",
    "namespace": "billing",
    "current_version": 7,
    "reason": "unknown_since",
    "snapshot_url": "http://h/closure?version=7",
}


def read(body: dict[str, Any], event: str = "version") -> object:
    return read_event(event, json.dumps(body))


def test_the_three_things_that_a_server_says() -> None:
    leave = FileChange("segments/legacy.toml", "leave")
    assert read(INLINE) == Inline("billing", 42, ZERO, ONE, (leave,))
    assert read(WHOLE) == Snapshot("billing", 42, ONE, "http://h/closure?version=42")
    assert read(RESYNC, "resync") == Resync(Snapshot("billing", 7, None, "http://h/closure?version=7"), "unknown_since")


def test_what_the_protocol_may_grow_by_is_passed_over() -> None:
    file = {**INLINE["files"][0], "mode": 420}
    assert read({**INLINE, "files": [file], "hint": {"a": 1}}) == read(INLINE)
    assert read({**WHOLE, "hint": 1}) == read(WHOLE)
    assert read_event("news", "whatever") is None
    assert isinstance(read({**RESYNC, "reason": "pre_git_era"}, "resync"), Resync)


@pytest.mark.parametrize("protocol", ["v1", "v3", "", "V2"])
@pytest.mark.parametrize(("event", "body"), [("version", INLINE), ("version", WHOLE), ("resync", RESYNC)])
def test_another_protocol_is_the_end(protocol: str, event: str, body: dict[str, Any]) -> None:
    with pytest.raises(BadEvent) as caught:
        read({**body, "protocol": protocol}, event)
    assert caught.value.fatal


def test_a_server_that_cannot_serve_this_protocol_here_is_the_end() -> None:
    with pytest.raises(BadEvent) as caught:
        read({**RESYNC, "reason": "protocol_downgrade"}, "resync")
    assert (caught.value.fatal, caught.value.namespace) == (True, "billing")


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 0},
        {"version": "42"},
        {"version": None},
        {"closure_hash": None},
        {"closure_hash": "1" * 64},
        {"closure_hash": "sha256:" + "A" * 64},
        {"prev_closure_hash": "x"},
        {"delivery": "carrier-pigeon"},
        {"files": []},
        {"files": None},
        {"files": [{"op": "leave"}]},
        {"files": [{"path": 1, "op": "leave"}]},
        {"files": {}},
    ],
)
def test_a_malformed_delta_is_refused_and_says_whose_it_was(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadEvent) as caught:
        read({**INLINE, **wrong})
    assert (caught.value.fatal, caught.value.namespace) == (False, "billing")


@pytest.mark.parametrize("wrong", [{"snapshot_url": None}, {"snapshot_url": 1}])
def test_a_malformed_snapshot_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadEvent):
        read({**WHOLE, **wrong})


@pytest.mark.parametrize("wrong", [{"current_version": 0}, {"reason": None}, {"snapshot_url": None}])
def test_a_malformed_resync_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadEvent):
        read({**RESYNC, **wrong}, "resync")


@given(st.sampled_from(["version", "resync"]), st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_nothing_that_arrives_raises_anything_else(event: str, data: str) -> None:
    with pytest.raises(BadEvent):
        read_event(event, data)


def test_a_text_that_nests_without_end_is_refused() -> None:
    with pytest.raises(BadEvent):
        read_event("version", '{"protocol":"v2","namespace":"a","x":' + "[" * 100_000)
