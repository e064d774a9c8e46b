"""What repeated measurements say: percentiles, medians, and the shape they are reported in."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Sequence


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of an ordered sequence lies, interpolated between neighbours."""
    assert 0.0 <= share <= 1.0
    if not ordered:
        return float("nan")
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


class Sample:
    """Durations, kept as nanoseconds in eight bytes each."""

    __slots__ = ("nanoseconds",)

    def __init__(self) -> None:
        self.nanoseconds = array("q")

    def __len__(self) -> int:
        return len(self.nanoseconds)

    def add(self, nanoseconds: int) -> None:
        self.nanoseconds.append(nanoseconds)

    def extend(self, nanoseconds: array[int]) -> None:
        self.nanoseconds.extend(nanoseconds)

    def clear(self) -> None:
        del self.nanoseconds[:]

    def milliseconds(self, *shares: float) -> tuple[float, ...]:
        """The asked percentiles, in milliseconds."""
        ordered = sorted(self.nanoseconds)
        return tuple(percentile(ordered, share) / 1e6 for share in shares)
