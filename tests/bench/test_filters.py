from __future__ import annotations

import pytest

from seamark.bench import filters
from seamark.bench.bench import Bench


@pytest.mark.slow
def test_figures_become_rows_beside_the_naive_loop(bench: Bench) -> None:
    rows = filters.run(bench)
    matched = [row for row in rows if row.parameters["figure"] == "match"]
    mixes = dict.fromkeys(row.parameters["mix"] for row in matched)
    assert [(row.parameters["filters"], row.parameters["mix"]) for row in matched] == [
        (count, mix) for count in filters.COUNTS_QUICK for mix in mixes
    ]
    assert all(mixes)
    assert all(row.ratio is not None and row.reference_name == filters.REFERENCE for row in matched)
    assert any(row.target is not None and row.parameters["figure"] == "cost" for row in rows)
