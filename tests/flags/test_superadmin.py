"""The first token: by hand, and by a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from seamark.access.tokens import type_of
from seamark.errors import BadConfig, SuperadminExists
from seamark.flags import superadmin
from seamark.flags.audit import Author
from seamark.flags.directory import Directory
from seamark.testing.rig import LogRig

SECRET = "exd_admin_" + "a" * 38


async def loaded(rig: LogRig) -> Directory:
    directory = Directory(rig.log, rig.clock)
    await directory.load()
    return directory


async def test_the_first_is_made_once(rig: LogRig) -> None:
    directory = await loaded(rig)
    first, secret = await superadmin.bootstrap(directory)
    assert directory.find(secret) is directory.holder(first.id)
    with pytest.raises(SuperadminExists) as caught:
        await superadmin.bootstrap(directory)
    assert caught.value.fields["tokens"] == [first.id]
    second, _ = await superadmin.bootstrap(directory, another=True)
    assert second.id != first.id


async def test_when_all_were_revoked_there_is_a_first_again(rig: LogRig) -> None:
    directory = await loaded(rig)
    first, _ = await superadmin.bootstrap(directory)
    await directory.revoke(first.id, Author("tests"))
    second, _ = await superadmin.bootstrap(directory)
    assert directory.live_superadmins() == [second]


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_file_that_is_missing_or_empty_is_written(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
        path.chmod(0o644)
    secret = superadmin.secret_in(path)
    assert type_of(secret) == "superadmin"
    assert path.read_text() == f"{secret}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert superadmin.secret_in(path) == secret
    assert os.listdir(tmp_path) == ["token"]


@pytest.mark.parametrize("content", [SECRET, f"{SECRET}\n", f"  {SECRET}\r\n\n"])
def test_a_file_with_a_secret_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.write_bytes(content.encode())
    path.chmod(0o440)
    assert superadmin.secret_in(path) == SECRET
    assert path.read_bytes() == content.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o440


@pytest.mark.parametrize(
    "content", [b"root:x:0:0", SECRET[:-1].encode(), b"exd_read_" + b"a" * 38, SECRET.encode() + b" x", b"\xff" * 9_999]
)
def test_a_file_with_anything_else_stops_the_start_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(BadConfig) as caught:
        superadmin.secret_in(path)
    assert caught.value.fields["name"] == "superadmin_token_file"
    assert content.decode("latin-1") not in str(caught.value)
    assert path.read_bytes() == content


async def test_a_secret_is_adopted_once(rig: LogRig) -> None:
    directory = await loaded(rig)
    for _ in range(2):
        await superadmin.adopt(directory, SECRET)
    assert len(directory.live_superadmins()) == 1
    if rig.survives_crash:
        await rig.crash()
        directory = await loaded(rig)
        await superadmin.adopt(directory, SECRET)
        assert len(directory.live_superadmins()) == 1


async def test_a_secret_that_was_revoked_stays_so(rig: LogRig) -> None:
    directory = await loaded(rig)
    await superadmin.adopt(directory, SECRET)
    holder = directory.find(SECRET)
    assert holder is not None
    await directory.revoke(holder.name, Author("tests"))
    await superadmin.adopt(directory, SECRET)
    assert directory.find(SECRET) is None
