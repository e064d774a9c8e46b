"""The metric table and its cells: what is counted is what a scraper reads."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from seamark.telemetry.metrics import METRICS, Histogram, Metric, Metrics

TABLE = (
    Metric("seamark_a_total", "counter", "A.", ("outcome",)),
    Metric("seamark_b", "gauge", "B."),
    Metric("seamark_c_seconds", "histogram", "C.", (), (0.1, 1.0)),
)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What a scraper sees: (name, labels) to value."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_rows_are_named_as_prometheus_wants_them() -> None:
    names = [row.name for row in METRICS]
    assert len(names) == len(set(names))
    for row in METRICS:
        assert re.fullmatch(r"seamark_[a-z0-9_]+", row.name)
        assert row.name.endswith("_total") == (row.kind == "counter")
        assert bool(row.buckets) == (row.kind == "histogram")
        assert list(row.buckets) == sorted(row.buckets)
        assert row.help.endswith(".")


def test_cells_are_shared_by_name_and_labels_and_scraped() -> None:
    metrics = Metrics(TABLE)
    metrics.counter("seamark_a_total", "ok").value += 2
    metrics.counter("seamark_a_total", "ok").value += 1
    metrics.counter("seamark_a_total", "no").value += 5
    metrics.gauge("seamark_b").value = -4
    seen = samples(metrics)
    assert seen["seamark_a_total", (("outcome", "ok"),)] == 3
    assert seen["seamark_a_total", (("outcome", "no"),)] == 5
    assert seen["seamark_b", ()] == -4


@given(st.lists(st.floats(0, 100)))
def test_a_histogram_counts_every_value_once_in_rising_buckets(values: list[float]) -> None:
    metrics = Metrics(TABLE)
    for value in values:
        metrics.histogram("seamark_c_seconds").observe(value)
    metrics.histogram("seamark_c_seconds")
    seen = samples(metrics)
    for bound in (0.1, 1.0):
        count = seen["seamark_c_seconds_bucket", (("le", str(bound)),)]
        assert count == sum(value <= bound for value in values)
    assert seen["seamark_c_seconds_bucket", (("le", "+Inf"),)] == len(values)
    assert seen["seamark_c_seconds_count", ()] == len(values)
    assert seen["seamark_c_seconds_sum", ()] == pytest.approx(sum(values))


def test_a_name_outside_the_table_or_a_wrong_use_is_a_programming_error() -> None:
    metrics = Metrics(TABLE)
    with pytest.raises(KeyError):
        metrics.counter("seamark_other_total")
    with pytest.raises(AssertionError):
        metrics.gauge("seamark_a_total", "ok")
    with pytest.raises(AssertionError):
        metrics.counter("seamark_a_total")


def test_gauges_can_be_read_at_the_last_moment() -> None:
    metrics = Metrics(TABLE)
    gauge = metrics.gauge("seamark_b")
    readings = iter((7, 8))

    def refresh() -> None:
        gauge.value = next(readings)

    metrics.on_scrape(refresh)
    assert samples(metrics)["seamark_b", ()] == 7
    assert samples(metrics)["seamark_b", ()] == 8


def test_the_edge_of_a_bucket_belongs_to_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 2.0, 2.1):
        histogram.observe(value)
    assert histogram.counts == [1, 1, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="prometheus_client asks /proc")
def test_the_process_can_be_watched() -> None:
    metrics = Metrics(TABLE)
    assert b"process_" not in metrics.text()
    metrics.watch_process()
    assert samples(metrics)["process_resident_memory_bytes", ()] > 0
    assert samples(metrics)["process_open_fds", ()] > 0
