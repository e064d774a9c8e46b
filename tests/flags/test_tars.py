from __future__ import annotations

import asyncio
import time

import pytest

from seamark.flags.tars import Tars
from seamark.flags.version import Version
from seamark.flags.versions import Versions
from seamark.manifest.archive import pack, tar_size
from seamark.manifest.subscription import EVERY_FLAG, parse_flag_list
from seamark.telemetry.metrics import Metrics
from seamark.testing.rig import LogRig
from tests.flags.manifests import flag, manifest, passed

FILES = manifest({f"f{number}": flag(note=str(number)) for number in range(300)})


class Shelf:
    """Archives of one version, and how often one was made."""

    def __init__(self, rig: LogRig) -> None:
        self.versions = Versions(rig.log, rig.clock)
        self.metrics = Metrics()
        self.tars = Tars(self.versions, self.metrics)

    async def commit(self, files: dict[str, bytes]) -> Version:
        return (await self.versions.commit("acme", "ns", files, passed(files), by="tests")).version

    @property
    def made(self) -> float:
        return self.metrics.counter("seamark_flags_archives_total").value


@pytest.fixture
async def shelf(rig: LogRig) -> Shelf:
    return Shelf(rig)


async def test_an_archive_is_made_once(shelf: Shelf) -> None:
    version = await shelf.commit(FILES)
    closure = version.closure(EVERY_FLAG)
    archives = await asyncio.gather(*(shelf.tars.archive(version, closure) for _ in range(20)))
    assert set(archives) == {pack(FILES)}
    assert await shelf.tars.archive(version, closure) == pack(FILES)
    assert shelf.made == 1


async def test_equal_closures_have_one_archive_whatever_their_version(shelf: Shelf) -> None:
    wanted = parse_flag_list("f1,f2")
    for note in ("a", "b"):
        version = await shelf.commit({**FILES, **manifest({"other": flag(note=note)})})
        await shelf.tars.archive(version, version.closure(wanted))
    assert shelf.made == 1


async def test_the_size_is_that_of_the_archive(shelf: Shelf) -> None:
    version = await shelf.commit(FILES)
    for wanted in (EVERY_FLAG, parse_flag_list("f1"), parse_flag_list("unknown")):
        closure = version.closure(wanted)
        size = tar_size({path: FILES[path] for path in closure.index})
        assert await shelf.tars.size(version, closure) == shelf.tars.size_now(version, closure) == size
    assert shelf.made == 0


async def test_the_size_is_worked_out_once_for_all_who_wait(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    version = await shelf.commit(FILES)
    read: list[str] = []
    content = shelf.versions.content

    def counted(version: Version, path: str) -> bytes:
        read.append(path)
        return content(version, path)

    monkeypatch.setattr(shelf.versions, "content", counted)
    closure = version.closure(EVERY_FLAG)
    assert len(set(await asyncio.gather(*(shelf.tars.size(version, closure) for _ in range(20))))) == 1
    assert len(read) == len(FILES)


async def test_what_is_kept_is_bounded(rig: LogRig, monkeypatch: pytest.MonkeyPatch) -> None:
    version = await Shelf(rig).commit(FILES)
    first, second = (version.closure(parse_flag_list(key)) for key in ("f1", "f2"))
    monkeypatch.setattr("seamark.flags.tars.FLAG_TAR_BYTES_KEPT", len(pack({"flags/f1.toml": FILES["flags/f1.toml"]})))
    shelf = Shelf(rig)
    for closure, made in ((first, 1), (first, 1), (second, 2), (second, 2), (first, 3)):
        await shelf.tars.archive(version, closure)
        assert shelf.made == made


async def test_whoever_leaves_takes_nothing_from_the_others(shelf: Shelf) -> None:
    version = await shelf.commit(FILES)
    closure = version.closure(EVERY_FLAG)
    leaving = asyncio.create_task(shelf.tars.archive(version, closure))
    staying = asyncio.create_task(shelf.tars.archive(version, closure))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == pack(FILES)
    assert shelf.made == 1


async def test_an_archive_that_could_not_be_made_is_tried_again(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    version = await shelf.commit(FILES)
    closure = version.closure(EVERY_FLAG)

    def broken(*asked: object) -> bytes:
        raise OSError("disk")

    with monkeypatch.context() as patch:
        patch.setattr(shelf.versions, "content", broken)
        with pytest.raises(OSError, match="disk"):
            await shelf.tars.archive(version, closure)
    assert await shelf.tars.archive(version, closure) == pack(FILES)


async def test_archives_of_one_tenant_are_made_one_after_the_other(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads make them, of which there are not many, and other tenants need some as well."""
    running: list[int] = []
    together: list[int] = []

    def noted(files: dict[str, bytes]) -> bytes:
        running.append(1)
        together.append(len(running))
        time.sleep(0.01)  # so that others could begin
        running.pop()
        return pack(files)

    monkeypatch.setattr("seamark.flags.tars.pack", noted)
    version = await shelf.commit(FILES)
    closures = [version.closure(parse_flag_list(f"f{number}")) for number in range(8)]
    archives = await asyncio.gather(*(shelf.tars.archive(version, closure) for closure in closures))
    assert len(set(archives)) == len(closures)
    assert together == [1] * len(closures)
