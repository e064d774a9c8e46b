from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from seamark import limits
from seamark.errors import Busy, Corrupt, Fault, VersionConflict, WriteFailed
from seamark.flags import rows
from seamark.flags.versions import Versions
from seamark.log.protocol import Append, Put, Shelf
from seamark.manifest.closure import closure_hash, closure_of, index_of
from seamark.manifest.lint import Linting
from seamark.manifest.subscription import FlagList, parse_flag_list
from seamark.testing.engines import EmbeddedRig
from seamark.testing.rig import LogRig
from tests.flags.manifests import flag, manifest, passed, segment

DAY = 86_400


async def commit(versions: Versions, files: dict[str, bytes], *, slug: str = "ns", expect: int | None = None) -> int:
    committed = await versions.commit("acme", slug, files, passed(files, slug), by="tok_1", expect=expect)
    return committed.version.number


def shelf(rig: LogRig) -> Shelf:
    assert isinstance(rig.log, Shelf)
    return rig.log


async def test_versions_count_from_one_and_are_found_again(rig: LogRig) -> None:
    versions = Versions(rig.log, rig.clock)
    assert await versions.head("acme", "ns") == 0
    assert await versions.current("acme", "ns") is None
    first, second = manifest({"a": flag()}), manifest({"a": flag(note="2"), "b": flag()}, {"s": segment()})
    assert [await commit(versions, first), await commit(versions, second)] == [1, 2]
    fresh = Versions(rig.log, rig.clock)  # knows nothing but what is stored
    for finder in (versions, fresh):
        for number, files in ((1, first), (2, second)):
            version = await finder.at("acme", "ns", number)
            assert version is not None
            assert version.is_read
            assert (version.number, version.index, finder.files(version)) == (number, index_of(files), files)
            assert sorted(version.manifest.flags) == sorted(passed(files).manifest.flags)  # type: ignore[union-attr]
        assert (await finder.current("acme", "ns")) is await finder.at("acme", "ns", 2)
        assert await finder.at("acme", "ns", 3) is None
        assert await finder.at("acme", "other", 1) is None


async def test_whoever_asks_for_a_version_that_has_to_be_read_shares_the_reading(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart all clients come back at once."""
    await commit(Versions(rig.log, rig.clock), manifest({"a": flag()}))
    fresh, read = Versions(rig.log, rig.clock), 0

    def counted(*args: object, **more: object) -> object:
        nonlocal read
        read += 1
        return Linting(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("seamark.flags.versions.Linting", counted)
    leaving = asyncio.create_task(fresh.at("acme", "ns", 1))
    await asyncio.sleep(0)
    staying = [asyncio.create_task(fresh.at("acme", "ns", 1)) for _ in range(20)]
    await asyncio.sleep(0)
    leaving.cancel()
    found = await asyncio.gather(*staying)
    assert read == 1
    assert {id(version) for version in found} == {id(found[0])}
    assert found[0] is not None
    assert found[0].is_read


async def test_namespaces_do_not_know_of_one_another(rig: LogRig) -> None:
    versions = Versions(rig.log, rig.clock)
    await commit(versions, manifest({"a": flag()}))
    assert await commit(versions, manifest({"b": flag()}), slug="ns-2") == 1
    version = await versions.at("acme", "ns-2", 1)
    assert version is not None
    assert list(version.index) == ["flags/b.toml"]


async def test_a_version_that_was_not_expected_changes_nothing(rig: LogRig) -> None:
    versions = Versions(rig.log, rig.clock)
    files = manifest({"a": flag()})
    with pytest.raises(VersionConflict) as caught:
        await commit(versions, files, expect=1)
    assert caught.value.fields["current_version"] == 0
    assert await commit(versions, files, expect=0) == 1
    with pytest.raises(VersionConflict):
        await commit(versions, files, expect=0)
    assert await commit(versions, files) == 2
    assert await versions.head("acme", "ns") == 2


async def test_of_two_at_once_that_expect_the_same_one_wins(rig: LogRig) -> None:
    """Also when they come through different processes, which share nothing but the log."""
    one, other = Versions(rig.log, rig.clock), Versions(rig.log, rig.clock)
    both = [commit(one, manifest({"a": flag()}), expect=0), commit(other, manifest({"b": flag()}), expect=0)]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["VersionConflict", "int"]
    assert sorted(await asyncio.gather(commit(one, manifest()), commit(other, manifest()))) == [2, 3]


async def test_history_is_told_from_the_newest(rig: LogRig) -> None:
    versions = Versions(rig.log, rig.clock)
    assert await versions.history("acme", "ns", limit=5) == []
    for number in range(1, 8):
        rig.clock.advance(1)
        await commit(versions, manifest({f"f{n}": flag() for n in range(number)}))
    entries = await versions.history("acme", "ns", limit=3)
    assert [(entry.number, entry.facts.flag_count, entry.files_available) for entry in entries] == [
        (7, 7, True), (6, 6, True), (5, 5, True)]  # fmt: skip
    assert entries[0].ts > entries[1].ts
    assert entries[0].facts.uploaded_by == "tok_1"
    files = manifest({f"f{n}": flag() for n in range(7)})
    assert entries[0].facts.closure_hash == closure_hash(index_of(files))
    assert [entry.number for entry in await versions.history("acme", "ns", before=3, limit=9)] == [2, 1]
    assert await versions.history("acme", "ns", before=1, limit=9) == []
    assert [entry.number for entry in await versions.history("acme", "ns", before=99, limit=1)] == [7]


async def test_closures_are_made_once_and_hold_what_is_reached(rig: LogRig) -> None:
    versions = Versions(rig.log, rig.clock)
    files = manifest(
        {"a": flag(segment="s"), "b": flag()}, {"s": segment(uses="t"), "t": segment(), "orphan": segment(note="o")}
    )
    await commit(versions, files)
    version = await versions.current("acme", "ns")
    assert version is not None
    narrow = version.closure(parse_flag_list("a,missing"))
    assert sorted(narrow.index) == ["flags/a.toml", "segments/s.toml", "segments/t.toml"]
    assert narrow.hash == closure_hash(narrow.index)
    assert version.closure(parse_flag_list("missing,a")) is narrow
    assert version.closure(FlagList.of(None)).index == index_of(files)
    assert version.evaluator is version.evaluator


async def test_closures_are_kept_within_a_bound(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all versions together: lists without end come to the same files, and each of them would be another closure."""
    monkeypatch.setattr("seamark.flags.version.FLAG_CLOSURES_WEIGHT_KEPT", 2 * 700)
    versions = Versions(rig.log, rig.clock)
    await commit(versions, manifest({"a": flag(), "b": flag()}))
    version = await versions.current("acme", "ns")
    assert version is not None
    kept = version.closure(parse_flag_list("a"))
    version.closure(parse_flag_list("b"))
    assert version.closure(parse_flag_list("a")) is kept
    version.closure(parse_flag_list("a,none"))  # `b` was asked for longest ago
    assert version.closure(parse_flag_list("a")) is kept
    await commit(versions, manifest({"a": flag(note="2")}))
    newer = await versions.current("acme", "ns")
    assert newer is not None
    for key in "bcd":
        newer.closure(parse_flag_list(key))
    assert version.closure(parse_flag_list("a")) is not kept
    assert version.closure(parse_flag_list("a")) == kept


async def test_versions_are_kept_read_within_a_bound(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.kept.FLAG_VERSIONS_WEIGHT_KEPT", 5_000)
    versions = Versions(rig.log, rig.clock)
    for number in range(4):
        await commit(versions, manifest({"a": flag(note=str(number))}))
    stream = rows.stream_of("acme", "ns")
    kept = versions.at_now(stream, 4)
    assert kept is versions.at_now(stream, 4)
    first = versions.at_now(stream, 1)
    assert first is not None
    assert not first.is_read  # it was let go, and is here again
    again = await versions.at("acme", "ns", 1)
    assert again is not None
    assert sorted(again.manifest.flags) == ["a"]


async def test_what_is_needed_of_a_version_that_is_not_read_is_read_alone(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For readers that lag behind: nobody can wait there."""
    flags = {"a": flag(segment="s"), "b": flag(segment="other"), **{f"f{n}": flag() for n in range(50)}}
    files = manifest(flags, {"s": segment(uses="t"), "t": segment(), "other": segment(note="o")})
    await commit(Versions(rig.log, rig.clock), files)
    stream, wanted = rows.stream_of("acme", "ns"), parse_flag_list("a,missing")
    versions = Versions(rig.log, rig.clock)
    version = versions.at_now(stream, 1)
    assert version is not None
    part = version.closure(wanted)
    assert not version.is_read
    read = await versions.at("acme", "ns", 1)
    assert read is version
    assert closure_of(read.manifest, read.index, wanted) == part.index
    assert version.closure(parse_flag_list("*")).index == index_of(files)
    monkeypatch.setattr("seamark.flags.versions.LINT_SLICE_WEIGHT", 1)
    busy = Versions(rig.log, rig.clock).at_now(stream, 1)
    assert busy is not None
    with pytest.raises(Busy):
        busy.closure(wanted)


async def test_a_manifest_that_takes_long_to_read_holds_nobody_up(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read a part at a time, and whoever else has something to read has turns in between."""
    monkeypatch.setattr("seamark.flags.versions.LINT_SLICE_WEIGHT", 1)
    versions = Versions(rig.log, rig.clock)
    long = asyncio.create_task(versions.lint(manifest({f"f{n}": flag() for n in range(300)}), slug="ns"))
    await asyncio.sleep(0)
    for _ in range(3):
        assert (await versions.lint(manifest({"a": flag(note="x")}), slug="ns")).passed
    assert not long.done()
    assert (await long).passed


async def test_the_newest_and_the_young_keep_their_files(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 3)
    versions = Versions(rig.log, rig.clock)
    for number in range(1, 7):
        await commit(versions, manifest({"a": flag(note=str(number))}))
    assert [entry.files_available for entry in await versions.history("acme", "ns", limit=9)] == [True] * 6
    rig.clock.advance(limits.FLAG_VERSION_DAYS * DAY + 1)
    await commit(versions, manifest({"a": flag(note="7")}))
    available = {entry.number: entry.files_available for entry in await versions.history("acme", "ns", limit=9)}
    assert available == {1: False, 2: False, 3: False, 4: False, 5: True, 6: True, 7: True}
    for fresh in (versions, Versions(rig.log, rig.clock)):
        assert await fresh.at("acme", "ns", 4) is None
        assert await fresh.at("acme", "ns", 5) is not None
    assert len(list(shelf(rig).scan(rows.TREES))) == 3
    assert len(list(shelf(rig).scan(rows.BLOBS))) == 3


async def test_a_long_history_is_let_go_step_by_step(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 1)
    monkeypatch.setattr("seamark.flags.versions.FLAG_PRUNED_PER_COMMIT", 2)
    versions = Versions(rig.log, rig.clock)
    for number in range(5):
        await commit(versions, manifest({"a": flag(note=str(number))}))
    rig.clock.advance(40 * DAY)
    floors = []
    for _ in range(4):
        await commit(versions, manifest({"a": flag(note="last")}))
        floors.append(rows.floor(shelf(rig), rows.stream_of("acme", "ns")))
        rig.clock.advance(40 * DAY)
    assert floors == [3, 5, 7, 9]


async def test_what_comes_back_outlives_the_versions_that_had_it_before(
    rig: LogRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 2)
    versions = Versions(rig.log, rig.clock)
    old, new = manifest({"a": flag(note="old")}), manifest({"a": flag(note="new")})
    for files in (old, new, old):
        await commit(versions, files)
    rig.clock.advance(40 * DAY)
    await commit(versions, new)  # lets 1 and 2 go, whose contents 3 and 4 have as well
    for number, files in ((3, old), (4, new)):
        version = await Versions(rig.log, rig.clock).at("acme", "ns", number)
        assert version is not None
        assert versions.files(version) == files


async def test_a_refusing_store_leaves_the_version_as_it_was(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = Versions(rig.log, rig.clock)
    await commit(versions, manifest({"a": flag()}))

    async def refuse(append: Append) -> None:
        raise WriteFailed("full")

    with monkeypatch.context() as patch:
        patch.setattr(rig.log, "append", refuse)
        with pytest.raises(WriteFailed):
            await commit(versions, manifest({"b": flag()}))
    assert await versions.head("acme", "ns") == 1
    assert await versions.at("acme", "ns", 2) is None
    assert await commit(versions, manifest({"c": flag()})) == 2
    version = await versions.current("acme", "ns")
    assert version is not None
    assert list(version.index) == ["flags/c.toml"]


async def test_pruning_that_fails_is_none_of_the_commits(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 1)
    versions = Versions(rig.log, rig.clock)
    await commit(versions, manifest({"a": flag()}))
    rig.clock.advance(40 * DAY)
    append = rig.log.append

    async def refuse(wanted: Append) -> object:
        if not wanted.drafts:
            raise WriteFailed("full")
        return await append(wanted)

    with monkeypatch.context() as patch:
        patch.setattr(rig.log, "append", refuse)
        assert await commit(versions, manifest({"b": flag()})) == 2
    assert await versions.at("acme", "ns", 1) is not None


async def test_a_file_that_is_missing_is_never_silence(rig: LogRig) -> None:
    await commit(Versions(rig.log, rig.clock), manifest({"a": flag()}))
    ((key, _),) = shelf(rig).scan(rows.BLOBS)
    await rig.log.append(Append(puts=[Put(rows.BLOBS, key, None)]))
    with pytest.raises(Corrupt):
        await Versions(rig.log, rig.clock).at("acme", "ns", 1)


async def test_files_that_cannot_be_read_any_more_say_so(rig: LogRig) -> None:
    """Because another release was less strict, say."""
    await commit(Versions(rig.log, rig.clock), manifest({"a": flag()}))
    ((key, row),) = shelf(rig).scan(rows.BLOBS)
    await rig.log.append(Append(puts=[Put(rows.BLOBS, key, row[:8] + b"no toml =")]))
    with pytest.raises(Fault, match="version 1 of flags:acme/ns"):
        await Versions(rig.log, rig.clock).at("acme", "ns", 1)


@pytest.mark.parametrize("seed", range(12))
async def test_random_lives(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits, contents that come and go and come back, time, processes that share the store, crashes: a version that should
    be there is there whole, and nothing is kept that none of them needs."""
    monkeypatch.setattr("seamark.flags.versions.FLAG_VERSIONS_MIN", 4)
    monkeypatch.setattr("seamark.flags.versions.FLAG_PRUNED_PER_COMMIT", 3)
    dice = random.Random(seed)
    rig = EmbeddedRig(tmp_path)
    await rig.open()
    processes = [Versions(rig.log, rig.clock) for _ in range(2)]
    known: list[dict[str, bytes]] = []
    floor = 1
    for _ in range(60):
        step = dice.random()
        if step < 0.1:
            await rig.crash()
            processes = [Versions(rig.log, rig.clock) for _ in range(2)]
        elif step < 0.3:
            rig.clock.advance(dice.choice([3, 40]) * DAY)
        else:
            files = manifest({key: flag(note=dice.choice("123")) for key in dice.sample("abcd", dice.randint(0, 4))})
            assert await commit(dice.choice(processes), files) == len(known) + 1
            known.append(files)
        floor = await _check(dice.choice(processes), shelf(rig), known, floor)
    await rig.close()


async def _check(versions: Versions, kept: Shelf, known: list[dict[str, bytes]], floor: int) -> int:
    """What is stored is what should be. Returns the first version that has its files."""
    now = rows.floor(kept, rows.stream_of("acme", "ns"))
    assert floor <= now <= max(1, len(known) - 3)
    needed: set[bytes] = set()
    for number, files in enumerate(known, start=1):
        version = await versions.at("acme", "ns", number)
        assert (version is not None) is (number >= now)
        if version is not None:
            assert versions.files(version) == files
            needed |= set(version.index.values())
    blobs = {key[-32:] for key, _ in kept.scan(rows.BLOBS)}
    assert blobs == needed
    assert len(list(kept.scan(rows.TREES))) == max(0, len(known) - now + 1)
    return now
