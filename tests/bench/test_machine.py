from __future__ import annotations

import os
from pathlib import Path

import pytest

from seamark.bench import machine


def test_the_machine_is_described(tmp_path: Path) -> None:
    found = machine.describe(tmp_path)
    assert found["cores"] == len(machine.cores())
    assert found["cpu"]
    assert float(found["sync_us"]) > 0


def test_one_core_is_not_split() -> None:
    assert machine.pin(os.getpid(), machine.SERVER_CORE, [0]) is False


def test_the_open_file_limit_only_grows() -> None:
    before = machine.open_files(0)
    assert machine.open_files(before) >= before
    assert machine.open_files(1) >= min(before, 1)


def test_the_directory_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(machine.DIRECTORY_VARIABLE, str(tmp_path))
    assert machine.directory() == tmp_path
    monkeypatch.delenv(machine.DIRECTORY_VARIABLE)
    assert machine.directory().is_dir()
