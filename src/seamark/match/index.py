"""The index: for each record, the watchers that want it, without asking each watcher.

Filters are found the other way round. Their equalities are hash keys: a *facet* is a set of token positions on which
some filters insist, and one look-up per facet finds the *bucket* of filters whose values the record has. In a bucket,
number ranges and areas are columns (`group`) that are compared all at once, and big groups have a spatial tree. Both
counts are bounded, so that hostile sets of filters make the index slower, at worst about as slow as asking each.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Generic, TypeVar

from seamark.log.record import Record
from seamark.match.bucket import Bucket
from seamark.match.entry import Entry
from seamark.match.filter import Filter
from seamark.match.plan import Components, Equalities, Key, Plan, Tuning, components_of, equalities_of, make_plan
from seamark.match.view import View

T = TypeVar("T")


class Facet(Generic[T]):
    """Buckets by the values at some components."""

    __slots__ = ("_literal", "buckets", "components")

    def __init__(self, components: Components) -> None:
        self.components = components
        self.buckets: dict[Key, Bucket[T]] = {}
        self._literal: Callable[[Any], Key] | None = None
        if components and all(kind is None for _, kind in components):
            self._literal = itemgetter(*(position for position, _ in components))

    def find(self, view: View) -> Bucket[T] | None:
        """The bucket of a record whose subject is as long as the facet's filters say."""
        if self._literal is not None:
            return self.buckets.get(self._literal(view.subject))
        values = tuple(view.value(position, kind) for position, kind in self.components)
        if None in values:
            return None
        return self.buckets.get(values[0] if len(values) == 1 else values)  # type: ignore[arg-type]  # no None left

    def crowd(self, values: tuple[Key, ...]) -> int:
        """The biggest bucket among these keys."""
        return max(len(bucket) if (bucket := self.buckets.get(value)) else 0 for value in values)


class FilterIndex(Generic[T]):
    """Filters with tokens. A token stands for a watcher: hashable, and given back for each record its filter passes.

    Equal filters are held and answered once, whoever asks. The order of the answer means nothing.
    """

    def __init__(self, *, tuning: Tuning | None = None) -> None:
        self._tuning = tuning or Tuning()
        self._entries: dict[Filter, Entry[T]] = {}
        self._homes: dict[Entry[T], Facet[T]] = {}
        self._facets: dict[int | None, dict[Components, Facet[T]]] = {}  # by length of pattern, None: any
        self._count = 0

    def __len__(self) -> int:
        """Pairs of filter and token."""
        return self._count

    def add(self, wanted: Filter, token: T) -> None:
        """Adding the same pair again changes nothing."""
        entry = self._entries.get(wanted)
        if entry is None:
            self._place(wanted, token)
        elif token in entry.tokens:
            return
        else:
            entry.tokens[token] = None
            self._refresh(entry)
        self._count += 1

    def remove(self, wanted: Filter, token: T) -> None:
        """Raises KeyError when the pair is not there."""
        entry = self._entries[wanted]
        del entry.tokens[token]
        self._count -= 1
        if entry.tokens:
            self._refresh(entry)
        else:
            self._displace(entry)

    def match(self, record: Record) -> list[T]:
        """The tokens of all filters that the record passes, each pair once."""
        out: list[T] = []
        view = View(record)
        subject = record.subject
        if subject is not None:
            facets = self._facets.get(len(subject))
            if facets is not None:
                for facet in facets.values():
                    bucket = facet.find(view)
                    if bucket is not None:
                        bucket.collect(view, out)
        facets = self._facets.get(None)
        if facets is not None:
            for facet in facets.values():
                bucket = facet.find(view)
                if bucket is not None:
                    bucket.collect(view, out)
        return out

    def _place(self, wanted: Filter, token: T) -> None:
        equalities = equalities_of(wanted, self._tuning.expand_max)
        facet = self._facet(wanted, equalities)
        plan = make_plan(wanted, equalities, facet.components)
        entry = Entry(wanted, plan, token)
        self._entries[wanted] = entry
        self._homes[entry] = facet
        for key in plan.keys:
            bucket = facet.buckets.get(key)
            if bucket is None:
                bucket = facet.buckets[key] = Bucket(self._tuning)
            bucket.add(entry)

    def _displace(self, entry: Entry[T]) -> None:
        wanted = entry.filter
        del self._entries[wanted]
        facet = self._homes.pop(entry)
        for key in entry.plan.keys:
            bucket = facet.buckets[key]
            bucket.remove(entry)
            if not bucket:
                del facet.buckets[key]
        if not facet.buckets:
            length = _length(wanted)
            del self._facets[length][facet.components]
            if not self._facets[length]:
                del self._facets[length]

    def _refresh(self, entry: Entry[T]) -> None:
        plan: Plan = entry.plan
        for key in plan.keys:
            self._homes[entry].buckets[key].refresh(entry)

    def _facet(self, wanted: Filter, equalities: Equalities) -> Facet[T]:
        """The facet of all the filter's equalities; when there are too many facets, that of its most selective one."""
        facets = self._facets.setdefault(_length(wanted), {})
        components = components_of(equalities)
        facet = facets.get(components)
        if facet is None and len(facets) >= self._tuning.facets_max and len(components) > 1:
            # Later tokens are the more telling ones of a path, so they win a tie.
            singles = [facets.get((component,)) or Facet[T]((component,)) for component in reversed(components)]
            facet = min(singles, key=lambda single: single.crowd(equalities[single.components[0]]))
        if facet is None:
            facet = Facet(components)
        facets[facet.components] = facet
        return facet


def _length(wanted: Filter) -> int | None:
    return None if wanted.subject is None else len(wanted.subject)
