"""What the conformance tests share: a real server with a schema, and the contract's own client, `pyaviso`, pointed at it.

The client is a compiled program that somebody else wrote; nothing here reaches into it. It is told where the server is, and
what it hands out is compared with what was published.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyaviso
import yaml
from pyaviso import Notification

from seamark.testing.server import ServerProcess

PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.01
HISTORY_MAX = 50
POLYGON = [[52.5, 13.4], [52.6, 13.5], [52.5, 13.6], [52.4, 13.5], [52.5, 13.4]]
TICKS = [f"ticks{number}" for number in range(40)]  # of the same kind, so that every test can have a stream of its own
SCHEMA: dict[str, Any] = {
    **{
        name: {
            "topic": {"base": name, "key_order": ["n"]},
            "identifier": {"n": {"type": "IntHandler", "required": False}},
        }
        for name in TICKS
    },
    "weather": {
        "topic": {"base": "weather", "key_order": ["date", "severity", "anomaly", "region"]},
        "identifier": {
            "date": {"type": "DateHandler", "canonical_format": "%Y%m%d", "required": True},
            "severity": {"type": "IntHandler", "range": [0, 10], "required": False},
            "anomaly": {"type": "FloatHandler", "required": False},
            "region": {"type": "EnumHandler", "values": ["north", "south", "west"], "required": False},
        },
        "payload": {"required": True},
    },
    "areas": {
        "topic": {"base": "areas", "key_order": ["date"]},
        "identifier": {
            "date": {"type": "DateHandler", "canonical_format": "%Y%m%d", "required": False},
            "polygon": {"type": "PolygonHandler", "required": True},
        },
    },
    "observations": {
        "topic": {"base": "obs", "key_order": ["date"]},
        "identifier": {
            "date": {"type": "DateHandler", "canonical_format": "%Y%m%d", "required": True},
            "point_cloud": {"type": "PointCloudHandler", "required": True},
        },
    },
    "brief": {
        "topic": {"base": "brief", "key_order": ["n"]},
        "identifier": {"n": {"type": "IntHandler", "required": False}},
        "storage_policy": {"max_messages": 3, "allow_duplicates": True},
    },
    "latest": {
        "topic": {"base": "latest", "key_order": ["n"]},
        "identifier": {"n": {"type": "IntHandler", "required": False}},
        "storage_policy": {"allow_duplicates": False},
    },
}
WATCH = {"sse_heartbeat_interval_sec": 1, "replay_batch_size": 7, "max_historical_notifications": HISTORY_MAX}


def serving(place: Path, environment: Mapping[str, str] | None = None, **sections: Any) -> ServerProcess:
    """`seamark serve` with the file of a notify server; sections are added to the file or take the place of those in it."""
    place.mkdir(exist_ok=True)
    whole = {
        "application": {"host": "127.0.0.1", "port": 8000, "base_url": "https://aviso.example"},
        "watch_endpoint": WATCH,
        "notification_schema": SCHEMA,
        **sections,
    }
    file = place / "config.yaml"
    file.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return ServerProcess(place, "--config", str(file), environment=environment)


def connect(base_url: str, **more: Any) -> pyaviso.AvisoClient:
    return pyaviso.AvisoClient(base_url=base_url, **({"auth": pyaviso.Anonymous()} | more))


def tick(client: pyaviso.AvisoClient, event_type: str, *numbers: int) -> None:
    for number in numbers:
        client.notify(event_type=event_type, identifier={"n": number})


def sequences(notifications: Sequence[Notification]) -> list[int]:
    return [notification.sequence for notification in notifications]


def measured(base_url: str, metric: str, event_type: str) -> int:
    """What the server has measured of the watches of an event type."""
    sample = re.compile(rf'{metric}{{event_type="{event_type}",route="/api/v1/watch"}} ([0-9.]+)')
    found = sample.search(httpx.get(f"{base_url}/metrics").text)
    assert found, f"the server does not measure {metric}"
    return int(float(found[1]))


def wait_for_watches(base_url: str, event_type: str, count: int = 1) -> None:
    wait_until(
        lambda: measured(base_url, "aviso_sse_connections_active", event_type) == count,
        f"{count} watches of {event_type}",
    )


def wait_until(holds: Any, what: str, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + patience_seconds
    while not holds():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(POLL_SECONDS)


class Listener:
    """What one listener hands out, collected by a thread; iterating it here could block the test for ever."""

    def __init__(self, notifications: Any) -> None:
        self.heard: list[Any] = []
        self.error: BaseException | None = None
        self._notifications = notifications
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        try:
            for notification in self._notifications:
                self.heard.append(notification)
        except BaseException as error:  # the test looks at it
            self.error = error

    @property
    def sequences(self) -> list[int]:
        return sequences(list(self.heard))

    def until(self, count: int, *, patience_seconds: float = PATIENCE_SECONDS) -> list[Any]:
        wait_until(
            lambda: len(self.heard) >= count or not self._thread.is_alive(),
            f"{count} notifications, have {len(self.heard)}",
            patience_seconds=patience_seconds,
        )
        assert len(self.heard) >= count, f"it ended with {self.error!r} after {len(self.heard)}"
        return list(self.heard)

    def end(self) -> BaseException | None:
        """Wait until it has ended by itself; what it ended with."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "it goes on"
        return self.error

    def close(self) -> None:
        self._notifications.close()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "closed, and goes on"


@contextmanager
def listening(notifications: Any) -> Iterator[Listener]:
    listener = Listener(notifications)
    try:
        yield listener
    finally:
        listener.close()


def replay(
    client: pyaviso.AvisoClient, event_type: str, *, start_from: int | str = 0, **more: Any
) -> list[Notification]:
    """All that a replay hands out. Raises what it raised."""
    with listening(client.listen(event_type, start_from=start_from, mode="replay_only", **more)) as listener:
        error = listener.end()
        if error is not None:
            raise error
        return listener.heard
