"""Everything that is counted of topics, in one walk over all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from seamark import limits
from seamark.log.protocol import Log, StreamState
from seamark.log.settings import Durability
from seamark.topics.model import PREFIX, config_of, topic_of


class Jobs(Protocol):
    """How the jobs of one queue stand."""

    @property
    def ready(self) -> int: ...
    @property
    def in_flight(self) -> int: ...


JobsOf = Callable[[StreamState], Jobs]


class Counted(NamedTuple):
    """One topic. `jobs` is None where it is no queue."""

    name: str
    state: StreamState
    jobs: Jobs | None


@dataclass(slots=True)
class Census:
    """All topics together, and some of them one by one."""

    topics: int = 0
    records: int = 0
    bytes: int = 0
    queues: int = 0
    by_class: Counter[Durability] = field(default_factory=Counter)
    shown: list[Counted] = field(default_factory=list)
    truncated: bool = False


async def census(log: Log, jobs_of: JobsOf, may_see: Callable[[str], bool]) -> Census:
    """One by one are those that the caller may see, and of them the first, in byte order of name."""
    found = Census()
    after = PREFIX
    while states := await log.streams(prefix=PREFIX, after=after, limit=limits.TOPICS_LISTED_MAX):
        for state in states:
            _count(found, state, jobs_of, may_see)
        after = states[-1].name
        await asyncio.sleep(0)  # there may be many, and others want to be served meanwhile
    return found


def _count(found: Census, state: StreamState, jobs_of: JobsOf, may_see: Callable[[str], bool]) -> None:
    config = config_of(state.settings)
    found.topics += 1
    found.records += state.count
    found.bytes += state.bytes
    found.queues += config.is_queue
    found.by_class[state.settings.durability] += 1
    name = topic_of(state.name)
    if not may_see(name):
        return
    if len(found.shown) == limits.TOPICS_MEASURED_MAX:
        found.truncated = True
        return
    found.shown.append(Counted(name, state, jobs_of(state) if config.is_queue else None))
