"""The streams behind the surface: made at the start, kept as their policy says, changed when it changes."""

from __future__ import annotations

import msgspec

from seamark.clock import ManualClock
from seamark.log.engines.memory import open_memory
from seamark.log.local import LocalLog
from seamark.log.settings import Durability, StreamSettings
from seamark.notify.service import Notifications
from seamark.telemetry.metrics import Metrics
from tests.notify.rig import options


def schema(**policy: object) -> object:
    fields = {"n": {"type": "IntHandler", "required": True}}
    topic = {"base": "base", "key_order": ["n"]}
    return {"thing": {"topic": topic, "identifier": fields, "storage_policy": policy}}


def memory() -> LocalLog:
    return open_memory(ManualClock(), Metrics())


async def prepared(log: LocalLog, **policy: object) -> StreamSettings:
    notifications = Notifications(log, options(schema(**policy)))
    assert not notifications.prepared
    await notifications.prepare()
    assert notifications.prepared
    return (await log.state("notify:base")).settings


async def test_every_event_type_has_its_stream() -> None:
    log = memory()
    settings = await prepared(log, retention_time="1h", max_messages=9, max_size="1Ki", allow_duplicates=False)
    assert settings == StreamSettings(
        durability=Durability.FSYNC, ttl_ms=3_600_000, cap_records=9, cap_bytes=1024, latest_per_subject=1, indexed=True
    )
    await log.close()


async def test_a_policy_that_changed_is_applied() -> None:
    log = memory()
    await prepared(log, max_messages=9)
    assert (await prepared(log, max_messages=3)).cap_records == 3
    assert (await prepared(log)).cap_records == 0
    await log.close()


async def test_types_without_schema_have_the_engines_settings() -> None:
    log = memory()
    streams = StreamSettings(latest_per_subject=1)
    notifications = Notifications(log, options(None, streams=streams))
    state = await notifications.state("notify:storm", None)
    assert state.settings == msgspec.structs.replace(streams, indexed=True)
    assert (await notifications.state("notify:storm", None)).instance == state.instance
    await log.close()
