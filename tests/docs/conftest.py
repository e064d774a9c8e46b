"""A real server for the examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from seamark.testing.server import ServerProcess


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Start `seamark serve --demo --superadmin-token-file token.txt`; gives its base URL. In the end it is told to stop, which must be clean."""
    with ExitStack() as stack:
        started: list[ServerProcess] = []

        def start() -> str:
            token = str(tmp_path / "token.txt")  # where the examples run
            server = stack.enter_context(ServerProcess(tmp_path / "server", "--demo", "--superadmin-token-file", token))
            started.append(server)
            return server.base_url

        (tmp_path / "server").mkdir()
        yield start
        for server in started:
            assert server.stop() == 0, server.stderr_tail()
