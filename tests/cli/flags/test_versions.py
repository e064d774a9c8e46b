"""History from a shell."""

from __future__ import annotations

from tests.cli.flags.desk import Desk
from tests.cli.flags.test_push import ONE, TWO


def test_versions_are_listed(desk: Desk) -> None:
    assert desk.run("versions").lines == []
    for files in (ONE, TWO):
        desk.run("push", desk.write(files))
    desk.run("rollback", "1")
    rows = desk.run("versions").lines
    assert [(row["version"], row["flag_count"], row["restored_version"]) for row in rows] == [
        (3, 1, 1),
        (2, 2, None),
        (1, 1, None),
    ]
    assert [row["version"] for row in desk.run("versions", "--limit", "2").lines] == [3, 2]
    shown = desk.run("versions", "--text").out
    assert shown.split()[:6] == ["version", "uploaded", "by", "flags", "segments", "note"]
    assert "as 1" in shown
