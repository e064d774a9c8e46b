"""The first superadmin token, made on the data directory of a server that does not run."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec
import pytest

from seamark.cli.exits import Exit
from seamark.testing.server import ServerProcess
from tests.cli.process import run

pytestmark = pytest.mark.slow  # processes of their own


def test_the_token_opens_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = run("flags", "bootstrap", "--data", str(data), cwd=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    made = msgspec.json.decode(done.stdout)
    assert (made["event"], made["type"]) == ("minted", "superadmin")
    assert made["secret"] not in done.stderr
    with ServerProcess(tmp_path) as server:
        answer = httpx.get(f"{server.base_url}/api/v1/tokens", headers={"Authorization": f"Bearer {made['secret']}"})
        assert [token["id"] for token in answer.json()["tokens"]] == [made["id"]]
    assert made["secret"].encode() not in (data / "data.mdb").read_bytes()


def test_a_second_one_has_to_be_asked_for(tmp_path: Path) -> None:
    first = run("flags", "bootstrap", "--data", "d", "--text", cwd=tmp_path)
    assert "shown this once" in first.stdout
    again = run("flags", "bootstrap", "--data", "d", cwd=tmp_path)
    assert again.returncode == Exit.FINDINGS
    assert again.stdout == ""
    assert "--another" in again.stderr
    another = run("flags", "bootstrap", "--data", "d", "--another", cwd=tmp_path)
    assert another.returncode == Exit.OK
    assert msgspec.json.decode(another.stdout)["secret"] not in first.stdout


def test_beside_a_running_server_it_says_what_to_do(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        done = run("flags", "bootstrap", "--data", str(server.data), cwd=tmp_path)
        assert server.running
    assert done.returncode == Exit.FAULT
    assert "a server is running here" in done.stderr
    assert "--superadmin-token-file" in done.stderr


def test_where_nothing_is_kept_there_is_no_first_token(tmp_path: Path) -> None:
    done = run("flags", "bootstrap", "--data", "d", cwd=tmp_path, SEAMARK_ENGINE="memory")
    assert done.returncode == Exit.USAGE
    assert "--superadmin-token-file" in done.stderr
    assert not (tmp_path / "d").exists()
