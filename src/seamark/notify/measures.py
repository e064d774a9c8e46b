"""What the surface counts, under the names of the contract. What HTTP counts anyway is copied for each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from seamark.access.keys import ANYONE, NOBODY
from seamark.access.principal import Principal
from seamark.notify.eventtype import EventType
from seamark.telemetry.metrics import Counter, Histogram, Metric, Metrics

HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STREAM_SECONDS = (
    1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 43200.0, 86400.0,
)  # fmt: skip
WATCH, REPLAY = "/api/v1/watch", "/api/v1/replay"
OPERATIONS = ("publish", "get_batch", "wipe_stream", "wipe_all", "delete_message")
GENERIC, UNKNOWN = "generic", "unknown"
_UNROUTED = "(none)"

SERIES: tuple[Metric, ...] = (
    Metric("aviso_build_info", "gauge", "Always 1; the label names the running version.", ("version",)),
    Metric("aviso_http_requests_total", "counter", "Requests of this surface by route, method and status.", ("route", "method", "status_code")),
    Metric("aviso_http_request_duration_seconds", "histogram", "Time from the last request byte to the answer.", ("route", "method"), HTTP_SECONDS),
    Metric("aviso_http_requests_in_flight", "gauge", "Requests that are not answered yet; open streams are.", ("method",)),
    Metric("aviso_backend_operations_total", "counter", "What was asked of the log.", ("backend", "operation", "outcome")),
    Metric("aviso_backend_operation_duration_seconds", "histogram", "How long it took; batches of history are only counted.", ("backend", "operation", "outcome"), HTTP_SECONDS),
    Metric("aviso_notifications_total", "counter", "Notifications by what became of them.", ("event_type", "status")),
    Metric("aviso_sse_connections_active", "gauge", "Open streams.", ("route", "event_type")),
    Metric("aviso_sse_connections_total", "counter", "Streams opened.", ("route", "event_type")),
    Metric("aviso_sse_unique_users_active", "gauge", "Callers with a name that have open streams.", ("route",)),
    Metric("aviso_sse_events_sent_total", "counter", "Notifications handed to readers.", ("route", "event_type")),
    Metric("aviso_sse_stream_errors_total", "counter", "Streams that could not be served to their end.", ("route", "event_type")),
    Metric("aviso_sse_connection_duration_seconds", "histogram", "How long streams were open.", ("route",), STREAM_SECONDS),
    Metric("aviso_auth_requests_total", "counter", "Callers by what became of their credentials.", ("mode", "outcome")),
    Metric("aviso_ecpds_cache_hits_total", "counter", "Callers whose destinations were known."),
    Metric("aviso_ecpds_cache_misses_total", "counter", "Callers for whom ECPDS had to be asked."),
    Metric("aviso_ecpds_cache_size", "gauge", "Callers whose destinations are known."),
    Metric("aviso_ecpds_access_decisions_total", "counter", "What became of requests for a destination.", ("outcome",)),
    Metric("aviso_ecpds_fetch_total", "counter", "What became of questions to one ECPDS server.", ("outcome",)),
)  # fmt: skip


class Reading(NamedTuple):
    """Streams of one route and event type."""

    route: str
    active: Counter
    opened: Counter
    sent: Counter
    failed: Counter
    seconds: Histogram


class Kind(NamedTuple):
    """Everything that is counted for one event type, found once."""

    success: Counter
    error: Counter
    rejected: Counter
    watch: Reading
    replay: Reading


class Measures:
    """Cells. Only event types of the schema have labels of their own: clients must not make series."""

    def __init__(self, metrics: Metrics, event_types: Iterable[EventType], *, backend: str, version: str) -> None:
        self._metrics = metrics
        self._backend = backend
        self._kinds = {event.name: self._kind(event.name) for event in event_types}
        self._generic = self._kind(GENERIC)
        self.unknown = self._kind(UNKNOWN)
        self.posts, self.deletes, _ = (
            metrics.gauge("aviso_http_requests_in_flight", method) for method in ("POST", "DELETE", "GET")
        )
        self._users: dict[tuple[str, str], int] = {}
        self._operations: dict[tuple[str, bool], tuple[Counter, Histogram]] = {}
        metrics.gauge("aviso_build_info", version).value = 1
        for operation in OPERATIONS:
            for outcome in ("ok", "error"):
                metrics.counter("aviso_backend_operations_total", backend, operation, outcome)

    def of(self, event: EventType | None) -> Kind:
        return self._generic if event is None else self._kinds[event.name]

    def operation(self, name: str, seconds: float, *, ok: bool) -> None:
        """One more thing asked of the log."""
        try:
            count, durations = self._operations[name, ok]
        except KeyError:
            count, durations = self._operations[name, ok] = self._operation(name, "ok" if ok else "error")
        count.value += 1
        durations.observe(seconds)

    def batches(self) -> Counter:
        """Batches of history that were read."""
        return self._metrics.counter("aviso_backend_operations_total", self._backend, "get_batch", "ok")

    def opened(self, reading: Reading, caller: Principal) -> None:
        reading.active.value += 1
        reading.opened.value += 1
        self._count_user(reading.route, caller, 1)

    def closed(self, reading: Reading, caller: Principal, seconds: float) -> None:
        reading.active.value -= 1
        reading.seconds.observe(seconds)
        self._count_user(reading.route, caller, -1)

    def _count_user(self, route: str, caller: Principal, change: int) -> None:
        if caller is ANYONE or caller is NOBODY:
            return
        key = (route, caller.name)
        count = self._users.get(key, 0) + change
        if count:
            self._users[key] = count
        else:
            del self._users[key]
        users = self._metrics.gauge("aviso_sse_unique_users_active", route)
        users.value = sum(1 for known, _ in self._users if known == route)

    def _operation(self, name: str, outcome: str) -> tuple[Counter, Histogram]:
        labels = (self._backend, name, outcome)
        return (
            self._metrics.counter("aviso_backend_operations_total", *labels),
            self._metrics.histogram("aviso_backend_operation_duration_seconds", *labels),
        )

    def _kind(self, label: str) -> Kind:
        def count(status: str) -> Counter:
            return self._metrics.counter("aviso_notifications_total", label, status)

        return Kind(
            success=count("success"),
            error=count("error"),
            rejected=count("rejected"),
            watch=self._reading(WATCH, label),
            replay=self._reading(REPLAY, label),
        )

    def _reading(self, route: str, label: str) -> Reading:
        metrics = self._metrics
        metrics.gauge("aviso_sse_unique_users_active", route)
        return Reading(
            route,
            active=metrics.gauge("aviso_sse_connections_active", route, label),
            opened=metrics.counter("aviso_sse_connections_total", route, label),
            sent=metrics.counter("aviso_sse_events_sent_total", route, label),
            failed=metrics.counter("aviso_sse_stream_errors_total", route, label),
            seconds=metrics.histogram("aviso_sse_connection_duration_seconds", route),
        )


def mirror_http(metrics: Metrics, routes: Mapping[str, str]) -> None:
    """Copy what HTTP counted for these routes (each with its one method), and for paths that are no route."""
    for (route, method, status), cell in metrics.cells("seamark_http_requests_total").items():
        shown = "unmatched" if route == _UNROUTED else route
        if (route in routes or route == _UNROUTED) and isinstance(cell, Counter):
            metrics.counter("aviso_http_requests_total", shown, method, status).value = cell.value
    for (route,), cell in metrics.cells("seamark_http_request_seconds").items():
        if route in routes and isinstance(cell, Histogram):
            _coarsen(cell, metrics.histogram("aviso_http_request_duration_seconds", route, routes[route]))


def _coarsen(fine: Histogram, coarse: Histogram) -> None:
    """The same observations in fewer buckets, whose bounds are among those of the finer ones."""
    counts = [0] * len(coarse.counts)
    for bound, count in zip((*fine.bounds, float("inf")), fine.counts, strict=True):
        at = next((at for at, upper in enumerate(coarse.bounds) if bound <= upper), len(coarse.bounds))
        counts[at] += count
    coarse.counts, coarse.sum = counts, fine.sum
