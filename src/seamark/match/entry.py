"""An entry: one distinct filter of an index, with everyone who asked for it."""

from __future__ import annotations

from typing import Generic, TypeVar

from seamark.match.filter import Filter
from seamark.match.plan import Plan

T = TypeVar("T")


class Entry(Generic[T]):
    """Compared by identity; equal filters share one entry. `tokens` is a set in order of arrival."""

    __slots__ = ("filter", "plan", "tokens")

    def __init__(self, wanted: Filter, plan: Plan, token: T) -> None:
        self.filter = wanted
        self.plan = plan
        self.tokens: dict[T, None] = {token: None}
