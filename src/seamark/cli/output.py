"""Where verbs write: a table for people on a terminal, JSON lines for programs in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

Cell = str | int | float | bool | None


class Screen(Console):
    """Rich ends the process when the reader of its output has left; what that means is ours to say."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Output:
    """One verb's results. Messages and progress go to stderr, so that stdout holds nothing but results."""

    def __init__(self, *, json: bool | None = None, stdout: TextIO | None = None) -> None:
        stream = sys.stdout if stdout is None else stdout
        self._stream = stream
        self.json = not stream.isatty() if json is None else json
        self._console = Screen(file=stream, highlight=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False)

    def line(self, facts: Mapping[str, Cell]) -> None:
        """One JSON line. Flushed, because the reader may be waiting for it."""
        self._stream.write(msgspec.json.encode(facts).decode() + "\n")
        self._stream.flush()

    def say(self, text: str, *, style: str = "") -> None:
        """One line for people. The text is printed as it is: brackets in it are not markup."""
        self._console.print(Text(text, style=style))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Rows of equal facts: JSON lines, or a table that wraps instead of cutting off."""
        if self.json:
            for row in rows:
                self.line(dict(zip(columns, row, strict=True)))
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text("" if cell is None else _shown(cell)) for cell in row))
        Screen(file=self._stream, highlight=False).print(table)

    def listing(
        self,
        rows: Sequence[Mapping[str, Any]],
        facts: Sequence[str],
        columns: Sequence[str],
        shown: Callable[[Mapping[str, Any]], Sequence[Cell]],
    ) -> None:
        """What a server listed: these facts of each for programs, and what `shown` makes of it, in columns, for people."""
        if self.json:
            self.table(facts, [[row[name] for name in facts] for row in rows])
        else:
            self.table(columns, [shown(row) for row in rows])

    @contextmanager
    def progress(self, label: str) -> Iterator[Step]:
        """A progress bar on a terminal; nothing in a pipe."""
        if not self._errors.is_terminal:
            yield Step()
            return
        columns = (TextColumn(label), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._errors, transient=True) as progress:
            yield Bar(progress)


class Step:
    """How far long work has come. This one tells nobody."""

    def __call__(self, done: int, total: int) -> None:
        assert 0 <= done <= max(total, done)


class Bar(Step):
    """And this one moves a bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)


def counted(count: int, name: str) -> str:
    """`1 flag`, `2 flags`."""
    return f"{count} {name}{'' if count == 1 else 's'}"


def mute_stdout() -> None:
    """The reader of our output has left, as `head` does. Python would complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)
