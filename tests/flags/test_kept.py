from __future__ import annotations

import pytest

from seamark.flags.kept import KeptVersions
from seamark.flags.version import KeptClosures, Version
from seamark.manifest.model import Manifest, Namespace


def version(number: int, weight: int | None = 0) -> Version:
    manifest = None if weight is None else Manifest(Namespace("ns"), weight=weight)
    index = {"flags/a.toml": bytes(32)}
    return Version("flags:acme/ns", number, index, manifest=manifest, narrow=lambda _, __: {}, closures=KeptClosures())


def kept_in(kept: KeptVersions, most: int = 9) -> list[int]:
    return [number for number in range(1, most) if kept.find("flags:acme/ns", number) is not None]


def test_the_one_used_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.kept.FLAG_VERSIONS_WEIGHT_KEPT", 3 * 1_300)
    kept = KeptVersions()
    for number in (1, 2, 3):
        kept.keep(version(number, 1_000))
    assert kept.find("flags:acme/ns", 1) is not None
    kept.keep(version(4, 1_000))
    assert kept_in(kept) == [1, 3, 4]
    kept.keep(version(5, 1_000_000))
    assert kept_in(kept) == [5]  # whatever it takes
    kept.keep(version(6, 1_000))
    assert kept_in(kept) == [6]


def test_a_version_takes_more_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.kept.FLAG_VERSIONS_WEIGHT_KEPT", 3_000)
    kept = KeptVersions()
    unread = kept.keep(version(1, None))
    kept.keep(version(2))
    unread.learn(Manifest(Namespace("ns"), weight=2_800))
    kept.keep(unread)
    assert kept_in(kept) == [1]
    kept.keep(unread)
    assert len(kept) == 1


def test_only_the_version_itself_is_dropped() -> None:
    kept = KeptVersions()
    kept.keep(version(1))
    kept.drop(version(1))
    assert kept_in(kept) == [1]
    one = kept.keep(version(1))
    kept.drop(one)
    kept.drop(one)
    assert kept_in(kept) == []
