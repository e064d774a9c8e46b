"""Matching: records a second against live filters, and what a watcher costs who comes or goes meanwhile.

The mix is that of a busy notification server: every filter insists on one of 100 classes; half of them also on a number
interval, half on a polygon. Every record carries a number and a polygon of its own, checked before it is matched as it
is when it is published. There are two mixes: areas of the size of a country or a sea, and areas of the size of a
continent, most of which overlap. The reference is the loop that asks each filter in turn, run on the same filters.
"""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from time import process_time

from seamark.log.record import Record
from seamark.match.constraint import Constraint, Kind, Op
from seamark.match.filter import Filter
from seamark.match.index import FilterIndex
from seamark.match.spatial import geometry_of, parse_polygon

CLASSES = 100
NUMBERS = 10_000
LOWS = 4_500
INTERVAL_WIDTHS = (4_500, 6_500)
VERTICES = (4, 9)
MIXES = {"regional": (1.0, 8.0), "continental": (5.0, 25.0)}  # radius of a filter's area in degrees
RECORD_DEGREES = (0.5, 4.0)
NAIVE_SHARE = 0.25  # of the time for one figure


def run(counts: Sequence[int] = (1_000, 10_000, 100_000), seconds: float = 2.0) -> list[dict[str, object]]:
    """`seconds` is the time spent on each figure. Rows: name, filters, value, unit, reference, ratio."""
    rows: list[dict[str, object]] = []
    for count, (mix, degrees) in product(counts, MIXES.items()):
        rng = random.Random(count)
        filters = [_filter(rng, degrees) for _ in range(count)]
        index: FilterIndex[int] = FilterIndex()
        begun = process_time()
        for token, wanted in enumerate(filters):
            index.add(wanted, token)
        build = (process_time() - begun) / count * 1e6
        rate, hits = _match_rate(index, rng, seconds)
        naive = _naive_rate(filters, rng, seconds * NAIVE_SHARE)
        change, change_alone = _change_cost(index, filters, rng, degrees, seconds)
        rows += [
            _row(f"match, {mix}", count, rate, "records/s", naive),
            _row(f"match hits, {mix}", count, hits, "filters/record"),
            _row(f"build, {mix}", count, build, "us/filter"),
            _row(f"add or remove, each followed by a match, {mix}", count, change, "us/change"),
            _row(f"add or remove, nothing matched between, {mix}", count, change_alone, "us/change"),
        ]
        del index, filters
        gc.collect()
    return rows


def _row(name: str, filters: int, value: float, unit: str, reference: float | None = None) -> dict[str, object]:
    ratio = None if reference is None else value / reference
    return {"name": name, "filters": filters, "value": value, "unit": unit, "reference": reference, "ratio": ratio}


def _match_rate(index: FilterIndex[int], rng: random.Random, seconds: float) -> tuple[float, float]:
    """Records a second and hits a record. Only matching is timed; the records are made between."""
    match = index.match
    for record in _records(rng, 256):  # builds trees, fills caches of the machine
        match(record)
    spent, records, hits = 0.0, 0, 0
    while spent < seconds:
        batch = list(_records(rng, 1_000))
        begun = process_time()
        for record in batch:
            hits += len(match(record))
        spent += process_time() - begun
        records += len(batch)
    return records / spent, hits / records


def _naive_rate(filters: Sequence[Filter], rng: random.Random, seconds: float) -> float:
    tests: list[Callable[[Record], bool]] = [wanted.compile() for wanted in filters]
    spent, records = 0.0, 0
    while spent < seconds:
        (record,) = _records(rng, 1)
        begun = process_time()
        for test in tests:
            test(record)
        spent += process_time() - begun
        records += 1
    return records / spent


def _change_cost(
    index: FilterIndex[int], filters: list[Filter], rng: random.Random, degrees: tuple[float, float], seconds: float
) -> tuple[float, float]:
    """Microseconds for one add or remove: with a match after each change, the worst case for anything lazy (the time
    of the same matches without changes is taken off), and alone."""
    size = min(len(filters), 2_000)
    matching, mixed, alone, changes = 0.0, 0.0, 0.0, 0
    while matching + mixed + alone < seconds:
        records = list(_records(rng, 2 * size))
        places = [rng.randrange(len(filters)) for _ in range(size)]
        fresh = [_filter(rng, degrees) for _ in range(2 * size)]
        begun = process_time()
        for record in records:
            index.match(record)
        matching += process_time() - begun
        begun = process_time()
        for turn, place in enumerate(places):
            index.remove(filters[place], place)
            index.match(records[2 * turn])
            filters[place] = fresh[turn]
            index.add(fresh[turn], place)
            index.match(records[2 * turn + 1])
        mixed += process_time() - begun
        begun = process_time()
        for turn, place in enumerate(places):
            index.remove(filters[place], place)
            filters[place] = fresh[size + turn]
            index.add(filters[place], place)
        alone += process_time() - begun
        changes += 2 * size
    return max(0.0, mixed - matching) / changes * 1e6, alone / changes * 1e6


def _filter(rng: random.Random, degrees: tuple[float, float]) -> Filter:
    subject = ("bench", f"class{rng.randrange(CLASSES)}", None)
    if rng.random() < 0.5:
        low = rng.randrange(LOWS)
        between = Constraint(Kind.INT, Op.BETWEEN, (low, low + rng.randrange(*INTERVAL_WIDTHS)))
        return Filter(subject=subject, constraints=[(2, between)])
    return Filter(subject=subject, area=parse_polygon(ring(rng, degrees)))


def _records(rng: random.Random, count: int) -> Iterator[Record]:
    for seq in range(1, count + 1):
        subject = ("bench", f"class{rng.randrange(CLASSES)}", str(rng.randrange(NUMBERS)))
        yield Record(seq, 0, b"{}", subject=subject, geometry=geometry_of(ring(rng, RECORD_DEGREES)))


def ring(rng: random.Random, degrees: tuple[float, float]) -> str:
    """A star-shaped ring somewhere on the inhabited part of the globe."""
    radius = rng.uniform(*degrees)
    lat, lon = rng.uniform(-60, 60), rng.uniform(-150, 150)
    corners = rng.randint(*VERTICES)
    points = []
    for corner in range(corners):
        angle = 2 * math.pi * (corner + rng.random() * 0.8) / corners
        reach = radius * rng.uniform(0.6, 1.0)
        points.append(f"{lat + reach * math.sin(angle):.4f},{lon + reach * math.cos(angle):.4f}")
    return ",".join([*points, points[0]])
