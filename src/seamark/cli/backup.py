"""`seamark backup`: a consistent copy of a data directory, taken beside a running server."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import click
import lmdb

from seamark.cli.options import load_settings
from seamark.cli.output import Output, Step
from seamark.errors import BadInput, Corrupt, WriteFailed
from seamark.log.engines import directory
from seamark.log.verify import verify

POLL_SECONDS = 0.1
TAIL_ATTEMPTS = 3


@click.command()
@click.argument("target", metavar="TARGET", type=click.Path(path_type=Path))
@click.option("--data", metavar="PATH", help="The data directory to copy. [the setting `data`]")
@click.option("--config", "config_file", metavar="FILE", help="Settings file, as for serve.")
@click.option("--json/--text", "json", default=None, help="A JSON line or text. [text on a terminal]")
def backup(target: Path, data: str | None, config_file: str | None, json: bool | None) -> int:
    """Copy a data directory to TARGET, which must not exist yet. The copy is the state after one commit, is verified, and
    appears under its name only when it is whole. A server may be running on the directory."""
    source = load_settings(config_file, {"data": data}).data
    output = Output(json=json)
    with output.progress("copying") as step:
        size = copy_store(source, target, step)
    if output.json:
        output.line({"event": "backup", "source": str(source), "target": str(target), "bytes": size})
    else:
        output.say(f"{source} copied to {target}: {size:,} bytes")
    return 0


def copy_store(source: Path, target: Path, step: Step) -> int:
    """Copy through a neighbour of `target` that is renamed at the end. Returns the size of the copy."""
    if target.exists():
        raise BadInput(f"{target} exists; accepted: a path that does not")
    if not (source / directory.DATA_NAME).is_file():
        raise BadInput(f"{source} holds no store; accepted: the data directory of a server")
    _refuse_cut(source)
    _refuse_broken(source)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        _copy(source, partial, step)
        directory.mark(partial)
        _check_copy(partial)
        partial.rename(target)
        directory.sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return (target / directory.DATA_NAME).stat().st_size


def _refuse_cut(source: Path) -> None:
    """A file that ends early cannot be mapped safely. A running server may lengthen it while we look, so look again."""
    for _ in range(TAIL_ATTEMPTS):
        tail = directory.Tail(source / directory.DATA_NAME)
        if not tail.cut:
            return
    found = f"{tail.size} bytes instead of {tail.expected}"
    raise Corrupt(f"{source} is damaged: its data file ends early ({found})", stream="", seq=0, where="file")


def _refuse_broken(source: Path) -> None:
    """LMDB follows the pointers of the pages it copies, and a wrong one may end the process. A store that is being
    written cannot be walked like this; there the running server would have met the damage."""
    with directory.Watch(source) as watch:
        problems = [] if watch.owned else list(directory.structure_problems(source / directory.DATA_NAME))
    if problems:
        raise Corrupt(f"{source} is damaged: {problems[0]}; run seamark verify", stream="", seq=0, where="file")


def _copy(source: Path, partial: Path, step: Step) -> None:
    """LMDB's own copy, in a thread so that progress can be shown; free pages are left out."""
    failures: list[Exception] = []
    copied = partial / directory.DATA_NAME

    def work() -> None:
        try:
            env = lmdb.open(str(source), readonly=True, max_dbs=64, create=False)
            try:
                env.copy(str(partial), compact=True)
            finally:
                env.close()
        except (lmdb.Error, OSError) as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="backup")
    total = directory.Tail(source / directory.DATA_NAME).expected
    thread.start()
    while thread.is_alive():
        thread.join(POLL_SECONDS)
        step(copied.stat().st_size if copied.exists() else 0, total)
    if failures:
        raise WriteFailed(f"the copy failed: {failures[0]}", cause=str(failures[0])) from failures[0]
    step(copied.stat().st_size, total)  # a small copy is over before anybody looks
    with copied.open("rb+") as file:
        os.fsync(file.fileno())
    directory.sync_directory(partial)


def _check_copy(partial: Path) -> None:
    report = verify(partial)
    if report.findings:
        message = f"the copy has {len(report.findings)} findings, so the original has: run seamark verify"
        raise Corrupt(message, stream="", seq=0, where="copy")
