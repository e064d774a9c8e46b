"""Watching notifications: thousands of watchers, half with a condition on a number and half with a polygon, none like another."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import shapely

from seamark.bench import match_scenario, notices, process, wire
from seamark.bench.bench import Bench
from seamark.bench.calls import WAITED_SHARE_QUIET
from seamark.bench.crowd import Crowd, Post, Stretch, post
from seamark.bench.row import Row, Value, against, aim
from seamark.bench.sample import median

SCENARIO = "watch notifications"
EACH = 5_000  # watchers of either kind
EACH_QUICK = 100
POSTS = 512
HITS = 27  # watchers that want a notification, about
CHECKED_EACH = 10
AREA_DEGREES = (1.0, 9.0)  # radius; together with those of the notifications some 13 of 5,000 touch
SPEED_AIM = 3_000
REFERENCE = "bare loop that writes as many bytes to as many watchers, without asking what they want"
_SHARE = HITS / 2 / EACH


class Plan(NamedTuple):
    """Whom to open and what to send, for one server."""

    watches: Sequence[bytes]
    posts: Sequence[Post]
    opening: int
    checked: Sequence[int]


class Measured(NamedTuple):
    """What one crowd came to. `milliseconds`: p50 and p99, of the events that were looked at."""

    hits: float
    stretches: list[Stretch]
    milliseconds: tuple[float, ...]
    broken: int


def run(bench: Bench) -> list[Row]:
    """One crowd after the other: a process may not have the open files that both would take."""
    each = EACH_QUICK if bench.quick else EACH
    plan = planned(each)
    with process.bare(bench) as bare:
        theirs = _measure(bench, bare, _bare_plan(plan))
    with process.seamark(bench, None, "--config", str(notices.file(bench))) as real:
        ours = _measure(bench, real, plan)
    return _rows(ours, theirs, each)


def _measure(bench: Bench, server: process.Process, plan: Plan) -> Measured:
    rounds, seconds = (1, 0.5) if bench.quick else (3, 3.0)
    crowd = Crowd(server, plan.watches, plan.posts, opening=plan.opening, checked=plan.checked)
    try:
        stretches = [crowd.run(seconds) for _ in range(rounds)]
        return Measured(crowd.hits, stretches, crowd.latency().milliseconds(0.5, 0.99), crowd.broken())
    finally:
        crowd.close()


def planned(each: int) -> Plan:
    """What to ask of the real server. Who wants what is worked out here, by another way than the server's."""
    rng = random.Random(each)
    width = round(notices.STEPS * _SHARE)
    lows = rng.sample(range(notices.STEPS - width), each)
    areas = [match_scenario.ring(rng, AREA_DEGREES) for _ in range(each)]
    wishes: list[dict[str, Any]] = [{"step": {"between": [low, low + width]}} for low in lows]
    wishes += [{"polygon": area} for area in areas]
    watches = [
        wire.request("POST", "/api/v1/watch", msgspec.json.encode({"event_type": notices.PLACES, "identifier": wish}))
        for wish in wishes
    ]
    sent = notices.identifiers(notices.PLACES, rng)
    identifiers = [next(sent) for _ in range(POSTS)]
    tree = shapely.STRtree([_shape(area) for area in areas])
    starts = np.array(lows)
    posts = []
    for identifier in identifiers:
        step = identifier["step"]
        numbers = np.flatnonzero((starts <= step) & (step <= starts + width)).tolist()
        touching = tree.query(_shape(identifier["polygon"]), predicate="intersects").tolist()
        wanted = frozenset([*numbers, *(each + place for place in touching)])
        posts.append(post(notices.PUBLISH, notices.body(notices.PLACES, identifier), wanted))
    checked = [kind * each + number for kind, number in product((0, 1), range(0, each, each // CHECKED_EACH))]
    return Plan(watches, posts, 2, checked)


def _bare_plan(plan: Plan) -> Plan:
    """As many watchers; each of the bare loop's events goes to the next so many of them. Its events are as long as ours."""
    hits = max(1, round(sum(len(each.wanted_by) for each in plan.posts) / len(plan.posts)))
    target = f"/rota/{hits}"
    payload = msgspec.json.encode(msgspec.json.decode(wire.payload()), order="sorted")
    event = b'{"data":{"identifier":"%b","payload":%b},"id":"%b","sequence":1,"type":"x"}'
    body = b'{"records":[{"data":%b}]}' % (event % (b"x" * 240, payload, b"x" * 220))
    watches = [wire.request("GET", target + "/watch")] * len(plan.watches)
    return Plan(watches, [post(target, body, frozenset(range(hits)))], 1, plan.checked)


def _shape(text: str) -> Any:
    numbers = [float(word) for word in text.split(",")]
    return shapely.Polygon(list(zip(numbers[0::2], numbers[1::2], strict=True)))


def _rows(ours: Measured, theirs: Measured, each: int) -> list[Row]:
    cell: dict[str, Value] = {"numbers": each, "polygons": each, "hits": round(ours.hits, 1)}
    figures = (
        ("notifications/s", _median(ours, _per_second), _median(theirs, _per_second)),
        ("notifications per server CPU-second", _median(ours, _per_cpu), _median(theirs, _per_cpu)),
        ("p50 ms", ours.milliseconds[0], theirs.milliseconds[0]),
        ("p99 ms", ours.milliseconds[1], theirs.milliseconds[1]),
    )
    rows = [
        against(Row(scenario=SCENARIO, parameters=cell, value=value, unit=unit), REFERENCE, reference)
        for unit, value, reference in figures
    ]
    lost, speed = sum(stretch.lost for stretch in ours.stretches), rows[0]
    assert speed.value is not None
    aim(speed, f">= {SPEED_AIM:,}", speed.value >= SPEED_AIM and not ours.broken and not lost)
    speed.notes = (
        f"lost {lost}; watchers that look at every event found {ours.broken} missing, needless, repeated or out of order;"
        f" client core {_median(ours, _client_share):.0%} busy"
    )
    waited = _median(ours, _waited_share)
    if waited > WAITED_SHARE_QUIET:
        speed.notes += f"; disturbed: the server waited {waited:.0%} of the time for its core"
    return rows


def _median(measured: Measured, figure: Callable[[Stretch], float | None]) -> float:
    return median([found for stretch in measured.stretches if (found := figure(stretch)) is not None])


_per_second = attrgetter("per_second")
_per_cpu = attrgetter("per_server_cpu")
_client_share = attrgetter("client_share")
_waited_share = attrgetter("waited_share")
