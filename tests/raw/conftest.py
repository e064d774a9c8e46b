from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from seamark.testing.server import ServerProcess
from tests.served import SERVED


@pytest.fixture(scope="module", params=SERVED)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The surface on our data plane, and as plain ASGI."""
    with ServerProcess(tmp_path_factory.mktemp("raw"), command=request.param) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base_url, timeout=30) as client:
        yield client


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A stream of the test's own."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
