"""Who may do what under /api/v1: the seam between the routes, which know when to ask, and whatever knows the answer.

The contract asks in this order. First who is calling, before a byte of the body means anything: wrong credentials are told even
to those who would need none. Then, when the event type is known, whether they may read or write it. Last, for a watch or a
replay whose request is in order, whether they may have what they ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from seamark.errors import Forbidden
from seamark.notify.eventtype import EventType
from seamark.wire.exchange import Exchange


class Gatekeeper(Protocol):
    """Everything raises Unauthenticated (401), Forbidden (403) or Refused (503: it cannot be known now)."""

    @property
    def decides(self) -> bool:
        """Whether it has anything to say. If not, the routes need the scopes of API keys, as everywhere else, and a route
        that must be quick need not ask at all."""
        ...

    async def identify(self, exchange: Exchange) -> None:
        """Sets `exchange.principal`: a User, or NOBODY for a caller that shows no credentials."""
        ...

    async def reader(self, exchange: Exchange, event: EventType | None) -> None:
        """For watch and replay, after `identify`. `event` None: it has no schema, so nobody is kept from it."""
        ...

    async def writer(self, exchange: Exchange, event: EventType | None) -> None:
        """For notification, after `identify`."""
        ...

    async def admin(self, exchange: Exchange) -> None:
        """For everything below /api/v1/admin; identifies the caller as well."""
        ...

    async def release(self, exchange: Exchange, event: EventType | None, values: Mapping[str, str]) -> None:
        """For watch and replay, just before the stream begins: `values` are the canonical ones of the fields, `*` where
        anything is wanted. This is where plug-ins of the event type are asked."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class OpenGate:
    """Without auth: everybody whom the server's API keys let in."""

    decides = False

    async def identify(self, exchange: Exchange) -> None:
        return

    async def reader(self, exchange: Exchange, event: EventType | None) -> None:
        return

    async def writer(self, exchange: Exchange, event: EventType | None) -> None:
        return

    async def admin(self, exchange: Exchange) -> None:
        return

    async def release(self, exchange: Exchange, event: EventType | None, values: Mapping[str, str]) -> None:
        return

    async def close(self) -> None:
        return


def may(exchange: Exchange, action: str, event_type: str) -> None:
    """Whether the caller's API key is for this event type. Raises Forbidden."""
    if not exchange.principal.may(action, event_type):
        raise Forbidden(f"this key may not {action} {event_type!r}", action=action, resource=event_type)
