"""An earlier version put back."""

from __future__ import annotations

from pathlib import Path

from tests.cli.flags.desk import Desk
from tests.cli.flags.test_pull import held
from tests.cli.flags.test_push import ONE, TWO


def test_an_earlier_version_is_the_newest_again(desk: Desk) -> None:
    for files in (ONE, TWO):
        desk.run("push", desk.write(files))
    assert desk.run("rollback", "1", "--if-version", "2").lines[0]["version"] == 3
    desk.run("pull", str(desk.folder / "now"))
    assert held(str(Path(desk.folder / "now"))) == ONE
    assert "the current version is 3" in desk.run("rollback", "1", "--if-version", "2", status=1).err
    assert "no version 9" in desk.run("rollback", "9", status=2).err
