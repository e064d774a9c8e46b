"""What is gathered while one file is read: its faults, and what it says that only the other files can prove wrong."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from seamark import limits
from seamark.manifest.diagnostic import Diagnostic, diagnostic
from seamark.manifest.model import Flag, Namespace, Segment

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_BARE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_SHOWN = 80


class Spot(NamedTuple):
    """A place in a file: in words, and as the path of its key."""

    words: str
    location: str

    def of(self, name: str) -> str:
        """The path of a key in the table that stands here."""
        shown = name if _BARE.fullmatch(name) else quoted(name)
        return f"{self.location}.{shown}" if self.location else shown


class Mention(NamedTuple):
    """A name that has to be found in another file."""

    name: str
    spot: Spot


class Use(NamedTuple):
    """An attribute, and the type that it needs to have here."""

    attribute: str
    kind: str
    spot: Spot


@dataclass(frozen=True, slots=True)
class Piece:
    """What one file says, before it is seen beside the others. `entity` is None if it has an error of its own."""

    path: str
    entity: Flag | Segment | Namespace | None
    version: str | None
    found: tuple[Diagnostic, ...]
    segments: tuple[Mention, ...] = ()
    environments: tuple[Mention, ...] = ()
    uses: tuple[Use, ...] = ()


class Reading:
    """One file on its way to a `Piece`. Fields are asked for with the type that they need to have; one that has another is said
    to, and counts as absent."""

    __slots__ = ("environments", "failed", "found", "path", "segments", "uses")

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[Diagnostic] = []
        self.failed = False
        self.segments: list[Mention] = []
        self.environments: list[Mention] = []
        self.uses: list[Use] = []

    def say(self, code: str, spot: Spot, text: str, name: str | None = None) -> None:
        """A fault at `spot`, or at the key `name` of the table there."""
        location = spot.location if name is None else spot.of(name)
        made = diagnostic(code, self.path, f"{spot.words}: {text}" if spot.words else text, location or None)
        self.failed = self.failed or made.severity == "error"
        if len(self.found) < limits.DIAGNOSTICS_PER_FILE_MAX:
            self.found.append(made)

    def only(self, table: Mapping[str, Any], known: Collection[str], spot: Spot) -> None:
        """Every key of a table has to be known."""
        for name in table:
            if name not in known:
                self.say("E016", spot, f"unknown field {quoted(name)}", name)

    def text(self, table: Mapping[str, Any], name: str, spot: Spot) -> str | None:
        value = table.get(name)
        if value is None or isinstance(value, str):
            return value
        self._wrong(spot, name, "a string")
        return None

    def boolean(self, table: Mapping[str, Any], name: str, spot: Spot, default: bool) -> bool:
        value = table.get(name, default)
        if isinstance(value, bool):
            return value
        self._wrong(spot, name, "a boolean")
        return default

    def texts(self, table: Mapping[str, Any], name: str, spot: Spot) -> tuple[str, ...]:
        value = table.get(name)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self._wrong(spot, name, "an array of strings")
        return ()

    def table(self, table: Mapping[str, Any], name: str, spot: Spot) -> dict[str, Any] | None:
        value = table.get(name)
        if value is None or isinstance(value, dict):
            return value
        self._wrong(spot, name, "a table")
        return None

    def _wrong(self, spot: Spot, name: str, wanted: str) -> None:
        self.say("E908", spot, f"{quoted(name)} has to be {wanted}", name)

    def piece(self, entity: Flag | Segment | Namespace | None, version: str | None) -> Piece:
        return Piece(
            self.path,
            None if self.failed else entity,
            version,
            tuple(self.found),
            tuple(self.segments),
            tuple(self.environments),
            tuple(self.uses),
        )


def quoted(name: str) -> str:
    """A name from a file as it can stand in a message, whatever is in it and however long it is."""
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "...")
