from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seamark.bench import machine, process
from seamark.bench.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(quick=True, where=tmp_path, cores=machine.cores())


@pytest.fixture
def bare(bench: Bench) -> Iterator[process.Process]:
    """The real reference server, in its own process."""
    with process.bare(bench) as server:
        yield server
