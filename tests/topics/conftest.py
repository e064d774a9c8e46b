from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import httpx
import pytest
import pytest_asyncio

from seamark.testing.server import ServerProcess
from tests.served import SERVED
from tests.topics.rig import TopicsRig


@pytest.fixture(scope="module", params=SERVED)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The surface on our data plane, and as plain ASGI."""
    with ServerProcess(tmp_path_factory.mktemp("topics"), command=request.param) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base_url, timeout=30) as client:
        yield client


_NUMBERS = count(1)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    words = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{words[:100]}-{next(_NUMBERS)}"


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[TopicsRig]:
    """The surface in this process, on a log in memory, with a clock that moves when told."""
    rig = TopicsRig()
    yield rig
    await rig.close()
