"""Backup: whole or not at all, also beside a running server."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from pathlib import Path

import pytest

from seamark.cli import backup as verb
from seamark.cli.exits import Exit
from seamark.cli.output import Step
from seamark.errors import BadInput, Corrupt, WriteFailed
from seamark.testing.server import ServerProcess
from tests.cli.process import run
from tests.cli.store import fill, payloads

pytestmark = pytest.mark.slow  # processes of their own


async def test_a_copy_holds_everything_and_can_be_served(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 20)
    done = run("backup", "--data", "data", "copies/one", cwd=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    facts = json.loads(done.stdout)
    assert facts["target"] == "copies/one"
    assert facts["bytes"] == (tmp_path / "copies" / "one" / "data.mdb").stat().st_size
    assert await payloads(tmp_path / "copies" / "one") == [b"payload-%d" % number for number in range(20)]
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["one"]


def test_a_copy_can_be_taken_while_a_server_writes(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--demo") as server:
        body = b'{"records":[{"data":1},{"data":2}]}'
        with urllib.request.urlopen(f"{server.base_url}/raw/kept", data=body, timeout=10) as answer:
            assert json.loads(answer.read())["last"] == 2
        done = run("backup", "--data", str(server.data), "copy", cwd=tmp_path)
        assert done.returncode == Exit.OK, done.stderr
        assert server.running
    (tmp_path / "restored").mkdir()
    (tmp_path / "copy").rename(tmp_path / "restored" / "data")
    with ServerProcess(tmp_path / "restored") as server:
        with urllib.request.urlopen(f"{server.base_url}/raw/kept", timeout=10) as answer:
            assert json.loads(answer.read())["count"] == 2
        assert server.stop() == 0


async def test_an_existing_target_is_left_alone(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 1)
    (tmp_path / "copy").mkdir()
    with pytest.raises(BadInput, match="exists"):
        verb.copy_store(tmp_path / "data", tmp_path / "copy", Step())
    assert list((tmp_path / "copy").iterdir()) == []


def test_something_else_is_not_a_store(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "data.mdb").close()
    with pytest.raises(Corrupt):
        verb.copy_store(tmp_path, tmp_path / "copy", Step())
    (tmp_path / "data.mdb").write_bytes(b"x" * 100_000)
    with pytest.raises(Corrupt):
        verb.copy_store(tmp_path, tmp_path / "copy", Step())
    assert not (tmp_path / "copy").exists()


async def test_a_file_that_ends_early_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 50)
    file = tmp_path / "data" / "data.mdb"
    with file.open("rb+") as data:
        data.truncate(file.stat().st_size - 4096)
    with pytest.raises(Corrupt, match="ends early"):
        verb.copy_store(tmp_path / "data", tmp_path / "copy", Step())
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


async def test_a_damaged_original_gives_no_copy(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 50)
    file = tmp_path / "data" / "data.mdb"
    content = bytearray(file.read_bytes())
    place = content.rindex(b"payload-49")
    content[place] ^= 0xFF
    file.write_bytes(bytes(content))
    with pytest.raises((Corrupt, WriteFailed)):
        verb.copy_store(tmp_path / "data", tmp_path / "copy", Step())
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.partial").exists()


async def test_progress_is_told_and_ends_at_the_size(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 5)
    told: list[tuple[int, int]] = []

    class Told(Step):
        def __call__(self, done: int, total: int) -> None:
            told.append((done, total))

    size = verb.copy_store(tmp_path / "data", tmp_path / "copy", Told())
    assert told
    assert all(0 <= done <= size and total > 0 for done, total in told)
