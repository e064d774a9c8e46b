"""What a router is, and which routers may stand beside one another. Pure: neither log nor loop.

A router copies what is written to its source into its dest. A topic is fed from one source at the most (by any number of
routers), and routers run in no circle unless the one that closes it says that it may.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

import msgspec

from seamark.errors import BadInput, QuotaExceeded, RouterCycle, TopicIncompatible
from seamark.log.protocol import TagMatch
from seamark.topics.model import check_name

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:>-]{0,254}")


class Guarantee(enum.StrEnum):
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Router(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A router as it was asked for."""

    name: str
    source: str
    dest: str
    preserve_node: bool = True
    preserve_tag: bool = True
    filter: TagMatch | None = None
    allow_cycle: bool = False
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE

    @property
    def exactly_once(self) -> bool:
        return self.guarantee is Guarantee.EXACTLY_ONCE

    def check(self) -> None:
        """Whether it makes sense by itself. Raises BadInput."""
        if NAME.fullmatch(self.name) is None:
            raise BadInput(
                f"{self.name!r} is not a router name: letters, digits and ._:->, a letter or digit first, at most 255"
            )
        check_name(self.source, "a source: topic names are")
        check_name(self.dest, "a dest: topic names are")
        if self.source == self.dest:
            raise BadInput("a router's source and dest are two topics")


class Roster:
    """All routers, by name and by the topics at their ends."""

    def __init__(self, routers_max: int = 0) -> None:
        self._routers_max = routers_max
        self._by_name: dict[str, Router] = {}
        self._from: dict[str, dict[str, Router]] = {}
        self._into: dict[str, dict[str, Router]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Router]:
        return iter(list(self._by_name.values()))

    def find(self, name: str) -> Router | None:
        return self._by_name.get(name)

    def names(self) -> list[str]:
        """In order; a string's order is that of its UTF-8 bytes."""
        return sorted(self._by_name)

    def into(self, dest: str) -> list[Router]:
        return list(self._into.get(dest, {}).values())

    def naming(self, topic: str) -> list[Router]:
        """Those that begin or end at a topic."""
        return [*self._from.get(topic, {}).values(), *self.into(topic)]

    def put(self, router: Router) -> None:
        """Add one, or change one without moving its ends."""
        self._by_name[router.name] = router
        self._from.setdefault(router.source, {})[router.name] = router
        self._into.setdefault(router.dest, {})[router.name] = router

    def remove(self, name: str) -> None:
        router = self._by_name.pop(name)
        for index, topic in ((self._from, router.source), (self._into, router.dest)):
            del index[topic][name]
            if not index[topic]:
                del index[topic]

    # -- what may stand beside what is there

    def check(self, router: Router) -> None:
        """Whether it may be put. Raises TopicIncompatible, QuotaExceeded, RouterCycle, in this order."""
        known = self.find(router.name)
        self._check_fan_in(router)
        if known is None:
            self._check_room()
        elif (known.source, known.dest) != (router.source, router.dest):
            raise TopicIncompatible(
                f"router {router.name} leads from {known.source} to {known.dest}; delete it to lead elsewhere",
                topic=router.dest,
                reason="router_repoint_forbidden",
            )
        # What stands in a circle by permission, its own or another's, may be put again as it is.
        if not router.allow_cycle and (known is None or known.allow_cycle):
            self._check_cycle(router)

    def cycle(self, router: Router) -> list[str]:
        """The topics on a way from the source through this router back to it; empty when there is none."""
        came_from: dict[str, str] = {router.dest: router.source}
        ahead = [router.dest]
        while ahead and router.source not in ahead:
            following: list[str] = []
            for topic in ahead:
                for other in self._from.get(topic, {}).values():
                    if other.name != router.name and other.dest not in came_from:
                        came_from[other.dest] = topic
                        following.append(other.dest)
            ahead = following
        if not ahead:
            return []
        way = [router.source]
        while len(way) == 1 or way[-1] != router.source:
            way.append(came_from[way[-1]])
        return way[::-1]

    def _check_fan_in(self, router: Router) -> None:
        for other in self.into(router.dest):
            if other.name != router.name and other.source != router.source:
                raise TopicIncompatible(
                    f"topic {router.dest} is fed from {other.source} already",
                    topic=router.dest,
                    reason="router_dest_fan_in",
                )

    def _check_room(self) -> None:
        if self._routers_max and len(self) >= self._routers_max:
            message = f"there are {self._routers_max} routers, and no more may be made"
            raise QuotaExceeded(message, limit="max_routers", max=self._routers_max)

    def _check_cycle(self, router: Router) -> None:
        cycle = self.cycle(router)
        if cycle:
            raise RouterCycle(f"what {router.source} holds would come back to it: {' > '.join(cycle)}", cycle=cycle)
