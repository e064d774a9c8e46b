"""What the metrics route says, as Prometheus series and as JSON. Both are made afresh for each scrape, from a census of the
topics and from what the server counts anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from seamark.log.settings import Durability
from seamark.telemetry.metrics import SYNC_SECONDS, Metric, Metrics
from seamark.topics.census import Census

CLASSES = (Durability.EPHEMERAL, Durability.MEMORY, Durability.DISK, Durability.FSYNC)
SYNC_MICROS = tuple(round(bound * 1_000_000) for bound in SYNC_SECONDS)

SERIES: tuple[Metric, ...] = (
    Metric("topics_topics", "gauge", "Topics that exist."),
    Metric("topics_topics_by_class", "gauge", "Topics by durability class.", ("class",)),
    Metric("topics_routers", "gauge", "Routers that exist."),
    Metric("topics_records_live", "gauge", "Records that can be read, over all topics."),
    Metric("topics_bytes_live", "gauge", "Data and meta bytes that can be read, over all topics."),
    Metric("topics_queue_topics", "gauge", "Topics that are queues."),
    Metric("topics_queue_leases_in_flight", "gauge", "Jobs that somebody holds, over all queues."),
    Metric("topics_sse_connections", "gauge", "Open streams."),
    Metric("topics_watch_sessions", "gauge", "Watch sessions, with an open stream or without."),
    Metric("topics_ready", "gauge", "1 when requests are welcome."),
    Metric("topics_recovery_progress", "gauge", "From 0 to 1: how much of what was stored is known again."),
    Metric("topics_uptime_ms", "gauge", "Milliseconds since the server began to start."),
    Metric("topics_topic_head_seq", "gauge", "The last seq given out.", ("topic",)),
    Metric("topics_topic_earliest_seq", "gauge", "The first seq that can be read.", ("topic",)),
    Metric("topics_topic_records_live", "gauge", "Records that can be read.", ("topic",)),
    Metric("topics_topic_bytes_live", "gauge", "Data and meta bytes that can be read.", ("topic",)),
    Metric("topics_topic_queue_ready", "gauge", "Jobs that can be claimed.", ("topic",)),
    Metric("topics_topic_queue_in_flight", "gauge", "Jobs that somebody holds.", ("topic",)),
    Metric("topics_topic_metrics_truncated", "gauge", "1 when there are more topics than get series of their own."),
    Metric("topics_wal_frames_total", "counter", "Appends that were written."),
    Metric("topics_wal_batches_total", "counter", "Group commits."),
    Metric("topics_wal_fsyncs_total", "counter", "Syncs of the durable store."),
    Metric("topics_wal_bytes_written_total", "counter", "Bytes given to the durable store."),
    Metric("topics_wal_rotations_total", "counter", "Always 0: the store has one file."),
    Metric("topics_wal_submit_full_total", "counter", "Appends refused because too much was waiting."),
    Metric("topics_wal_queue_depth", "gauge", "Appends waiting for the next commit."),
    Metric("topics_wal_queue_depth_peak", "gauge", "The most appends that ever waited for one commit."),
    Metric("topics_wal_read_only", "gauge", "1 while the store refuses writes."),
    Metric("topics_wal_fsync_latency_us", "histogram", "Microseconds of one sync.", (), SYNC_MICROS),
)  # fmt: skip


class Status(NamedTuple):
    """What is known without asking the log."""

    routers: int
    leases: int
    connections: int
    sessions: int
    ready: bool
    progress: float
    uptime_ms: int


def totals(census: Census, status: Status) -> dict[str, float]:
    """Numbers of the whole surface, by the name that both forms share."""
    return {
        "topics": census.topics,
        "routers": status.routers,
        "records_live": census.records,
        "bytes_live": census.bytes,
        "queue_topics": census.queues,
        "queue_leases_in_flight": status.leases,
        "sse_connections": status.connections,
        "watch_sessions": status.sessions,
    }


def wal(metrics: Metrics) -> dict[str, float]:
    """What the log counts, in the words of a server that has a write-ahead log."""
    metrics.refresh()
    return {
        "fsyncs": sum(metrics.histogram("seamark_log_sync_seconds").counts),
        "frames": metrics.counter("seamark_log_appends_total", "accepted").value,
        "batches": metrics.counter("seamark_log_commits_total", "committed").value,
        "bytes_written": metrics.counter("seamark_log_bytes_committed_total").value,
        "rotations": 0,
        "queue_depth": metrics.gauge("seamark_log_queued_appends").value,
        "queue_depth_peak": metrics.gauge("seamark_log_queued_appends_peak").value,
        "submit_full_total": metrics.counter("seamark_log_overfull_total").value,
    }


def read_only(metrics: Metrics) -> bool:
    return not metrics.gauge("seamark_log_writable").value


def as_json(census: Census, status: Status, metrics: Metrics) -> dict[str, object]:
    """The facts of the JSON form."""
    syncs, log = metrics.histogram("seamark_log_sync_seconds"), wal(metrics)
    return {
        "topics": census.topics,
        **{f"topics_{kind.value}": census.by_class[kind] for kind in CLASSES},
        **totals(census, status),
        "ready": status.ready,
        "replay_progress": status.progress,
        "uptime_ms": status.uptime_ms,
        "wal": {
            **log,
            "read_only": read_only(metrics),
            "fsync_count": log["fsyncs"],
            "fsync_micros_total": round(syncs.sum * 1_000_000),
        },
    }


def as_text(census: Census, status: Status, metrics: Metrics) -> bytes:
    """The Prometheus exposition."""
    made = Metrics(SERIES)
    for name, value in totals(census, status).items():
        made.gauge(f"topics_{name}").value = value
    for kind in CLASSES:
        made.gauge("topics_topics_by_class", kind.value).value = census.by_class[kind]
    made.gauge("topics_ready").value = status.ready
    made.gauge("topics_recovery_progress").value = status.progress
    made.gauge("topics_uptime_ms").value = status.uptime_ms
    made.gauge("topics_topic_metrics_truncated").value = census.truncated
    _topics(census, made)
    _log(wal(metrics), made)
    made.gauge("topics_wal_read_only").value = read_only(metrics)
    syncs, latency = metrics.histogram("seamark_log_sync_seconds"), made.histogram("topics_wal_fsync_latency_us")
    latency.counts, latency.sum = list(syncs.counts), syncs.sum * 1_000_000
    return made.text()


def _topics(census: Census, made: Metrics) -> None:
    for name, state, jobs in census.shown:
        made.gauge("topics_topic_head_seq", name).value = state.marks.head
        made.gauge("topics_topic_earliest_seq", name).value = state.marks.earliest
        made.gauge("topics_topic_records_live", name).value = state.count
        made.gauge("topics_topic_bytes_live", name).value = state.bytes
        if jobs is not None:
            made.gauge("topics_topic_queue_ready", name).value = jobs.ready
            made.gauge("topics_topic_queue_in_flight", name).value = jobs.in_flight


def _log(log: Mapping[str, float], made: Metrics) -> None:
    for name in ("frames", "batches", "fsyncs", "bytes_written", "rotations"):
        made.counter(f"topics_wal_{name}_total").value = log[name]
    made.counter("topics_wal_submit_full_total").value = log["submit_full_total"]
    for name in ("queue_depth", "queue_depth_peak"):
        made.gauge(f"topics_wal_{name}").value = log[name]
