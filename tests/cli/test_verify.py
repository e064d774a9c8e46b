"""Verify as a verb: what it says and how it ends. What it finds is tested in tests/log and tests/crash."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from seamark.cli.exits import Exit
from seamark.testing.server import ServerProcess
from tests.cli.process import run
from tests.cli.store import fill

pytestmark = pytest.mark.slow  # processes of their own


async def test_a_whole_store_ends_with_0(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 30)
    done = run("verify", "--data", "data", cwd=tmp_path)
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    assert json.loads(done.stdout) == {
        "event": "verified",
        "path": "data",
        "at_rest": True,
        "streams": 1,
        "records": 30,
        "findings": 0,
    }
    assert "1 streams with 30 records: everything is" in run("verify", "--text", "--data", "data", cwd=tmp_path).stdout


async def test_a_flipped_byte_ends_with_1_and_is_named(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 30)
    file = tmp_path / "data" / "data.mdb"
    content = bytearray(file.read_bytes())
    content[content.rindex(b"payload-29")] ^= 0x01
    file.write_bytes(bytes(content))
    done = run("verify", "--data", "data", cwd=tmp_path)
    assert done.returncode == Exit.FINDINGS
    *findings, last = map(json.loads, done.stdout.splitlines())
    assert findings
    assert all(finding["event"] == "finding" and finding["what"] for finding in findings)
    assert any(finding["stream"] == "s" for finding in findings)
    assert last["findings"] == len(findings)


async def test_a_lost_file_is_a_finding_and_an_empty_directory_is_not_a_store(tmp_path: Path) -> None:
    await fill(tmp_path / "data", 1)
    (tmp_path / "data" / "data.mdb").unlink()
    assert run("verify", "--data", "data", cwd=tmp_path).returncode == Exit.FINDINGS
    (tmp_path / "empty").mkdir()
    assert run("verify", "--data", "empty", cwd=tmp_path).returncode == Exit.USAGE


def test_a_store_in_use_can_be_verified(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--demo") as server:
        body = b'{"records":[{"data":1}]}'
        with urllib.request.urlopen(f"{server.base_url}/raw/kept", data=body, timeout=10) as answer:
            assert answer.status == 201
        done = run("verify", "--data", str(server.data), cwd=tmp_path)
        assert server.running
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    facts = json.loads(done.stdout)
    assert facts["at_rest"] is False
    assert facts["records"] >= 1
