"""A real server, with tokens and manifests to push to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seamark.client.flags.retry import Pace
from seamark.testing.server import ServerProcess
from tests.flags.test_watch_http import Office, started

QUICK = Pace(first=0.02, most=0.2, slow=0.3, connect=5.0, silence=10.0, snapshot=5.0)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, Path]]:
    place = tmp_path_factory.mktemp("clients")
    with started(place, "--flags-keepalive-seconds", "1") as process:
        yield process, place


@pytest.fixture
def office(shared_server: tuple[ServerProcess, Path]) -> Office:
    """A tenant of one's own with the namespace `billing`."""
    return Office(*shared_server)
