from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from seamark.manifest.diagnostic import diagnostic
from seamark.manifest.document import Document, read_document
from seamark.manifest.lint import lint
from seamark.manifest.memo import Memo
from seamark.manifest.reading import Piece
from tests.manifest.tomls import CLEAN, flag

ENTRY = 512


def piece(path: str) -> Piece:
    return Piece(path, None, None, ())


def test_what_is_kept_is_found_again() -> None:
    memo = Memo()
    key = Memo.key("flags/a.toml", b"x")
    assert memo.find(key) is None
    memo.keep(key, piece("flags/a.toml"), 1)
    assert memo.find(key) == piece("flags/a.toml")
    assert memo.find(Memo.key("flags/b.toml", b"x")) is None
    assert memo.find(Memo.key("flags/a.toml", b"y")) is None


def test_what_was_used_longest_ago_makes_room() -> None:
    memo = Memo(bytes_max=3 * (ENTRY + 10))
    keys = [Memo.key(name, b"") for name in "abcd"]
    for key in keys[:3]:
        memo.keep(key, piece(key[0]), 10)
    assert memo.find(keys[0]) is not None
    memo.keep(keys[3], piece("d"), 10)
    assert [memo.find(key) is not None for key in keys] == [True, False, True, True]
    memo.keep(Memo.key("e", b""), piece("e"), 2 * ENTRY)
    assert [memo.find(key) is not None for key in keys] == [False, False, False, False]
    assert len(memo) == 1


def test_what_does_not_fit_is_not_kept() -> None:
    memo = Memo(bytes_max=1_000)
    memo.keep(Memo.key("a", b""), piece("a"), 1_000)
    assert len(memo) == 0


def test_what_was_found_takes_room_as_well() -> None:
    memo = Memo(bytes_max=2 * ENTRY)
    memo.keep(Memo.key("a", b""), replace(piece("a"), found=(diagnostic("E016", "a", "unknown"),) * 8), 1)
    assert len(memo) == 0


def test_keeping_twice_counts_once() -> None:
    memo = Memo(bytes_max=2 * ENTRY)
    for name in "aaab":
        memo.keep(Memo.key(name, b""), piece(name), 0)
    assert len(memo) == 2


def test_only_what_changed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(path: str, content: bytes) -> Document:
        read.append(path)
        return read_document(path, content)

    monkeypatch.setattr("seamark.manifest.lint.read_document", noted)
    memo = Memo()
    files = {**CLEAN, **{f"flags/f{number}.toml": flag() for number in range(50)}}
    before = lint(files, slug="billing", memo=memo).manifest
    assert len(read) == len(files)
    read.clear()
    after = lint({**files, "flags/f7.toml": flag(head="tags = ['new']")}, slug="billing", memo=memo).manifest
    assert read == ["flags/f7.toml"]
    assert before is not None
    assert after is not None
    flags = {**before.flags, "f7": replace(before.flags["f7"], tags=("new",))}
    assert after == replace(before, flags=flags)
    assert after.flags["f8"] is before.flags["f8"]


def test_several_threads_may_share_one() -> None:
    memo = Memo(bytes_max=20 * (ENTRY + 300))
    worlds = [{**CLEAN, f"flags/f{number}.toml": flag(head=f"tags = ['{number}']")} for number in range(40)]
    expected = [lint(files, slug="billing") for files in worlds]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda files: lint(files, slug="billing", memo=memo), worlds * 3)) == expected * 3
    assert 0 < len(memo) < len(worlds)
