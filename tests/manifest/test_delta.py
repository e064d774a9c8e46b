from __future__ import annotations

from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.errors import BadDelta
from seamark.manifest.closure import closure_hash, closure_of, digest, index_of
from seamark.manifest.delta import FileChange, State, apply_changes, changes_between, steps_between
from seamark.manifest.subscription import EVERY_FLAG, FlagList
from tests.manifest import vectors
from tests.manifest.worlds import World, commits, subscriptions, worlds


def state(world: World, wanted: FlagList) -> State:
    index = index_of(world.files)
    return State(index, closure_of(world.manifest, index, wanted))


def delta(before: World, after: World, wanted: FlagList) -> list[FileChange]:
    contents = {digest(content): content for content in after.files.values()}
    return changes_between(state(before, wanted), state(after, wanted), contents.__getitem__)


def ops(before: World, after: World, wanted: FlagList) -> dict[str, str]:
    return {change.path: change.op for change in delta(before, after, wanted)}


NO_REFS: frozenset[str] = frozenset()
BASE = World(0, {"a": (NO_REFS, 0), "b": (frozenset({"s"}), 0)}, {"s": (NO_REFS, 0), "t": (NO_REFS, 0)})
USING_T = World(0, {"a": (frozenset({"t"}), 0), "b": (frozenset({"s"}), 0)}, BASE.segments)
A_ONLY = FlagList.of(["a"])


@pytest.mark.parametrize(
    ("before", "after", "wanted", "expected"),
    [
        pytest.param(
            World(0, {}, {}),
            World(0, {"a": (frozenset({"s"}), 0)}, {"s": (NO_REFS, 0)}),
            A_ONLY,
            {"flags/a.toml": "added", "segments/s.toml": "added"},
            id="added",
        ),
        pytest.param(
            BASE,
            World(1, {"a": (NO_REFS, 1), "b": (NO_REFS, 5)}, {}),
            A_ONLY,
            {"flags/a.toml": "modified", "namespace.toml": "modified"},
            id="modified",
        ),
        pytest.param(
            USING_T,
            World(None, {}, {"s": (NO_REFS, 0)}),
            A_ONLY,
            {"flags/a.toml": "removed", "namespace.toml": "removed", "segments/t.toml": "removed"},
            id="removed",
        ),
        pytest.param(BASE, USING_T, A_ONLY, {"flags/a.toml": "modified", "segments/t.toml": "enter"}, id="enter"),
        pytest.param(
            BASE,
            World(0, USING_T.flags, {"s": (NO_REFS, 0), "t": (NO_REFS, 9)}),
            A_ONLY,
            {"flags/a.toml": "modified", "segments/t.toml": "enter"},
            id="enter, changed in the same commit",
        ),
        pytest.param(USING_T, BASE, A_ONLY, {"flags/a.toml": "modified", "segments/t.toml": "leave"}, id="leave"),
        pytest.param(
            USING_T,
            World(0, {"b": (frozenset({"s"}), 0)}, {"s": (NO_REFS, 0), "t": (NO_REFS, 4)}),
            A_ONLY,
            {"flags/a.toml": "removed", "segments/t.toml": "leave"},
            id="leave, changed in the same commit",
        ),
        pytest.param(BASE, USING_T, EVERY_FLAG, {"flags/a.toml": "modified"}, id="a star sees no enter"),
        pytest.param(
            USING_T,
            World(0, BASE.flags, {"s": (NO_REFS, 0)}),
            EVERY_FLAG,
            {"flags/a.toml": "modified", "segments/t.toml": "removed"},
            id="a star sees no leave",
        ),
        pytest.param(BASE, World(0, {**BASE.flags, "c": (NO_REFS, 0)}, BASE.segments), A_ONLY, {}, id="nothing"),
    ],
)
def test_the_ops(before: World, after: World, wanted: FlagList, expected: dict[str, str]) -> None:
    assert ops(before, after, wanted) == expected


def test_what_enters_brings_its_new_bytes() -> None:
    after = World(0, USING_T.flags, {"s": (NO_REFS, 0), "t": (NO_REFS, 9)})
    entry = next(change for change in delta(BASE, after, A_ONLY) if change.op == "enter")
    content = after.files["segments/t.toml"]
    assert entry.sha256 == digest(content).hex()
    assert entry.content_b64 == b64encode(content).decode()


def test_the_worked_event() -> None:
    a, b = index_of(vectors.A), index_of(vectors.B)
    closures = [index_of(vectors.HASHES[name][0]) for name in ("V1", "V2")]
    contents = {digest(content): content for content in vectors.B.values()}
    changes = changes_between(State(a, closures[0]), State(b, closures[1]), contents.__getitem__)
    assert msgspec.json.encode(changes) == vectors.WORKED_DATA.partition(b'"files":')[2].removesuffix(b"}")


def test_steps_come_in_byte_order_of_paths() -> None:
    after = World(1, dict.fromkeys(("a", "a-b", "a_b"), (NO_REFS, 1)), {"a": (NO_REFS, 1)})
    paths = [step.path for step in steps_between(state(World(0, {}, {}), EVERY_FLAG), state(after, EVERY_FLAG))]
    assert paths == ["flags/a-b.toml", "flags/a.toml", "flags/a_b.toml", "namespace.toml", "segments/a.toml"]


@given(st.data(), worlds(), subscriptions)
def test_the_changes_turn_each_closure_into_the_next(data: st.DataObject, world: World, wanted: FlagList) -> None:
    mirror = {path: world.files[path] for path in state(world, wanted).closure}
    for _ in range(4):
        after = data.draw(commits(world))
        wire = msgspec.json.encode(delta(world, after, wanted))
        mirror = apply_changes(mirror, msgspec.json.decode(wire, type=list[FileChange]))
        assert closure_hash(index_of(mirror)) == closure_hash(state(after, wanted).closure)
        assert mirror == {path: after.files[path] for path in state(after, wanted).closure}
        world = after


@given(st.data(), worlds(), subscriptions)
def test_the_ops_mean_what_they_say(data: st.DataObject, before: World, wanted: FlagList) -> None:
    after = data.draw(commits(before))
    old, new = state(before, wanted), state(after, wanted)
    for path, op, content in steps_between(old, new):
        assert (content is not None) == (op in {"added", "modified", "enter"})
        assert (
            op
            == {
                (False, False, True, True): "added",
                (True, True, True, True): "modified",
                (True, True, False, False): "removed",
                (True, False, True, True): "enter",
                (True, True, True, False): "leave",
            }[path in old.tree, path in old.closure, path in new.tree, path in new.closure]
        )


GOOD = FileChange("flags/a.toml", "added", digest(b"x").hex(), b64encode(b"x").decode())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([FileChange("flags/../a.toml", "removed")], "path"),
        ([FileChange("/flags/a.toml", "removed")], "path"),
        ([FileChange("flags/A.toml", "removed")], "path"),
        ([FileChange("readme.md", "removed")], "path"),
        ([FileChange("", "removed")], "path"),
        ([GOOD, GOOD], "duplicate_path"),
        ([GOOD, FileChange("flags/a.toml", "removed")], "duplicate_path"),
        ([FileChange("flags/a.toml", "moved", GOOD.sha256, GOOD.content_b64)], "op"),
        ([FileChange("flags/a.toml", "")], "op"),
        ([FileChange("flags/a.toml", "added")], "content"),
        ([FileChange("flags/a.toml", "enter", sha256=GOOD.sha256)], "content"),
        ([FileChange("flags/a.toml", "modified", content_b64=GOOD.content_b64)], "content"),
        ([FileChange("flags/a.toml", "removed", GOOD.sha256, GOOD.content_b64)], "content"),
        ([FileChange("flags/a.toml", "leave", sha256=GOOD.sha256)], "content"),
        ([FileChange("flags/a.toml", "added", GOOD.sha256, "eA")], "base64"),
        ([FileChange("flags/a.toml", "added", GOOD.sha256, "e A==")], "base64"),
        ([FileChange("flags/a.toml", "added", GOOD.sha256, "eA==\n")], "base64"),
        ([FileChange("flags/a.toml", "added", GOOD.sha256, "é")], "base64"),
        ([FileChange("flags/a.toml", "added", GOOD.sha256, "eQ==")], "sha256"),
        ([FileChange("flags/a.toml", "added", str(GOOD.sha256).upper(), "eA==")], "sha256"),
    ],
)
def test_a_delta_that_contradicts_itself_is_refused(changes: list[FileChange], reason: str) -> None:
    files = {"flags/a.toml": b"before"}
    with pytest.raises(BadDelta) as caught:
        apply_changes(files, changes)
    assert caught.value.fields["reason"] == reason
    assert files == {"flags/a.toml": b"before"}


def test_removing_what_is_not_there_is_for_the_hash_to_judge() -> None:
    assert apply_changes({}, [FileChange("flags/a.toml", "removed")]) == {}


def test_an_empty_file_has_content() -> None:
    change = FileChange("flags/a.toml", "added", digest(b"").hex(), "")
    assert msgspec.json.decode(msgspec.json.encode(change), type=FileChange) == change
    assert b'"content_b64":""' in msgspec.json.encode(change)
    assert apply_changes({}, [change]) == {"flags/a.toml": b""}
