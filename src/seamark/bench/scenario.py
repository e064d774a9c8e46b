"""The scenarios by name, and the process that runs one of them: `python -m seamark.bench.scenario NAME ...`."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from seamark.bench import machine
from seamark.bench.bench import Bench
from seamark.bench.row import Row
from seamark.telemetry import logs

OPEN_FILES = 65_536


class Scenario(NamedTuple):
    """One row of the list: the module with `run(bench) -> rows`, and how long it may take at most."""

    name: str
    module: str
    about: str
    seconds_max: int


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("append", "append_local", "appends inside the process, beside raw LMDB", 300),
    Scenario("append-http", "append_http", "appends over HTTP, beside a bare loop", 300),
    Scenario("read", "read_local", "pages read inside the process, beside raw LMDB", 120),
    Scenario("read-http", "read_http", "pages read over HTTP, beside a bare loop", 120),
    Scenario("topics-write", "topics_write", "records written to topics over HTTP, beside a bare loop", 180),
    Scenario("topics-diff", "topics_diff", "256 records of a topic at a time, over HTTP, beside a bare loop", 120),
    Scenario("topics-watch", "topics_watch", "one write at a time to 1 and 1,000 watchers, beside a bare loop", 300),
    Scenario("topics-idle", "topics_idle", "memory of watchers of 256 topics, beside a bare loop", 180),
    Scenario("notify-validate", "notify_validate", "notifications checked, beside only decoding them", 60),
    Scenario("notify-write", "notify_write", "notifications published over HTTP, beside a bare loop", 120),
    Scenario("notify-watch", "notify_watch", "10,000 watchers, none like another, beside a bare loop", 240),
    Scenario("notify-replay", "notify_replay", "a million notifications replayed, all and one in ten thousand", 300),
    Scenario("flags-evaluate", "flags_evaluate", "flags evaluated and manifests linted, beside Python by hand", 180),
    Scenario("flags-watch", "flags_watch", "a commit to 10,000 clients of flags, beside a bare loop", 400),
    Scenario("flags-start", "flags_start", "a client of 1,000 flags from nothing to its first answer", 120),
    Scenario("selective", "selective", "one record in ten thousand out of a million, beside reading them all", 300),
    Scenario("fan-out", "fanout", "one stream to 100, 1,000 and 5,000 watchers, beside a bare loop", 600),
    Scenario("filters", "filters", "records matched against up to 100,000 filters, beside asking each", 300),
    Scenario("resume", "resume", "a backlog of a million records to one reader, beside a bare loop", 300),
    Scenario("idle", "idle", "memory of 10,000 watchers that wait, beside a bare loop", 180),
    Scenario("stalled", "stalled", "1,000 readers that stop reading, beside the same without", 300),
    Scenario("recovery", "recovery", "ready again after kill -9 on ten million records", 600),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(BY_NAME))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--where", type=Path, required=True, help="an empty directory on the disk to measure")
    parser.add_argument("--out", type=Path, required=True, help="where the rows go, as JSON")
    given = parser.parse_args()
    logs.configure(level="warning", style="json")
    machine.open_files(OPEN_FILES)
    bench = Bench(quick=given.quick, where=given.where, cores=machine.cores())
    machine.pin(os.getpid(), machine.CLIENT_CORE, bench.cores)
    module = importlib.import_module(f"seamark.bench.{BY_NAME[given.name].module}")
    rows = cast("Callable[[Bench], list[Row]]", module.run)(bench)
    given.out.write_bytes(msgspec.json.encode(rows))


if __name__ == "__main__":
    main()
