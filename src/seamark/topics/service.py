"""Topics as such: made, changed, looked at, removed; and what other parts of the surface hang onto that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from seamark import limits
from seamark.clock import Clock
from seamark.errors import NotEmpty, QuotaExceeded, StreamNotFound, TopicIncompatible
from seamark.log.protocol import Configured, Log, News, ReadsNow, Selector, StreamState
from seamark.topics.activity import Activity
from seamark.topics.model import PREFIX, TopicConfig, check_name, config_of, resolved, settings_of, stream_of, topic_of
from seamark.topics.waiting import Waiting

_NOTHING = Selector(seqs=())


async def _no_catch_up(name: str) -> None:
    return None


async def _no_routers(name: str) -> list[str]:
    return []


async def _all_ready(state: StreamState) -> Mapping[str, int]:
    return {"ready": state.count, "in_flight": 0, "dead_lettered": 0}


class Topics:
    """All topics of one log. The attributes that are functions are places for the surface's other parts:

    `derived`       whether routers may still owe this topic something
    `before_read`   bring such a topic up to date, so that its readers see what was written to its source
    `on_removal`    a topic goes: remove the routers that name it, and say which those were
    `on_change`     a topic has other settings now
    `on_deletion`   some records of a topic (by its stream) are gone by request: jobs of a queue may be among them
    `queue_facts`   what the state of a queue says of its jobs
    """

    def __init__(self, log: Log, clock: Clock, *, topics_max: int = 0) -> None:
        self.log = log
        self.reads: ReadsNow | None = log if isinstance(log, ReadsNow) else None
        self.activity = Activity(clock)
        self.waiting = Waiting(log.wakeup)
        self.known: set[str] = set()  # streams that are topics; complete once `load` has run
        self.derived: Callable[[str], bool] = lambda name: False
        self.before_read: Callable[[str], Awaitable[None]] = _no_catch_up
        self.on_removal: Callable[[str], Awaitable[list[str]]] = _no_routers
        self.on_change: Callable[[StreamState], None] = lambda state: None
        self.on_deletion: Callable[[str], None] = lambda stream: None
        self.queue_facts: Callable[[StreamState], Awaitable[Mapping[str, int]]] = _all_ready
        self.loaded = False
        self._topics_max = topics_max
        self._unsubscribe = log.wakeup.subscribe(self._hear)

    async def load(self) -> None:
        """Learn which topics there are."""
        after = PREFIX
        while states := await self.log.streams(prefix=PREFIX, after=after, limit=limits.TOPICS_LISTED_MAX):
            self.known.update(state.name for state in states)
            after = states[-1].name
        self.loaded = True

    def close(self) -> None:
        """Nobody waits any longer."""
        self.waiting.close()
        self._unsubscribe()

    # -- whether there is one

    @property
    def full(self) -> bool:
        """Whether another topic would be one too many."""
        return not self._has_room(1)

    def check_room(self, wanted: int = 1) -> None:
        """Asked before so many topics are made. Raises QuotaExceeded."""
        if wanted and not self._has_room(wanted):
            message = f"there are {self._topics_max} topics, and no more may be made"
            raise QuotaExceeded(message, limit="max_topics", max=self._topics_max)

    async def exists(self, name: str) -> bool:
        try:
            await self.log.state(stream_of(name))
        except StreamNotFound:
            return False
        return True

    def exists_now(self, name: str) -> bool | None:
        """The same without waiting; None when only `exists` can tell."""
        if self.reads is None:
            return None
        try:
            self.reads.state_now(stream_of(name))
        except StreamNotFound:
            return False
        return True

    # -- what can be done with one

    async def configure(self, name: str, config: TopicConfig) -> Configured:
        """Make a topic, or replace the settings of one. Raises BadInput, TopicIncompatible, QuotaExceeded."""
        check_name(name)
        config = resolved(config, name)
        stream, settings = stream_of(name), settings_of(config)
        state = await self._settled(stream)
        if state is None:
            self.check_room()
        else:
            existing = config_of(state.settings).type
            if existing is not config.type:
                raise TopicIncompatible(
                    f"topic {name} is a {existing} and cannot become a {config.type}",
                    topic=name,
                    existing_type=existing,
                    requested_type=config.type,
                )
            if state.settings == settings:
                return Configured(state, False)
        done = await self.log.configure(stream, settings)
        self.known.add(stream)
        if not done.created:
            self.on_change(done.state)
        return done

    async def ensure(self, name: str, config: TopicConfig) -> bool:
        """Make a topic where there is none, whatever it is where there is one. Returns whether it was made."""
        return False if await self.exists(name) else (await self.configure(name, config)).created

    async def state(self, name: str) -> StreamState:
        """As its readers would find it. Raises StreamNotFound."""
        if self.derived(name):
            await self.before_read(name)
        return await self.log.state(stream_of(name))

    async def page(
        self, prefix: str, after: str, size: int, may: Callable[[str], bool]
    ) -> tuple[list[StreamState], bool]:
        """Up to `size` topics after `after` that the caller may see, in byte order of name, and whether there are more."""
        found: list[StreamState] = []
        place = stream_of(after)
        while True:
            states = await self.log.streams(
                prefix=stream_of(prefix), after=place, limit=min(size + 1, limits.TOPICS_LISTED_MAX)
            )
            found += [state for state in states if may(topic_of(state.name))]
            if not states or len(found) > size:
                return found[:size], len(found) > size
            place = states[-1].name
            await asyncio.sleep(0)  # a caller who may see little has many to pass over

    async def remove(self, name: str, *, if_empty: bool = False) -> tuple[bool, list[str]]:
        """Whether there was one, and which routers went with it. Raises NotEmpty."""
        stream = stream_of(name)
        state = await self._settled(stream)
        if state is None:
            return False, []
        if if_empty and state.count:
            raise NotEmpty(f"topic {name} holds {state.count} records", stream=stream, count=state.count)
        dropped = await self.log.drop(stream)  # at once: what is written after the look would be gone unseen
        return dropped.existed, await self.on_removal(name)

    # -- inside

    def _has_room(self, wanted: int) -> bool:
        return not self._topics_max or len(self.known) + wanted <= self._topics_max

    async def _settled(self, stream: str) -> StreamState | None:
        """The stream once everything accepted for it is committed: a deletion of nothing waits for that. Nothing else
        happens to a local log until the caller waits for something again."""
        try:
            return (await self.log.delete(stream, _NOTHING)).state
        except StreamNotFound:
            return None

    def _hear(self, news: Sequence[News]) -> None:
        for one in news:
            if one.dropped:
                self.known.discard(one.stream)
                self.activity.forget(one.stream)
            elif one.stream.startswith(PREFIX):
                self.known.add(one.stream)
