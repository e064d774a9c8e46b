from __future__ import annotations

import itertools
import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.bench.sample import Sample, median, percentile

floats = st.floats(-1e9, 1e9)


@given(st.lists(floats, min_size=1, max_size=50), st.floats(0, 1))
def test_percentile_is_numpys(values: list[float], share: float) -> None:
    ordered = sorted(values)
    assert percentile(ordered, share) == pytest.approx(float(np.quantile(ordered, share)), rel=1e-9, abs=1e-6)


@given(st.lists(floats, min_size=1, max_size=50))
def test_percentile_stays_within_and_grows(values: list[float]) -> None:
    ordered = sorted(values)
    found = [percentile(ordered, share / 10) for share in range(11)]
    assert found[0] == ordered[0]
    assert found[-1] == ordered[-1]
    assert all(low <= high + 1e-6 for low, high in itertools.pairwise(found))


def test_nothing_measured_is_not_a_number() -> None:
    assert math.isnan(percentile([], 0.5))
    assert math.isnan(median([]))
    assert all(math.isnan(value) for value in Sample().milliseconds(0.5, 0.99))


def test_a_sample_reports_milliseconds_of_nanoseconds() -> None:
    sample = Sample()
    for milliseconds in (5, 1, 3):
        sample.add(milliseconds * 1_000_000)
    assert sample.milliseconds(0.0, 0.5, 1.0) == (1.0, 3.0, 5.0)
    sample.extend(array("q", [7_000_000]))
    assert len(sample) == 4
    assert sample.milliseconds(1.0) == (7.0,)
    sample.clear()
    assert len(sample) == 0
