from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from seamark import limits
from seamark.clock import ManualClock, SystemClock
from seamark.errors import Corrupt, Fault, StoreLocked, WriteFailed
from seamark.log.engines import directory
from seamark.log.engines.embedded import LmdbStore, open_embedded
from seamark.log.local import LocalLog
from seamark.log.protocol import Append, Put
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.log.store import Space, StoreFailed
from seamark.log.verify import verify
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics


def test_the_second_opener_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, SystemClock())
    with pytest.raises(StoreLocked) as caught:
        LmdbStore(tmp_path, SystemClock())
    assert caught.value.fields["owner"] == f"pid {os.getpid()}"
    store.close()
    LmdbStore(tmp_path, SystemClock()).close()


def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom seamark.clock import SystemClock\n"
        "from seamark.log.engines.embedded import LmdbStore\n"
        f"store = LmdbStore(Path({str(tmp_path)!r}), SystemClock())\n"
        "sys.stdout.write('open\\n'); sys.stdout.flush(); sys.stdin.read()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(StoreLocked):
            LmdbStore(tmp_path, SystemClock())
        child.kill()
        child.wait()
    LmdbStore(tmp_path, SystemClock()).close()


def test_a_file_that_vanished_is_not_a_new_store(tmp_path: Path) -> None:
    LmdbStore(tmp_path, SystemClock()).close()
    (tmp_path / directory.DATA_NAME).unlink()
    with pytest.raises(Corrupt):
        LmdbStore(tmp_path, SystemClock())
    (tmp_path / directory.DATA_NAME).write_bytes(b"")
    with pytest.raises(Corrupt):
        LmdbStore(tmp_path, SystemClock())


def test_something_else_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / directory.DATA_NAME).write_bytes(b"something else" * 1_000)
    with pytest.raises(Corrupt):
        LmdbStore(tmp_path, SystemClock())
    (tmp_path / directory.DATA_NAME).unlink()
    LmdbStore(tmp_path, SystemClock()).close()


def test_a_smaller_map_is_taken_when_the_system_gives_no_big_one(tmp_path: Path) -> None:
    code = (
        "import resource\nfrom pathlib import Path\nfrom seamark.clock import SystemClock\n"
        "from seamark.log.engines.embedded import LmdbStore\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**36, 2**36))\n"
        f"store = LmdbStore(Path({str(tmp_path)!r}), SystemClock())\n"
        "assert 2**30 <= store.facts()['map_bytes'] < 2**36\n"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


async def fill(log: LocalLog) -> int:
    """Append until it is refused."""
    kept = 0
    try:
        while True:
            await log.append(Append(stream="t", drafts=[Draft(b"x" * 10_000)] * 3, create=StreamSettings()))
            kept += 3
    except WriteFailed:
        return kept


async def test_a_full_map_refuses_writes_keeps_reading_and_recovers(tmp_path: Path, clock: ManualClock) -> None:
    log = open_embedded(tmp_path, clock, Metrics(), map_bytes=limits.MIB)
    kept = await fill(log)
    assert "MapFull" in str(log.health()["cause"])
    assert log.health()["writable"] is False
    assert len((await log.read("t", Cursor(), records_max=1_000)).records) == kept
    with pytest.raises(WriteFailed):
        await log.configure("u", StreamSettings())
    log.sweep()
    assert log.health()["writable"] is True
    await log.append(Append(stream="t", drafts=[Draft(b"small")]))
    await log.drop("t")
    log.sweep()
    await log.append(Append(stream="u", drafts=[Draft(b"x" * 10_000)] * 3, create=StreamSettings()))
    await log.close()
    assert not verify(tmp_path).findings


@pytest.mark.parametrize(
    ("free", "cause"), [(0, "the disk is full: 0 bytes free"), (limits.HEADROOM_BYTES, "MapFullError: mdb_put")]
)
def test_a_full_disk_is_called_one(tmp_path: Path, free: int, cause: str) -> None:
    """LMDB takes a write that the disk cut short for an error of the disk, so the disk is asked how much room there is."""
    store = LmdbStore(tmp_path, SystemClock(), map_bytes=limits.MIB, free_bytes=lambda path: free)
    with pytest.raises(StoreFailed, match=f"^{cause}"):
        store.write([(Space.SHELF, b"a", bytes(2 * limits.MIB))])
    store.close()


def test_a_fatal_environment_is_opened_again_and_the_disk_decides(tmp_path: Path) -> None:
    """Another process's write under our feet is the one way to see the disk ahead of us; here we do it ourselves."""
    store = LmdbStore(tmp_path, SystemClock())
    store.write([(Space.SHELF, b"a", b"1")])
    store._drop_env()
    with pytest.raises(Fault), store.view():
        pass
    store.write([(Space.SHELF, b"b", b"2")])
    assert not store.returned()
    store._drop_env()
    env = lmdb.open(str(tmp_path), max_dbs=8)
    with env.begin(write=True) as txn:
        txn.put(b"c", b"3", db=env.open_db(b"shelf", txn=txn))
    env.close()
    with pytest.raises(StoreFailed):
        store.write([(Space.SHELF, b"d", b"4")])
    assert store.returned()
    assert not store.returned()
    store.write([(Space.SHELF, b"d", b"4")])
    with store.view() as view:
        assert [key for key, _ in view.scan(Space.SHELF, b"")] == [b"a", b"b", b"c", b"d"]
    store.close()


async def test_a_backup_is_a_store_of_its_own(tmp_path: Path, clock: ManualClock) -> None:
    log = open_embedded(tmp_path / "a", clock, Metrics())
    await log.append(
        Append(stream="t", drafts=[Draft(b"x")] * 300, create=StreamSettings(), puts=[Put("s", b"k", b"v")])
    )
    await log.backup(str(tmp_path / "b"))
    await log.append(Append(stream="t", drafts=[Draft(b"later")]))
    with pytest.raises(Fault):
        await log.backup(str(tmp_path / "b"))
    await log.close()
    assert not verify(tmp_path / "b").findings
    copy = open_embedded(tmp_path / "b", clock, Metrics())
    assert (await copy.state("t")).count == 300
    assert copy.fetch("s", b"k") == b"v"
    await copy.close()


async def test_a_store_copied_without_its_side_files_opens(tmp_path: Path, clock: ManualClock) -> None:
    log = open_embedded(tmp_path / "a", clock, Metrics())
    await log.append(Append(stream="t", drafts=[Draft(b"x")], create=StreamSettings(durability=Durability.FSYNC)))
    await log.close()
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "a" / directory.DATA_NAME, tmp_path / "b")
    log = open_embedded(tmp_path / "b", clock, Metrics())
    assert (await log.state("t")).count == 1
    await log.close()
