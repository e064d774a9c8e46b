"""Moved to `seamark.wire.exchange`, below the surfaces that use it; this name goes away when http's imports follow."""

from seamark.wire.exchange import Exchange, Handler, Headers, Route

__all__ = ["Exchange", "Handler", "Headers", "Route"]
