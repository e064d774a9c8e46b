"""What a watch session costs that waits for news on 256 topics: the server's memory before and after many of them came."""

from __future__ import annotations

from functools import partial

from seamark.bench import idle, process
from seamark.bench.audience import Audience, TopicAudience
from seamark.bench.bench import Bench
from seamark.bench.row import Row, Value, against, aim
from seamark.limits import KIB, LEGS_PER_SESSION_MAX

WATCHERS = 500
WATCHERS_QUICK = 10
TOPICS = LEGS_PER_SESSION_MAX
TOPICS_QUICK = 16
BYTES_AIM = 64 * KIB


def run(bench: Bench) -> list[Row]:
    """The topics themselves are made before, by watchers that have left."""
    watchers, topics = (WATCHERS_QUICK, TOPICS_QUICK) if bench.quick else (WATCHERS, TOPICS)
    with process.seamark(bench) as server:
        ours = idle.each(server, watchers, partial(TopicAudience, topics=topics, base="idle"))
    with process.bare(bench) as server:
        theirs = idle.each(server, watchers, Audience)
    cell: dict[str, Value] = {"watchers": watchers, "topics each": topics}
    row = Row(scenario="idle watchers of topics", parameters=cell, value=ours, unit="bytes per watcher")
    if ours is not None:
        aim(row, f"<= {BYTES_AIM:,}", ours <= BYTES_AIM)
    return [against(row, idle.REFERENCE, theirs)]
