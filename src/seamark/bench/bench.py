"""What every scenario is given: how long it may take, where it may write, which cores there are."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import msgspec


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """`quick` asks for a small version that shows that everything works; its figures mean little."""

    quick: bool
    where: Path
    cores: list[int]
    numbers: itertools.count[int] = msgspec.field(default_factory=itertools.count)

    def fresh(self, name: str) -> Path:
        """A path of its own, on the disk that is measured."""
        return self.where / f"{name}-{next(self.numbers)}"

    def discard(self, path: Path) -> None:
        """Stores are large: give the space back as soon as a scenario is done with one."""
        shutil.rmtree(path, ignore_errors=True)
