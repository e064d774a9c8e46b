"""Event types and servers that the tests of this room share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from seamark.notify.eventtype import EventType, Schema
from seamark.notify.schema import read_schema
from tests.notify.example import SCHEMA
from tests.notify.rig import NotifyRig, running


@pytest.fixture(scope="session")
def schema() -> Schema:
    return read_schema(SCHEMA)


@pytest.fixture(scope="session")
def event_types(schema: Schema) -> dict[str, EventType]:
    return {event.name: event for event in schema}


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[NotifyRig]:
    """On our own server."""
    async with running() as rig:
        yield rig


@pytest_asyncio.fixture(params=["ours", "hypercorn"])
async def each(request: pytest.FixtureRequest) -> AsyncIterator[NotifyRig]:
    """On our own server, and as plain ASGI."""
    async with running(kind=request.param) as rig:
        yield rig
