"""Plug-ins that are asked, for each watch and replay of the event types that name them in `auth.plugins`, whether a user may
have what it asks for.

A plug-in is an entry point of the group `seamark.notify.gates`. Its name is what `auth.plugins` says; what it points at is
called once, with the arguments of `Opener`, before anything is served, and raises BadConfig if it cannot do its work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import entry_points
from typing import Protocol

from seamark.access.user import User
from seamark.clock import Clock
from seamark.config import Settings
from seamark.notify.eventtype import EventType, Schema
from seamark.telemetry.metrics import Metrics

GROUP = "seamark.notify.gates"


class Gate(Protocol):
    """Asked after the roles have allowed it, and never about admins."""

    async def release(self, user: User, event: EventType, values: Mapping[str, str]) -> None:
        """`values` are canonical, by field; `*` where anything is wanted. Raises Forbidden, or Unreachable where it cannot
        know."""
        ...

    async def close(self) -> None: ...


class Opener(Protocol):
    """What an entry point of the group points at."""

    def __call__(self, *, settings: Settings, schema: Schema, clock: Clock, metrics: Metrics) -> Gate: ...


def installed() -> frozenset[str]:
    """The names that `auth.plugins` may say."""
    return frozenset(entry.name for entry in entry_points(group=GROUP))


def open_gates(*, settings: Settings, schema: Schema, clock: Clock, metrics: Metrics) -> Mapping[str, Gate]:
    """Those that some event type names. Raises BadConfig."""
    named: Collection[str] = {name for event in schema for name in event.auth.plugins}
    openers: dict[str, Opener] = {
        entry.name: entry.load() for entry in entry_points(group=GROUP) if entry.name in named
    }
    return {
        name: opener(settings=settings, schema=schema, clock=clock, metrics=metrics)
        for name, opener in sorted(openers.items())
    }
