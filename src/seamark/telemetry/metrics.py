"""The metric table, and cells cheap enough for hot paths. Prometheus text is made from the table on scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family

Kind = Literal["counter", "gauge", "histogram"]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SYNC_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)
STREAM_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0, 43200.0, 86400.0)
RECORDS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0, 10000.0)


class Metric(NamedTuple):
    """One row: what is counted and why an operator would look at it."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: tuple[Metric, ...] = (
    Metric("seamark_build_info", "gauge", "Always 1; the label names the running version.", ("version",)),
    Metric("seamark_uptime_seconds", "gauge", "Seconds since the server began to start."),
    # -- log
    Metric("seamark_log_streams", "gauge", "Streams that exist."),
    Metric("seamark_log_records_live", "gauge", "Records that can be read, over all streams."),
    Metric("seamark_log_bytes_live", "gauge", "Payload and meta bytes that can be read, over all streams."),
    Metric("seamark_log_appends_total", "counter", "Appends by outcome.", ("outcome",)),
    Metric("seamark_log_records_appended_total", "counter", "Records given a seq."),
    Metric("seamark_log_records_evicted_total", "counter", "Records lost to a bound, by reason.", ("loss",)),
    Metric("seamark_log_records_deleted_total", "counter", "Records removed on request or replaced by a newer one."),
    Metric("seamark_log_commits_total", "counter", "Group commits by outcome.", ("outcome",)),
    Metric("seamark_log_commit_seconds", "histogram", "Duration of a group commit with its sync.", (), SECONDS),
    Metric("seamark_log_commit_records", "histogram", "Records in one group commit.", (), RECORDS),
    Metric("seamark_log_sync_seconds", "histogram", "Duration of the sync alone: how fast the disk is.", (), SYNC_SECONDS),
    Metric("seamark_log_bytes_committed_total", "counter", "Bytes of keys and values given to the durable store."),
    Metric("seamark_log_queued_appends", "gauge", "Appends waiting for the next commit."),
    Metric("seamark_log_queued_appends_peak", "gauge", "The most appends that ever waited for one commit."),
    Metric("seamark_log_overfull_total", "counter", "Appends refused because too many bytes were waiting."),
    Metric("seamark_log_pending_bytes", "gauge", "Bytes accepted and not yet committed."),
    Metric("seamark_log_read_cache_bytes", "gauge", "Memory that records which several readers asked for are kept in."),
    Metric("seamark_log_writable", "gauge", "1 while the store takes writes, 0 after a failed commit."),
    # -- streams
    Metric("seamark_stream_sessions", "gauge", "Open streams by surface.", ("surface",)),
    Metric("seamark_stream_sessions_total", "counter", "Streams opened by surface.", ("surface",)),
    Metric("seamark_stream_closed_total", "counter", "Streams ended, by reason.", ("reason",)),
    Metric("seamark_stream_deliveries_total", "counter", "Records handed to readers, live or from history.", ("phase",)),
    Metric("seamark_stream_lagging", "gauge", "Readers outside the live set because their connection is slower."),
    Metric("seamark_stream_gaps_total", "counter", "Gaps told to readers, by reason.", ("loss",)),
    # -- topics
    Metric("seamark_topics_routers", "gauge", "Routers that exist."),
    Metric("seamark_topics_routers_waiting", "gauge", "Routers that cannot go on for now: dest full or gone, or no writes."),
    Metric("seamark_topics_forwarded_total", "counter", "Copies that routers made."),
    Metric("seamark_topics_forward_lost_total", "counter", "Source records lost before their router came to them, told in the dest."),
    # -- flags
    Metric("seamark_flags_tenants", "gauge", "Tenants that exist."),
    Metric("seamark_flags_namespaces", "gauge", "Flag namespaces that exist."),
    Metric("seamark_flags_tokens", "gauge", "Tokens that were ever made, revoked and expired ones among them."),
    Metric("seamark_flags_pushes_total", "counter", "Manifests pushed or rolled back, by outcome.", ("outcome",)),
    Metric("seamark_flags_evaluations_total", "counter", "Flags evaluated over HTTP."),
    Metric("seamark_flags_denied_total", "counter", "Requests without a valid token, or beyond what it permits.", ("code",)),
    Metric("seamark_flags_events_total", "counter", "Events on event streams, by what they are.", ("kind",)),
    Metric("seamark_flags_deltas_total", "counter", "Differences between closures worked out; streams that want the same share one."),
    Metric("seamark_flags_delta_files_total", "counter", "Files in those differences; enter and leave are churn of closures alone.", ("op",)),
    Metric("seamark_flags_archives_total", "counter", "Archives of closures made; whoever fetches the same shares one."),
    Metric("seamark_flags_resumed_total", "counter", "Namespaces that a client came back to, by how its version stood to ours.", ("version",)),
    # -- http
    Metric("seamark_http_connections", "gauge", "Open connections."),
    Metric("seamark_http_requests_total", "counter", "Requests by route pattern, method and status.", ("route", "method", "status")),
    Metric("seamark_http_request_seconds", "histogram", "Time from the last request byte to the answer.", ("route",), SECONDS),
    Metric("seamark_http_refused_total", "counter", "Connections or requests refused before a route saw them.", ("reason",)),
)  # fmt: skip


class Counter:
    """A number that only grows. Hot code writes `cell.value += 1`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Gauge(Counter):
    """A number that goes both ways."""

    __slots__ = ()


class Histogram:
    """Counts per bucket; the last bucket is +Inf."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


Cell = Counter | Histogram
C = TypeVar("C", Counter, Gauge, Histogram)


class Metrics:
    """All cells of one process. Asking for a name that is not in the table is a programming error."""

    def __init__(self, table: Sequence[Metric] = METRICS) -> None:
        self._rows = {row.name: row for row in table}
        self._cells: dict[str, dict[tuple[str, ...], Cell]] = {row.name: {} for row in table}
        self._refreshers: list[Callable[[], None]] = []
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def counter(self, name: str, *labels: str) -> Counter:
        return self._cell(name, "counter", labels, Counter)

    def gauge(self, name: str, *labels: str) -> Gauge:
        return self._cell(name, "gauge", labels, Gauge)

    def histogram(self, name: str, *labels: str) -> Histogram:
        bounds = self._rows[name].buckets
        return self._cell(name, "histogram", labels, lambda: Histogram(bounds))

    def cells(self, name: str) -> Mapping[tuple[str, ...], Cell]:
        """All cells of one row, by their labels."""
        return self._cells[name]

    def on_scrape(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before every scrape: for gauges that are cheaper to read than to keep."""
        self._refreshers.append(refresh)

    def watch_process(self) -> None:
        """Expose what the operating system counts of this process as well, where prometheus_client can ask it: `process_*`."""
        ProcessCollector(registry=self._registry)

    def refresh(self) -> None:
        """Bring the cells up to date that are not kept so."""
        for refresh in self._refreshers:
            refresh()

    def text(self) -> bytes:
        """The Prometheus exposition."""
        self.refresh()
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Family]:
        """Called by prometheus_client."""
        for name, row in self._rows.items():
            yield _family(row, self._cells[name])

    def _cell(self, name: str, kind: Kind, labels: tuple[str, ...], make: Callable[[], C]) -> C:
        row = self._rows[name]
        assert row.kind == kind, f"{name} is a {row.kind}"
        assert len(labels) == len(row.labels), f"{name} has the labels {row.labels}"
        cells = self._cells[name]
        cell = cells.get(labels)
        if cell is None:
            cell = cells[labels] = make()
        return cell  # type: ignore[return-value]


def _family(row: Metric, cells: dict[tuple[str, ...], Cell]) -> Family:
    if row.kind == "counter":
        family: Family = CounterMetricFamily(row.name.removesuffix("_total"), row.help, labels=row.labels)
    elif row.kind == "gauge":
        family = GaugeMetricFamily(row.name, row.help, labels=row.labels)
    else:
        family = HistogramMetricFamily(row.name, row.help, labels=row.labels)
    for labels, cell in list(cells.items()):
        if isinstance(cell, Histogram):
            family.add_metric(list(labels), _cumulative(cell), cell.sum)  # type: ignore[attr-defined]
        else:
            family.add_metric(list(labels), cell.value)  # type: ignore[attr-defined]
    return family


def _cumulative(cell: Histogram) -> list[tuple[str, float]]:
    total = 0
    rows = []
    for bound, count in zip([*map(str, cell.bounds), "+Inf"], cell.counts, strict=True):
        total += count
        rows.append((bound, float(total)))
    return rows
