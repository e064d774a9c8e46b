"""A server for each file of tests, and a client that knows nothing of whoever runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyaviso
import pytest

from seamark.testing.server import ServerProcess
from tests.conformance.rig import TICKS, connect, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("conformance")) as process:
        yield process


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The client looks for settings in the environment and at home."""
    for name in [name for name in os.environ if name.startswith("AVISO_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AVISO_CLIENT_CONFIG_FILE", str(tmp_path / "no-such-file.yaml"))


@pytest.fixture
def client(server: ServerProcess) -> pyaviso.AvisoClient:
    return connect(server.base_url)


@pytest.fixture(scope="module")
def unused_ticks() -> Iterator[str]:
    return iter(TICKS)


@pytest.fixture
def ticks(unused_ticks: Iterator[str]) -> str:
    """An event type whose stream is the test's own: it begins at 1."""
    return next(unused_ticks)
