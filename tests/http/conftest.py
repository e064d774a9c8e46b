from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.http.rig import Client, Running


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """One server for the tests of a module, on each kind of loop."""
    running = Running(loop=request.param)
    yield running
    running.stop()


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Start servers that need something special; they are stopped in the end."""
    running: list[Running] = []

    def begin(**options: object) -> Running:
        running.append(Running(**options))  # type: ignore[arg-type]
        return running[-1]

    yield begin
    for one in running:
        one.stop()
