"""Routers as such: made, changed, looked at, removed, and kept over restarts. What they do is `forwarding`'s business."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from seamark.errors import RouterNotFound, StreamNotFound
from seamark.log.protocol import Append, Shelf
from seamark.log.watermarks import Cursor
from seamark.telemetry.metrics import Metrics
from seamark.topics.forwarding import Forwarding
from seamark.topics.model import TopicConfig, stream_of
from seamark.topics.router_rows import Place, load, place_put, removal, router_put
from seamark.topics.routers import Roster, Router
from seamark.topics.service import Topics

_DEFAULTS = TopicConfig()


class Standing(NamedTuple):
    """A router, and how many copies it made in its life."""

    router: Router
    forwarded: int


class RouterBook:
    """All routers of one log. Changes come one after the other, so each is judged by what is really there; and each is
    made whole, also when whoever asked for it goes away meanwhile."""

    def __init__(self, topics: Topics, metrics: Metrics, *, routers_max: int = 0) -> None:
        self._topics = topics
        self._log = topics.log
        self._lock = asyncio.Lock()
        self.roster = Roster(routers_max)
        self.forwarding = Forwarding(topics.log, metrics)
        if isinstance(self._log, Shelf):
            for router, place in load(self._log):
                self.roster.put(router)
                self.forwarding.add(router, place)

    async def settle(self) -> None:
        """Finish what a crash interrupted: a topic was removed, and its routers were not yet."""
        for router in self.roster:
            for topic in (router.source, router.dest):
                if not await self._topics.exists(topic):
                    await self.topic_removed(topic)
            await asyncio.sleep(0)

    async def put(self, router: Router, *, create_dest: bool) -> bool:
        """Make or change one; whether it was made. Raises BadInput, StreamNotFound, and what `Roster.check` raises: then
        nothing was made at all."""
        router.check()
        return await asyncio.shield(self._put(router, create_dest))

    async def _put(self, router: Router, create_dest: bool) -> bool:
        async with self._lock:
            dest_exists = await self._topics.exists(router.dest)
            if not (create_dest or dest_exists):
                raise StreamNotFound(f"there is no topic {router.dest}", stream=stream_of(router.dest))
            self.roster.check(router)
            source_exists = await self._topics.exists(router.source)
            self._topics.check_room((not dest_exists) + (not source_exists))
            for topic in (router.source, router.dest):
                await self._topics.ensure(topic, _DEFAULTS)
            known = self.roster.find(router.name)
            if known is None:
                await self._make(router)
            elif known != router:
                await self._change(router)
            return known is None

    async def _make(self, router: Router) -> None:
        """It begins where its source now ends."""
        source = await self._topics.log.state(stream_of(router.source))
        place = Place(Cursor(source.marks.head, source.instance))
        await self._log.append(Append(puts=[router_put(router), place_put(router.name, place)]))
        self.roster.put(router)
        self.forwarding.add(router, place)

    async def _change(self, router: Router) -> None:
        """It goes on from its place as another."""
        async with self.forwarding.held([router.name]):
            await self._log.append(Append(puts=[router_put(router)]))
            self.roster.put(router)
            self.forwarding.feed(router.name).become(router)

    def get(self, name: str) -> Standing:
        """Raises RouterNotFound."""
        router = self.roster.find(name)
        if router is None:
            raise RouterNotFound(f"there is no router {name}", router=name)
        return Standing(router, self.forwarding.feed(name).place.forwarded)

    def page(self, after: str, size: int, shown: Callable[[Router], bool]) -> tuple[list[Standing], bool]:
        """Up to `size` routers after a name that are to be shown, and whether there are more."""
        found: list[Standing] = []
        for name in self.roster.names():
            if name > after and shown((standing := self.get(name)).router):
                if len(found) == size:
                    return found, True
                found.append(standing)
        return found, False

    async def remove(self, name: str) -> bool:
        """Whether there was one. Its copies stay."""
        return bool(await asyncio.shield(self._remove(lambda: [name] if self.roster.find(name) else [])))

    async def topic_removed(self, topic: str) -> list[str]:
        """Remove the routers that name a topic which is gone, and say which those were."""
        return await asyncio.shield(self._remove(lambda: sorted(one.name for one in self.roster.naming(topic))))

    async def _remove(self, which: Callable[[], list[str]]) -> list[str]:
        async with self._lock:
            names = which()
            if names:
                async with self.forwarding.held(names):
                    await self._log.append(Append(puts=[put for name in names for put in removal(name)]))
                    for name in names:
                        self.roster.remove(name)
                        self.forwarding.remove(name)
            return names
