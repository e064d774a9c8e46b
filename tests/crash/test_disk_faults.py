"""A disk that fails for a while, under a real server with the real LMDB: its syncs, its writes, its header. Nothing is
acknowledged that is not durable, reads go on, and when the disk works again so does the server, without a restart."""

from __future__ import annotations

import asyncio
import errno
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from seamark.clock import SystemClock
from seamark.log.engines.embedded import open_embedded
from seamark.log.verify import verify
from seamark.telemetry.metrics import Metrics
from seamark.testing.reading import Reading, read_all
from seamark.testing.server import ServerFailed, ServerProcess

pytestmark = pytest.mark.crash

SHIM = Path(__file__).with_name("disk_faults.c")
FAULT_SECONDS = 2.5  # long enough for the server to try again by itself, more than once
PATIENCE_SECONDS = 20.0
STREAMS = {"settled": "fsync", "swift": "disk"}


class Disk:
    """The switch of the shim."""

    def __init__(self, library: Path, control: Path) -> None:
        self.environment = {"LD_PRELOAD": str(library), "DISK_FAULTS": str(control)}
        self._control = control

    def fail(self, mode: str, error: int) -> None:
        self._control.write_text(f"{mode} {error}", "ascii")

    def recover(self) -> None:
        self._control.write_text("", "ascii")


class Witness:
    """A writer that remembers what it was promised."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._number = 0
        self.acknowledged: dict[str, list[str]] = {name: [] for name in STREAMS}
        self.refused: dict[str, list[str]] = {name: [] for name in STREAMS}

    def append(self, name: str) -> bool:
        self._number += 1
        text = f"{name}-{self._number}"
        answer = self._client.post(f"/raw/{name}", json={"records": [{"data": text}]})
        if answer.status_code == 503:
            assert answer.json()["error"]["code"] == "write_failed"
            assert int(answer.headers["retry-after"]) >= 1
            self.refused[name].append(text)
            return False
        assert answer.status_code == 200, answer.text
        self.acknowledged[name].append(text)
        return True

    def read(self, name: str) -> list[str]:
        answer = self._client.get(f"/raw/{name}/records", params={"limit": 10_000})
        assert answer.status_code == 200, answer.text
        assert answer.json()["gap"] is None
        return [record["data"] for record in answer.json()["records"]]

    def is_ready(self) -> bool:
        return self._client.get("/ready").status_code == 200


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to build the failing disk with")
    built = tmp_path_factory.mktemp("shim") / "disk_faults.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(built), str(SHIM), "-ldl"]
    subprocess.run(command, check=True)
    return built


@pytest.fixture
def disk(library: Path, tmp_path: Path) -> Disk:
    return Disk(library, tmp_path / "faults")


@pytest.fixture
def server(disk: Disk, tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, environment=disk.environment) as running:
        yield running


@pytest.fixture
def witness(server: ServerProcess) -> Iterator[Witness]:
    with httpx.Client(base_url=server.base_url, timeout=10.0, trust_env=False) as client:
        for name, durability in STREAMS.items():
            assert client.put(f"/raw/{name}", json={"durability": durability}).status_code == 201
        witness = Witness(client)
        for name in STREAMS:
            for _ in range(5):
                assert witness.append(name)
        assert witness.is_ready()  # answered after the commit that the last append of class disk did not wait for
        yield witness


def suffer(witness: Witness, mode: str) -> None:
    """Write and read while the disk fails. The settled stream is never acknowledged; what can be read is what was."""
    until = time.monotonic() + FAULT_SECONDS
    while time.monotonic() < until:
        for name in STREAMS:
            assert not witness.append(name), f"{name} was acknowledged while the disk fails"
            seen = witness.read(name)
            assert seen == witness.acknowledged[name], f"{mode}: {name} shows what was never acknowledged"
        assert not witness.is_ready()
        time.sleep(0.1)


def outlast(witness: Witness) -> None:
    """Wait until writes are taken again, by the same process, and write on."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not witness.append("settled"):
        assert time.monotonic() < until, "writes never recovered"
        time.sleep(0.05)
    for name in STREAMS:
        for _ in range(3):
            assert witness.append(name)
    assert witness.is_ready()


async def read_store(path: Path) -> dict[str, Reading]:
    log = open_embedded(path, SystemClock(), Metrics())
    readings = {name: await read_all(log, f"raw:{name}") for name in STREAMS}
    await log.close()
    return readings


FAULTS = [
    ("sync", errno.EIO),
    ("sync", errno.ENOSPC),
    ("write", errno.EIO),
    ("write", errno.ENOSPC),
    ("meta", errno.EIO),
    ("late", errno.EIO),
    ("stuck", errno.EIO),
]


@pytest.mark.parametrize("first", STREAMS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[0]}-{errno.errorcode[fault[1]]}")
def test_a_failing_disk(
    server: ServerProcess, disk: Disk, witness: Witness, fault: tuple[str, int], first: str
) -> None:
    mode, error = fault
    disk.fail(mode, error)
    # Class disk does not wait for the commit that fails, so it is acknowledged once more; class fsync never is.
    assert witness.append(first) == (STREAMS[first] == "disk")
    suffer(witness, mode)
    disk.recover()
    outlast(witness)
    told = {name: witness.read(name) for name in STREAMS}
    server.kill()
    assert not verify(server.data).findings
    # The one write whose header reached the file unsynced: refused, because nobody could know, and there after all.
    found = {witness.refused[first][0]} if mode == "stuck" and STREAMS[first] == "fsync" else set()
    readings = asyncio.run(read_store(server.data))
    for name in STREAMS:
        kept = [record.payload.decode().strip('"') for record in readings[name].records]
        assert kept == told[name]
        assert [text for text in kept if text not in found] == witness.acknowledged[name]
        assert set(kept) >= found or name != first
        assert readings[name].seqs == list(range(1, len(kept) + 1))
    assert not verify(server.data).findings


def test_a_store_that_cannot_be_synced_is_not_opened(server: ServerProcess, disk: Disk, witness: Witness) -> None:
    """What a killed server left to the system would be shown as durable, and might not be."""
    server.kill()
    disk.fail("sync", errno.EIO)
    with pytest.raises(ServerFailed, match="cannot be synced"):
        server.start()
    disk.recover()
    server.start()
    with httpx.Client(base_url=server.base_url, timeout=10.0, trust_env=False) as client:
        answer = client.get("/raw/settled/records")
    assert [record["data"] for record in answer.json()["records"]] == witness.acknowledged["settled"]


def test_a_kill_while_the_disk_fails_costs_nothing_that_was_acknowledged(
    server: ServerProcess, disk: Disk, witness: Witness
) -> None:
    disk.fail("stuck", errno.EIO)
    assert not witness.append("settled")
    assert not witness.append("swift")
    time.sleep(FAULT_SECONDS)
    server.kill()
    disk.recover()
    readings = asyncio.run(read_store(server.data))
    for name in STREAMS:
        kept = [record.payload.decode().strip('"') for record in readings[name].records]
        assert [text for text in kept if text not in witness.refused[name]] == witness.acknowledged[name]
    assert not verify(server.data).findings
