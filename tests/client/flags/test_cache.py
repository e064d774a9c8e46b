from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from seamark.client.flags.cache import DiskCache
from seamark.client.flags.mirror import Held
from seamark.client.flags.status import State
from seamark.client.flags.track import Track
from seamark.clock import ManualClock
from seamark.manifest.closure import closure_hash, index_of
from seamark.manifest.subscription import EVERY_FLAG, FlagList
from seamark.testing.faults import cut_file, flip_random_byte
from tests.flags.manifests import flag, manifest

ONE, TWO = (manifest({"a": flag(note=note)}) for note in "12")
BROKEN = manifest({"a": b"no toml ="})


def fresh(wanted: FlagList = EVERY_FLAG, slug: str = "ns") -> Track:
    return Track(slug, wanted, ManualClock())


def holding(files: dict[str, bytes], version: int = 7) -> Track:
    track = fresh()
    track.mirror.replace(files, version, closure_hash(index_of(files)))
    return track


def loaded(cache: DiskCache, track: Track | None = None) -> Track:
    track = track or fresh()
    cache.load(track)
    return track


def written(folder: Path, files: dict[str, bytes] = ONE) -> tuple[DiskCache, Path]:
    cache = DiskCache(folder, "http://h")
    cache.save(holding(files))
    (path,) = folder.iterdir()
    return cache, path


def test_what_was_verified_is_there_at_the_next_start_and_is_stale(tmp_path: Path) -> None:
    cache, path = written(tmp_path / "deep" / "er")
    track = loaded(cache)
    assert track.held is not None
    assert (track.held.version, track.held.hash, track.mirror.files) == (7, closure_hash(index_of(ONE)), ONE)
    assert (track.ready, track.error, track.state) == (False, None, State.IDLE)
    assert track.stale_since is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_there_is_no_error(tmp_path: Path) -> None:
    track = loaded(DiskCache(tmp_path / "none", "http://h"))
    assert (track.held, track.error, track.stale_since) == (None, None, None)


def test_each_server_namespace_and_list_has_its_own(tmp_path: Path) -> None:
    written(tmp_path)
    assert loaded(DiskCache(tmp_path, "http://other")).held is None
    mine = DiskCache(tmp_path, "http://h")
    assert loaded(mine, fresh(FlagList.of(["a"]))).held is None
    assert loaded(mine, fresh(slug="other")).held is None
    assert loaded(mine).held is not None


@pytest.mark.parametrize("seed", range(60))
def test_a_changed_byte_is_never_evaluated(tmp_path: Path, seed: int) -> None:
    """Nearly all of them are noticed; those that are not, as in a version, change nothing of the files."""
    cache, path = written(tmp_path)
    flip_random_byte(path, random.Random(seed))
    track = loaded(cache)
    held: Held | None = track.held
    assert held is None or (held.hash == closure_hash(index_of(ONE)) and track.mirror.files == ONE)
    if held is None:
        assert track.error is not None
        assert track.error.kind == "cache"
        assert track.mirror.hash is None


@pytest.mark.parametrize("size", [0, 1, 100, 250])
def test_half_a_file_is_said_and_not_used(tmp_path: Path, size: int) -> None:
    cache, path = written(tmp_path)
    cut_file(path, size)
    track = loaded(cache)
    assert track.held is None
    assert track.error is not None
    assert "cache" in str(track.error)


def test_the_file_of_another_is_not_taken(tmp_path: Path) -> None:
    cache, path = written(tmp_path)
    other = fresh(slug="other")
    path.rename(cache._path(other))
    track = loaded(cache, other)
    assert track.held is None
    assert "something else" in str(track.error)


def test_what_does_not_pass_is_not_kept_nor_taken(tmp_path: Path) -> None:
    _, path = written(tmp_path)
    track = holding(ONE)
    with pytest.raises(Exception, match="E001"):
        track.mirror.replace(BROKEN, 8, closure_hash(index_of(BROKEN)))
    before = path.read_bytes()
    DiskCache(tmp_path, "http://h").save(track)
    assert path.read_bytes() == before


def test_the_newest_is_kept_and_written_once(tmp_path: Path) -> None:
    cache, path = written(tmp_path)
    cache.save(holding(TWO, 8))
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    track = loaded(cache)
    assert track.mirror.files == TWO
    inode = path.stat().st_ino
    cache.save(holding(TWO, 9))
    assert path.stat().st_ino == inode


def test_a_disk_that_does_not_take_it_is_said_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("in the way")
    track = holding(ONE)
    DiskCache(place, "http://h").save(track)
    assert track.held is not None
    assert track.error is not None
    assert track.error.kind == "cache"
    assert track.stale_since is None
    assert os.listdir(tmp_path) == ["file"]
    unreadable = fresh()
    (tmp_path / "folder").mkdir()
    cache = DiskCache(tmp_path / "folder", "http://h")
    cache._path(unreadable).mkdir()
    assert "cannot be read" in str(loaded(cache, unreadable).error)
