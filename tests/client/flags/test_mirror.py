from __future__ import annotations

import dataclasses
import random

import pytest

from seamark.client.flags.event import Inline
from seamark.client.flags.mirror import Mirror, NotLinted, NotVerified, changed_flags
from seamark.manifest.closure import closure_hash, closure_of, index_of
from seamark.manifest.delta import State, changes_between
from seamark.manifest.lint import lint
from seamark.manifest.model import Manifest
from seamark.manifest.subscription import EVERY_FLAG, FlagList, parse_flag_list
from tests.flags.manifests import flag, manifest, passed, segment

Files = dict[str, bytes]
BROKEN = b"no toml ="


def delta(before: Files, after: Files, version: int = 2) -> Inline:
    """What a server says to one who wants everything."""
    was, now = index_of(before), index_of(after)
    contents = {index_of({"x": content})["x"]: content for content in after.values()}
    changes = changes_between(State(was, was), State(now, now), contents.__getitem__)
    return Inline("ns", version, closure_hash(was), closure_hash(now), tuple(changes))


def mirror(files: Files) -> Mirror:
    made = Mirror("ns")
    made.replace(files, 1, closure_hash(index_of(files)))
    return made


def state(one: Mirror) -> tuple[object, ...]:
    return one.files, one.hash, one.version, one.held


def test_a_snapshot_and_what_follows_it() -> None:
    first, second = manifest({"a": flag(), "b": flag()}), manifest({"a": flag(note="2"), "c": flag()})
    one = Mirror("ns")
    assert one.held is None
    assert one.replace(first, 7, closure_hash(index_of(first))) == {"a", "b"}
    assert one.held is not None
    assert (one.held.version, one.held.hash, one.version) == (7, one.hash, 7)
    assert one.apply(delta(first, second, 9)) == {"a", "b", "c"}
    assert (one.files, one.version, one.held.version) == (second, 9, 9)
    assert one.held.evaluator.evaluate("c", "prod", {}).variant == "off"


def test_a_delta_for_another_closure_changes_nothing() -> None:
    first, second = manifest({"a": flag()}), manifest({"b": flag()})
    one = mirror(first)
    before = state(one)
    for event in (delta(second, first), dataclasses.replace(delta(first, second), before=None)):
        with pytest.raises(NotVerified) as caught:
            one.apply(event)
        assert caught.value.check == "pre_apply"
        assert state(one) == before


def test_a_delta_that_came_before_is_passed_over_also_when_it_would_fit() -> None:
    first, second = manifest({"a": flag()}), manifest({"b": flag()})
    one = mirror(first)
    one.apply(delta(first, second, 2))
    one.apply(delta(second, first, 3))
    before = state(one)
    for version in (1, 2, 3):
        assert one.apply(delta(first, second, version)) == frozenset()
        assert state(one) == before


def test_a_file_that_is_not_what_it_says_changes_nothing() -> None:
    first, second = manifest({"a": flag()}), manifest({"a": flag(note="2"), "b": flag()})
    event = delta(first, second)
    one = mirror(first)
    before = state(one)
    for wrong in (
        {"sha256": "0" * 64},
        {"content_b64": "QQ=="},
        {"content_b64": None},
        {"path": "flags/../a.toml"},
        {"path": "flags/a.toml"},  # twice
        {"op": "leave"},
        {"op": "conjure"},
    ):
        fields = {name: getattr(event.changes[1], name) for name in ("path", "op", "sha256", "content_b64")}
        changes = (event.changes[0], type(event.changes[1])(**{**fields, **wrong}))
        with pytest.raises(NotVerified) as caught:
            one.apply(dataclasses.replace(event, changes=changes))
        assert caught.value.check == "files", wrong
        assert state(one) == before


def test_a_closure_that_is_not_the_one_that_was_promised_changes_nothing() -> None:
    first, second = manifest({"a": flag(), "b": flag()}), manifest({"a": flag(note="2")})
    event = delta(first, second)
    one = mirror(first)
    before = state(one)
    for wrong in (
        dataclasses.replace(event, changes=event.changes[:1]),
        dataclasses.replace(event, after=closure_hash({})),
    ):
        with pytest.raises(NotVerified) as caught:
            one.apply(wrong)
        assert caught.value.check == "post_apply"
        assert state(one) == before


def test_a_snapshot_that_is_another_changes_nothing() -> None:
    first, second = manifest({"a": flag()}), manifest({"b": flag()})
    one = mirror(first)
    before = state(one)
    for files, expected in ((second, one.hash), ({**first, "evil.toml": b""}, closure_hash(index_of(first)))):
        assert expected is not None
        with pytest.raises(NotVerified) as caught:
            one.replace(files, 2, expected)
        assert caught.value.check == "snapshot"
        assert state(one) == before


def test_what_is_no_manifest_is_mirrored_but_not_evaluated() -> None:
    """So that the delta that mends it fits, and nobody fetches a snapshot for it."""
    first, broken, mended = manifest({"a": flag()}), manifest({"a": BROKEN}), manifest({"a": flag(note="3")})
    one = mirror(first)
    held = one.held
    with pytest.raises(NotLinted, match="E001"):
        one.apply(delta(first, broken, 2))
    assert (one.version, one.files, one.held) == (2, broken, held)
    assert one.apply(delta(broken, mended, 3)) == {"a"}
    assert one.held is not None
    assert one.held.version == 3


def test_what_was_abandoned_is_still_evaluated_and_takes_only_a_snapshot() -> None:
    first, second = manifest({"a": flag()}), manifest({"b": flag()})
    one = mirror(first)
    held = one.held
    one.abandon()
    assert one.held is held
    with pytest.raises(NotVerified):
        one.apply(delta(first, second))
    assert one.replace(second, 1, closure_hash(index_of(second))) == {"a", "b"}  # an older version is fine, too


def meaning(files: Files) -> Manifest:
    linted = passed(files)
    assert linted.manifest is not None
    return linted.manifest


def test_which_flags_a_change_concerns() -> None:
    flags = {"a": flag(segment="s"), "b": flag(segment="other"), "c": flag()}
    segments = {"s": segment(uses="t"), "t": segment(), "other": segment()}
    was = meaning(manifest(flags, segments))

    def changed(flags: Files, segments: Files, **root: bytes) -> frozenset[str]:
        return changed_flags(was, meaning(manifest(flags, segments, **root)))

    assert changed(flags, segments) == frozenset()
    assert changed(flags, {**segments, "t": segment(note="2")}) == {"a"}
    assert changed({**flags, "c": flag(note="2")}, segments) == {"c"}
    assert changed({"a": flags["a"], "b": flags["b"], "d": flag()}, segments) == {"c", "d"}
    assert changed(flags, {**segments, "unused": segment()}) == frozenset()
    assert changed(flags, segments, namespace=b'schema_version = "0.1"\n[namespace]\nslug = "ns"\n') == frozenset()
    environments = b'schema_version = "0.1"\n[namespace.environments]\nprod = {}\n'
    assert changed(flags, segments, namespace=environments) == {"a", "b", "c"}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("wanted", [EVERY_FLAG, parse_flag_list("a,b"), parse_flag_list("c,missing")])
def test_random_lives(seed: int, wanted: FlagList) -> None:
    """Commits as they come, of which some get lost, damaged or doubled on the way: what is held is always some closure that
    there was, and a snapshot brings it back to the newest."""
    dice = random.Random(seed)
    one = Mirror("ns")
    files = manifest()
    real: dict[str, Files] = {}
    said: list[Inline] = []

    def closure(files: Files) -> Files:
        linted = lint(files, slug="ns")
        assert linted.manifest is not None
        return {path: files[path] for path in closure_of(linted.manifest, index_of(files), wanted)}

    part = closure(files)
    for version in range(1, 60):
        segments = {key: segment(note=dice.choice("12")) for key in ("s", "t")}
        keys = dice.sample("abcde", dice.randint(0, 5))
        after = manifest(
            {key: flag(note=dice.choice("123"), segment=dice.choice([None, "s", "t"])) for key in keys}, segments
        )
        before, part = part, closure(after)
        hash_after = closure_hash(index_of(part))
        real[hash_after] = part
        tree, was, now = index_of(after), index_of(before), index_of(part)
        contents = {content: after[path] for path, content in tree.items()}
        changes = changes_between(State(index_of(files), was), State(tree, now), contents.__getitem__)
        said.append(Inline("ns", version, closure_hash(was), hash_after, tuple(changes)))
        files = after
        event = dice.choice([said[-1], said[-1], said[-1], dice.choice(said)])
        if event.changes and dice.random() < 0.2:
            spared = dice.randrange(len(event.changes))
            kept = event.changes[:spared] + event.changes[spared + 1 :]
            event = dataclasses.replace(event, changes=kept)
        try:
            one.apply(event)
        except NotVerified:
            if dice.random() < 0.5:
                one.replace(part, version, hash_after)
        if one.hash is not None:
            assert dict(one.files) == real[one.hash]
            assert one.held is not None
            assert one.held.hash == one.hash
    one.replace(part, 60, closure_hash(index_of(part)))
    assert dict(one.files) == part
