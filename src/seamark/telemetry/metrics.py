"""The metric table, and cells cheap enough for hot paths. Prometheus text is made from the table on scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """One row: what is counted and why an operator would look at it."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


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
