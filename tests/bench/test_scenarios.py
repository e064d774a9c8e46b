"""Every scenario end to end at its quick size, against the real server: figures may be anything, results may not."""

from __future__ import annotations

import math

import pytest

from seamark.bench import (
    append_http,
    append_local,
    fanout,
    flags_evaluate,
    flags_start,
    flags_watch,
    idle,
    notify_replay,
    notify_validate,
    notify_watch,
    notify_write,
    read_http,
    read_local,
    recovery,
    resume,
    selective,
    stalled,
    topics_diff,
    topics_idle,
    topics_watch,
    topics_write,
)
from seamark.bench.bench import Bench
from seamark.bench.row import Row

pytestmark = [pytest.mark.bench, pytest.mark.slow]


def sound(rows: list[Row]) -> None:
    """Each figure is a positive number beside a positive reference."""
    assert rows
    for row in rows:
        assert row.value is not None, row
        assert math.isfinite(row.value)
        assert row.reference_name
        assert row.reference is not None


def test_append_in_process(bench: Bench) -> None:
    rows = append_local.run(bench)
    sound(rows)
    assert {row.parameters["class"] for row in rows} == {"fsync", "disk"}


def test_append_over_http(bench: Bench) -> None:
    rows = append_http.run(bench)
    sound(rows)
    assert {row.unit for row in rows} == {"records/s", "records per server CPU-second", "p50 ms", "p99 ms"}


def test_read_in_process(bench: Bench) -> None:
    sound(read_local.run(bench))


def test_read_over_http(bench: Bench) -> None:
    sound(read_http.run(bench))


def test_fan_out(bench: Bench) -> None:
    rows = fanout.run(bench)
    sound(rows)
    assert {row.parameters["mode"] for row in rows} == set(fanout.MODES)
    assert all("lost 0, out of order 0" in row.notes for row in rows if row.notes)


def test_resume(bench: Bench) -> None:
    rows = resume.run(bench)
    sound(rows)
    assert "found 0 missing" in rows[0].notes


def test_writing_to_topics(bench: Bench) -> None:
    rows = topics_write.run(bench)
    sound(rows)
    assert [row.parameters["batch"] for row in rows if row.target] == [1, 100] * 2


def test_diff_of_topics(bench: Bench) -> None:
    rows = topics_diff.run(bench)
    sound(rows)
    assert [row.unit for row in rows if row.target] == ["calls/s"]
    assert {row.parameters["pages"] for row in rows} == {"the same", "all in turn"}


def test_watching_topics(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_watch, "COUNTS", topics_watch.COUNTS_QUICK)
    rows = topics_watch.run(bench)
    sound(rows)
    assert all("lost 0, out of order 0" in row.notes for row in rows if row.notes)
    assert {(row.unit, row.parameters["watchers"]) for row in rows if row.target} == {("p50 ms", 1), ("p99 ms", 50)}


def test_idle_watchers_of_topics(bench: Bench) -> None:
    (row,) = topics_idle.run(bench)
    assert row.value is not None
    assert row.target is not None


def test_checking_notifications(bench: Bench) -> None:
    rows = notify_validate.run(bench)
    sound(rows)
    assert all(row.target and row.ratio is not None and row.ratio > 1 for row in rows)


def test_publishing_notifications(bench: Bench) -> None:
    rows = notify_write.run(bench)
    sound(rows)
    assert [row.unit for row in rows if row.target] == ["notifications/s"] * 2


def test_watching_notifications(bench: Bench) -> None:
    rows = notify_watch.run(bench)
    sound(rows)
    assert [row.unit for row in rows if row.target] == ["notifications/s"]
    assert rows[0].notes.startswith("lost 0; watchers that look at every event found 0 missing")


def test_replaying_notifications(bench: Bench) -> None:
    rows = notify_replay.run(bench)
    sound(rows)
    assert [row.unit for row in rows if row.target] == ["notifications/s"] + ["ms to the end"] * 3


def test_evaluating_flags(bench: Bench) -> None:
    rows = flags_evaluate.run(bench)
    sound(rows)
    figures = [row.parameters["figure"] for row in rows]
    assert figures == [*flags_evaluate.CHAINS, "lint, cold", "lint, one file changed"]
    assert [row.unit for row in rows if row.target] == ["evaluations/s"]


def test_watching_flags(bench: Bench) -> None:
    rows = flags_watch.run(bench)
    sound(rows)
    assert rows[0].notes.startswith("lost 0")
    assert [row.unit for row in rows if row.met] == ["bytes on the wire"]


def test_starting_a_client_of_flags(bench: Bench) -> None:
    rows = flags_start.run(bench)
    sound(rows)
    assert [row.parameters["from"] for row in rows if row.unit == "ms to first answer"] == ["server", "disk cache"]
    assert [row.target is not None for row in rows] == [True, False, False, False]


def test_selective_replay(bench: Bench) -> None:
    rows = selective.run(bench)
    sound(rows)
    assert all(row.ratio is not None and row.ratio < 1 for row in rows)


def test_idle_watchers(bench: Bench) -> None:
    (row,) = idle.run(bench)
    assert row.value is not None


def test_stalled_readers(bench: Bench) -> None:
    rows = stalled.run(bench)
    assert all(row.value is not None for row in rows)
    assert rows[2].notes.endswith(": 0")


def test_recovery(bench: Bench) -> None:
    sound(recovery.run(bench))
