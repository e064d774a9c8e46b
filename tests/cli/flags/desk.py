"""Verbs in this process, against a real server: what each says, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from seamark.cli.main import main
from seamark.testing.server import ServerProcess


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What a program reads."""
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


class Desk:
    """Somebody with a shell: a folder of their own, a token, and a namespace that they work on."""

    def __init__(self, server: ServerProcess, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._server = server
        self._capsys = capsys

    def run(self, *words: str, status: int | None = 0) -> Said:
        """One verb. It must end with `status`, whatever it is where that is None."""
        self._capsys.readouterr()
        try:
            main(["flags", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = Said(code, *self._capsys.readouterr())
        assert status is None or said.code == status, f"{words}: {said}"
        assert "Traceback" not in said.err
        return said

    def write(self, files: dict[str, bytes], name: str = "billing") -> str:
        """A folder with these files, and no others."""
        root = self.folder / name
        for old in [*root.rglob("*.toml")]:
            old.unlink()
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        root.mkdir(exist_ok=True)
        return str(root)


def environment(server: ServerProcess, namespace: str) -> dict[str, str]:
    token = (server.data.parent / "token").read_text().strip()
    return {"EXD_URL": server.base_url, "EXD_TOKEN": token, "EXD_NAMESPACE": namespace}


def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith(("EXD_", "SEAMARK_")):
            monkeypatch.delenv(name)
