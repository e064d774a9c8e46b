from __future__ import annotations

import hashlib
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.manifest.closure import (
    EMPTY_HASH,
    closure_hash,
    closure_of,
    digest,
    has_changed,
    index_of,
    reachable,
)
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.lint import lint
from seamark.manifest.paths import flag_path, segment_path
from seamark.manifest.subscription import EVERY_FLAG, FlagList, parse_flag_list
from tests.manifest import vectors
from tests.manifest.worlds import SLUG, World, commits, subscriptions, worlds


@pytest.mark.parametrize("name", vectors.HASHES)
def test_the_vectors(name: str) -> None:
    files, expected = vectors.HASHES[name]
    assert closure_hash(index_of(files)) == expected


def test_no_closure_hashes_to_nothing() -> None:
    assert closure_hash({}) == EMPTY_HASH == vectors.HASHES["V0"][1]


def test_paths_are_sorted_not_keys() -> None:
    files, _ = vectors.HASHES["V4"]
    assert closure_hash(index_of(files)) != vectors.WRONG_ORDER
    assert list(index_of(files)) == ["flags/a-b.toml", "flags/a.toml", "namespace.toml"]


def test_the_wrong_order_is_the_one_by_keys() -> None:
    """Else the trap above would not be one."""
    buffer = b"".join(
        len(path).to_bytes(4, "big") + path.encode() + digest(content)
        for path, content in (("flags/a.toml", b"A"), ("flags/a-b.toml", b"AB"), ("namespace.toml", b"N"))
    )
    assert f"sha256:{hashlib.sha256(buffer).hexdigest()}" == vectors.WRONG_ORDER


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), st.binary(max_size=4)))
def test_the_hash_is_over_utf_8_in_byte_order(files: dict[str, bytes]) -> None:
    buffer = b""
    for name in sorted(path.encode() for path in files):
        buffer += len(name).to_bytes(4, "big") + name + hashlib.sha256(files[name.decode()]).digest()
    assert closure_hash(index_of(files)) == f"sha256:{hashlib.sha256(buffer).hexdigest()}"


def test_the_worked_closures() -> None:
    wanted = FlagList.of(["checkout-redesign"])
    with_rule = World(0, {"checkout-redesign": (frozenset({"employees"}), 0)}, {"employees": (frozenset(), 0)})
    without = World(0, {"checkout-redesign": (frozenset(), 0)}, {"employees": (frozenset(), 0)})
    assert closure_hash(closure_of(with_rule.manifest, index_of(vectors.A), wanted)) == vectors.HASHES["V1"][1]
    assert closure_hash(closure_of(without.manifest, index_of(vectors.B), wanted)) == vectors.HASHES["V2"][1]


SHARED = World(
    namespace=None,
    flags={"one": (frozenset({"deep"}), 0), "two": (frozenset(), 0)},
    segments={
        "base": (frozenset(), 0),
        "deep": (frozenset({"base"}), 0),
        "orphan": (frozenset({"base"}), 0),
    },
)


@pytest.mark.parametrize(
    ("wanted", "paths"),
    [
        ("two", ["flags/two.toml"]),
        ("one", ["flags/one.toml", "segments/base.toml", "segments/deep.toml"]),
        ("one,unknown", ["flags/one.toml", "segments/base.toml", "segments/deep.toml"]),
        ("unknown", []),
        (
            "*",
            [
                "flags/one.toml",
                "flags/two.toml",
                "segments/base.toml",
                "segments/deep.toml",
                "segments/orphan.toml",
            ],
        ),
    ],
)
def test_what_a_subscription_needs(wanted: str, paths: list[str]) -> None:
    assert list(closure_of(SHARED.manifest, index_of(SHARED.files), parse_flag_list(wanted))) == paths


def test_the_namespace_is_in_every_closure_once_it_is_there() -> None:
    named = World(3, SHARED.flags, SHARED.segments)
    assert list(closure_of(named.manifest, index_of(named.files), FlagList.of(["unknown"]))) == ["namespace.toml"]


def test_a_circle_of_segments_ends() -> None:
    world = World(None, {"f": (frozenset({"a"}), 0)}, {"a": (frozenset({"b"}), 0), "b": (frozenset({"a"}), 0)})
    assert reachable(world.manifest, ["f"]) == {"a", "b"}


@given(worlds(), subscriptions)
def test_a_closure_is_the_least_that_holds_what_it_names(world: World, wanted: FlagList) -> None:
    """Told a second way: grow it by one reference at a time, until nothing is missing."""
    index = index_of(world.files)
    closure = closure_of(world.manifest, index, wanted)
    if wanted.keys is None:
        assert closure == index
        return
    named = [key for key in wanted.keys if key in world.flags]
    segments = reduce(frozenset.union, (world.flags[key][0] for key in named), frozenset[str]())
    for _ in world.segments:
        segments = reduce(frozenset.union, (world.segments[key][0] for key in segments), segments)
    expected = {*map(flag_path, named), *map(segment_path, segments)} | ({"namespace.toml"} & index.keys())
    assert closure == {path: index[path] for path in expected}
    assert list(closure) == sorted(closure, key=str.encode)


@given(st.data(), worlds(), subscriptions)
def test_the_cheap_look_is_exact(data: st.DataObject, world: World, wanted: FlagList) -> None:
    for _ in range(3):
        before = closure_of(world.manifest, index_of(world.files), wanted)
        world = data.draw(commits(world))
        after = closure_of(world.manifest, index_of(world.files), wanted)
        assert has_changed(before, index_of(world.files), wanted) == (closure_hash(before) != closure_hash(after))


def test_the_cheap_look_in_words() -> None:
    index = index_of(SHARED.files)
    for wanted, changed, expected in (
        ("two", {"segments/base.toml": b"x"}, False),
        ("one", {"segments/base.toml": b"x"}, True),
        ("one", {"segments/orphan.toml": b"x"}, False),
        ("*", {"segments/orphan.toml": b"x"}, True),
        ("unknown", {"flags/unknown.toml": b"x"}, True),
        ("unknown", {"namespace.toml": b"x"}, True),
        ("unknown", {"flags/other.toml": b"x"}, False),
        ("*", {}, False),
    ):
        flags = EVERY_FLAG if wanted == "*" else parse_flag_list(wanted)
        closure = closure_of(SHARED.manifest, index, flags)
        after = index_of({**SHARED.files, **changed})
        assert has_changed(closure, after, flags) is expected, (wanted, changed)


# -- with what the linter makes of the same files


@given(worlds())
def test_the_worlds_of_these_tests_are_what_they_say(world: World) -> None:
    linted = lint(world.files, slug=SLUG)
    assert linted.passed, linted.errors
    assert linted.manifest is not None
    for kind in ("flags", "segments"):
        found, said = getattr(linted.manifest, kind), getattr(world.manifest, kind)
        assert {key: one.segments for key, one in found.items()} == {key: one.segments for key, one in said.items()}


@given(worlds(), subscriptions)
def test_the_closure_of_a_manifest_without_errors_has_none(world: World, wanted: FlagList) -> None:
    """Nor a warning that the whole does not have, but for one: a closure may be without a flag."""
    whole = lint(world.files, slug=SLUG)
    assert whole.manifest is not None
    index = index_of(world.files)
    closure = closure_of(whole.manifest, index, wanted)
    part = lint({path: world.files[path] for path in closure}, slug=SLUG)
    assert part.passed, part.errors
    assert part.manifest is not None
    assert {one for one in part.diagnostics if one.code != "W011"} <= set(whole.diagnostics)
    named = world.flags.keys() if wanted.keys is None else world.flags.keys() & set(wanted.keys)
    assert part.manifest.flags.keys() == named
    assert closure_of(part.manifest, closure, wanted) == closure, "it is its own closure"


@given(worlds(), subscriptions)
def test_a_closure_answers_as_the_whole(world: World, wanted: FlagList) -> None:
    whole = lint(world.files, slug=SLUG).manifest
    assert whole is not None
    closure = closure_of(whole, index_of(world.files), wanted)
    part = lint({path: world.files[path] for path in closure}, slug=SLUG).manifest
    assert part is not None
    for key in part.flags:
        for environment in ("dark", "prod"):
            for context in ({}, {"user.id": "u-1"}):
                for testing in (False, True):
                    answers = [
                        Evaluator(manifest).evaluate(key, environment, context, include_testing=testing)
                        for manifest in (part, whole)
                    ]
                    assert answers[0] == answers[1]
