from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.flags.desk import Desk


@pytest.mark.parametrize(
    "spoilt", ["exd_read_1\nexd_read_2", "exd_read_1 2", "exd_read_\x01", "exd_read_\u00e9", "exd_read_\r\nx"]
)
def test_what_is_no_secret_is_not_repeated(
    desk: Desk, spoilt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXD_TOKEN", spoilt)
    said = desk.run("versions", status=2)
    assert "EXD_TOKEN" in said.err
    assert "exd_read" not in said.err + said.out
    file = tmp_path / "token"
    file.write_bytes(spoilt.encode())
    said = desk.run("versions", "--token-file", str(file), status=2)
    assert str(file) in said.err
    assert "exd_read" not in said.err + said.out


def test_what_stands_around_a_secret_does_not_count(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXD_TOKEN", " exd_read_unknown\r\n")
    assert "not known here" in desk.run("versions", status=3).err
