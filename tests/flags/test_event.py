from __future__ import annotations

from seamark.flags.event import KEEPALIVE, Inline, Resync, Snapshot, resync_event, version_data, version_event
from seamark.manifest.closure import digest, index_of
from seamark.manifest.delta import State, changes_between
from tests.manifest import vectors


def test_the_worked_event() -> None:
    """A is version 41, B is version 42: the flag uses the segment no longer, and the segment stays."""
    before = State(index_of(vectors.A), index_of(vectors.HASHES["V1"][0]))
    after = State(index_of(vectors.B), index_of(vectors.HASHES["V2"][0]))
    contents = {digest(content): content for content in vectors.B.values()}
    data = version_data(
        Inline(
            namespace="billing",
            version=42,
            prev_version=41,
            prev_closure_hash=vectors.HASHES["V1"][1],
            closure_hash=vectors.HASHES["V2"][1],
            files=changes_between(before, after, contents.__getitem__),
        )
    )
    assert version_event("billing", 42, data) == vectors.WORKED_EVENT


def test_a_snapshot() -> None:
    event = Snapshot(
        namespace="billing",
        version=42,
        prev_version=None,
        prev_closure_hash=None,
        closure_hash="sha256:9c2e",
        snapshot_url="https://exd.example.com/x?version=42",
        snapshot_size_bytes=18432,
    )
    assert version_event("billing", 42, version_data(event)) == (
        b"event: version\n"
        b"id: billing:42\n"
        b'data: {"protocol":"v2","namespace":"billing","version":42,"prev_version":null,"prev_closure_hash":null,'
        b'"closure_hash":"sha256:9c2e","delivery":"snapshot","snapshot_url":"https://exd.example.com/x?version=42",'
        b'"snapshot_size_bytes":18432}\n\n'
    )


def test_a_resync() -> None:
    event = Resync(namespace="billing", current_version=3, reason="unknown_since", snapshot_url="https://x/y")
    assert resync_event(event) == (
        b"event: resync\n"
        b"id: billing:3\n"
        b'data: {"protocol":"v2","namespace":"billing","current_version":3,"reason":"unknown_since",'
        b'"snapshot_url":"https://x/y"}\n\n'
    )


def test_the_comment_in_silence() -> None:
    assert KEEPALIVE == b":keepalive\n\n"
