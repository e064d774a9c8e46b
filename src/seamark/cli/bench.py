"""`seamark bench`: the shipped benchmarks. What is measured and how is in `seamark.bench`."""

from __future__ import annotations

from pathlib import Path

import click

from seamark.cli.exits import Exit
from seamark.cli.output import Output


@click.command()
@click.argument("scenarios", nargs=-1)
@click.option("--quick", is_flag=True, help="Small sizes: a look in about a minute, not a result to quote.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the results as JSON files there.")
@click.option("--list", "listed", is_flag=True, help="Only say which scenarios there are.")
def bench(scenarios: tuple[str, ...], quick: bool, out: Path | None, listed: bool) -> int:
    """Run SCENARIOS (all of them when none is named), each beside a reference measured in the same run."""
    from seamark.bench.run import choose, run  # late: the server's libraries come with it

    if listed:
        Output().table(("name", "about"), [(scenario.name, scenario.about) for scenario in choose(scenarios)])
        return Exit.OK
    return run(scenarios, quick=quick, out=out)
