from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from seamark.testing.server import ServerProcess
from tests.cli.flags.desk import Desk, clean_environment, environment

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    place = tmp_path_factory.mktemp("flags-verbs")
    with ServerProcess(place, "--superadmin-token-file", str(place / "token")) as process:
        yield process


@pytest.fixture
def desk(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    """With a namespace of its own, called `billing`."""
    tenant = f"acme-{next(_NUMBERS)}"
    clean_environment(monkeypatch)
    for name, value in environment(server, f"{tenant}/billing").items():
        monkeypatch.setenv(name, value)
    desk = Desk(server, tmp_path, capsys)
    desk.run("tenants", "create", tenant, "--email-domain", "acme.example")
    desk.run("namespaces", "create", f"{tenant}/billing")
    return desk
