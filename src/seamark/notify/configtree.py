"""Reading the contract's YAML: every value is taken from its mapping by name and type, and what is wrong is named by its whole
key, as in `notification_schema.mars.topic.base`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NoReturn

from seamark.errors import BadConfig
from seamark.kinds import BOOL, WHOLE, Kind, Untyped


class Node:
    """One mapping of the file, and where in the file it is."""

    __slots__ = ("_values", "path")

    def __init__(self, raw: object, path: str) -> None:
        if not isinstance(raw, Mapping):
            refuse(path, "it is not a mapping", "a mapping")
        self._values: Mapping[object, object] = raw
        self.path = path

    def __contains__(self, key: str) -> bool:
        """Whether there is a value; null counts as none."""
        return self._values.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Keys, which must be text: YAML reads some words as something else."""
        for key in self._values:
            if not isinstance(key, str) or not key:
                refuse(self.path, f"its key {key!r} is not text", "keys in quotes")
            yield key

    def only(self, known: Collection[str]) -> None:
        """Refuse every other key."""
        for key in self._values:
            if key not in known:
                refuse(f"{self.path}.{key}", "there is no such key", ", ".join(sorted(known)))

    def node(self, key: str) -> Node:
        return Node(self._values.get(key), self.at(key))

    def at(self, key: str) -> str:
        return f"{self.path}.{key}"

    def raw(self, key: str) -> object:
        return self._values.get(key)

    def flag(self, key: str) -> bool:
        value = typed(self._values.get(key), BOOL)
        if not isinstance(value, bool):
            refuse(self.at(key), _what(value), "true or false")
        return value

    def text(self, key: str) -> str:
        value = as_text(self._values.get(key))
        if value is None:
            refuse(self.at(key), _what(self._values.get(key)), "text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key)
        texts = [as_text(item) for item in value] if isinstance(value, list) else [None]
        if None in texts:
            refuse(self.at(key), _what(value), "a list of texts (in quotes, where YAML would read something else)")
        return tuple(text for text in texts if text is not None)

    def count(self, key: str, *, least: int, most: int) -> int:
        value = typed(self._values.get(key), WHOLE)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            refuse(self.at(key), _what(value), f"a whole number from {least} to {most}")
        return value


def typed(value: object, kind: Kind) -> object:
    """Text from the environment as what it is meant to be; anything else, and text that is not that, as it is."""
    if not isinstance(value, Untyped):
        return value
    try:
        return kind.parse(value)
    except ValueError:
        return str(value)


def as_text(value: object) -> str | None:
    """Text, or a number that was not put into quotes; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def refuse(name: str, why: str, accepts: str) -> NoReturn:
    """Stop the start, as the settings do."""
    raise BadConfig(f"{name}: {why}; accepted: {accepts}", name=name, place="file", accepts=accepts)


def _what(value: object) -> str:
    return "it is missing" if value is None else f"{value!r} is not valid"
