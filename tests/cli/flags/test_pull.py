"""Pulling: into folders and archives, and never over somebody's work."""

from __future__ import annotations

from pathlib import Path

from seamark.manifest.archive import pack, unpack
from tests.cli.flags.desk import Desk
from tests.cli.flags.test_push import ONE, TWO


def held(folder: str) -> dict[str, bytes]:
    root = Path(folder)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_is_pulled_is_what_was_pushed(desk: Desk) -> None:
    desk.run("push", desk.write(TWO))
    target = str(desk.folder / "copy")
    pulled = desk.run("pull", target).lines[0]
    assert (pulled["event"], pulled["version"], pulled["files"]) == ("pulled", 1, 3)
    assert held(target) == TWO
    assert desk.run("push", target).lines[0]["version"] == 2
    desk.run("pull", target)
    assert held(target) == TWO


def test_an_earlier_version(desk: Desk) -> None:
    desk.run("push", desk.write(ONE))
    desk.run("push", desk.write(TWO))
    said = desk.run("pull", str(desk.folder / "old"), "--version", "1", "--text")
    assert "holds version 1 of" in said.out
    assert held(str(desk.folder / "old")) == ONE
    assert "no" in desk.run("pull", str(desk.folder / "new"), "--version", "3", status=2).err


def test_work_that_is_there_is_kept(desk: Desk) -> None:
    desk.run("push", desk.write(ONE))
    mine = desk.write(TWO, "mine")
    (Path(mine) / "notes.md").write_text("mine")
    assert "--force" in desk.run("pull", mine, status=1).err
    assert held(mine) == {**TWO, "notes.md": b"mine"}
    desk.run("pull", mine, "--force")
    assert held(mine) == {**ONE, "notes.md": b"mine"}


def test_an_archive(desk: Desk) -> None:
    desk.run("push", desk.write(ONE))
    target = desk.folder / "m.tar.gz"
    desk.run("pull", str(target))
    assert target.read_bytes() == pack(ONE)
    desk.run("pull", str(target))
    desk.run("push", desk.write(TWO))
    desk.run("pull", str(target), status=1)
    desk.run("pull", str(target), "--force")
    assert unpack(target.read_bytes()).files == TWO


def test_where_there_is_nothing_yet(desk: Desk) -> None:
    assert "has no manifest yet" in desk.run("pull", str(desk.folder / "x"), status=2).err
    assert not (desk.folder / "x").exists()
