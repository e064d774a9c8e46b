"""`seamark bench`: the shipped benchmarks. What is measured and how is in `seamark.bench`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("scenarios", nargs=-1)
@click.option("--quick", is_flag=True, help="Small sizes: a look in about a minute, not a result to quote.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the results as JSON files there.")
def bench(scenarios: tuple[str, ...], quick: bool, out: Path | None) -> int:
    """Run SCENARIOS (all of them when none is named), each beside a reference measured in the same run."""
    from seamark.bench.run import run  # late: the server's libraries come with it

    return run(scenarios, quick=quick, out=out)
