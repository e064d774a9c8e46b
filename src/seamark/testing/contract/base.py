"""What all parts of the log contract share: the rig fixture, and small words for writing and waiting."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from seamark.log.protocol import Append, Log, Receipt, StreamState
from seamark.log.record import Draft
from seamark.log.settings import Durability, StreamSettings
from seamark.testing.rig import LogRig

PATIENCE_SECONDS = 20.0  # an engine that has not done it by then never will; nothing asserts that it is faster
FSYNC = StreamSettings()
DISK = StreamSettings(durability=Durability.DISK)
EVERY_CLASS = pytest.mark.parametrize("durability", list(Durability), ids=str)


def draft(text: str, **fields: object) -> Draft:
    return Draft(text.encode(), **fields)  # type: ignore[arg-type]


def drafts(*texts: str) -> list[Draft]:
    return [Draft(text.encode()) for text in texts]


async def write(
    log: Log, name: str, *texts: str, create: StreamSettings | None = FSYNC, key: str | None = None
) -> Receipt:
    """Append one atomic unit, creating the stream when it is not there."""
    return await log.append(Append(stream=name, drafts=drafts(*texts), create=create, key=key))


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait until `check` holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await check():  # noqa: ASYNC110  (a log promises no event for every condition a test waits for)
            await asyncio.sleep(0.005)


async def settled(log: Log, name: str) -> StreamState:
    """The stream once everything in it is durable."""

    async def is_synced() -> bool:
        marks = (await log.state(name)).marks
        return marks.synced == marks.head

    await eventually(is_synced)
    return await log.state(name)


class ContractBase(abc.ABC):
    """Gives every test an open log of the engine that the subclass names."""

    @abc.abstractmethod
    def make_rig(self, place: Path) -> LogRig:
        """A fresh, closed rig; `place` is an empty directory of its own."""

    @pytest_asyncio.fixture
    async def rig(self, tmp_path: Path) -> AsyncIterator[LogRig]:
        rig = self.make_rig(tmp_path)
        await rig.open()
        yield rig
        await rig.close()

    @pytest.fixture
    def log(self, rig: LogRig) -> Log:
        return rig.log


def needs(has: bool, what: str) -> None:
    """Skip when the engine does not declare a capability."""
    if not has:
        pytest.skip(f"the engine does not declare {what}")
