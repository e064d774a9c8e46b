"""What the notify surface is told: the schema, how its streams are kept, and the numbers of its event streams."""

from __future__ import annotations

import msgspec

from seamark.log.settings import StreamSettings
from seamark.notify.eventtype import Schema

NO_SCHEMA = Schema(None)


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are the contract's, and without a schema any event type is taken. Only the pause between batches of history
    is 0 where the contract says 100 ms: it is a throttle, and whoever wants one sets it."""

    schema: Schema = NO_SCHEMA
    base_url: str = "http://localhost"  # the source of events, and where their schemas are said to be
    heartbeat_seconds: float = 30.0
    duration_seconds: float = 3_600.0  # of a watch at the most
    batch_size: int = 100
    batch_pause_seconds: float = 0.0
    history_max: int = (
        10_000  # notifications from history that one request is given, unless its event type says otherwise
    )
    streams: StreamSettings = StreamSettings()  # what storage policies start from, and event types without schema have
    backend: str = "embedded"  # the engine's name in metrics
