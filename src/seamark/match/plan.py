"""A plan: how one filter is laid into the index.

The equalities of a filter (literal tokens, `eq` and small `in` constraints) become hash keys of a facet; its number
ranges and its area become columns. `checked` says that this is not the whole filter, so a hit must be asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from seamark import limits
from seamark.match.constraint import Constraint, Kind, Number, Op, Value
from seamark.match.filter import Area, Filter

Component: TypeAlias = tuple[int, Kind | None]
"""A token position, and how its token is read (None: as it stands)."""
Components: TypeAlias = tuple[Component, ...]
Equalities: TypeAlias = Mapping[Component, tuple[Value, ...]]
Slot: TypeAlias = tuple[int, Kind]
Key: TypeAlias = Value | tuple[Value, ...]
"""The values of a facet's components; the bare value when there is one."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Where the index changes its ways. Tests make the numbers small; the answer never depends on them."""

    linear_max: int = limits.MATCH_LINEAR_MAX
    tail_max: int = limits.MATCH_TAIL_MAX
    tree_min: int = limits.MATCH_TREE_MIN
    expand_max: int = limits.MATCH_EXPAND_MAX
    facets_max: int = limits.MATCH_FACETS_MAX
    groups_max: int = limits.MATCH_GROUPS_MAX


@dataclass(frozen=True, slots=True)
class Plan:
    """`ranges` holds for each slot the closed interval in which the value must lie."""

    keys: tuple[Key, ...]
    ranges: tuple[tuple[Slot, Number, Number], ...]
    area: type[Area] | None
    excludes: bool
    checked: bool

    @property
    def bare(self) -> bool:
        """The key says it all, but for excluded nodes."""
        return not self.ranges and self.area is None and not self.checked


def equalities_of(wanted: Filter, expand_max: int) -> dict[Component, tuple[Value, ...]]:
    """What could be hashed, fewest values first, no more in all than `expand_max` keys. A dictionary in that order."""
    found: dict[Component, tuple[Value, ...]] = {}
    for position, token in enumerate(wanted.subject or ()):
        if token is not None:
            found[position, None] = (token,)
    for position, constraint in wanted.constraints:
        if constraint.members is not None:
            found.setdefault((position, constraint.kind), constraint.operands)
    kept: dict[Component, tuple[Value, ...]] = {}
    keys = 1
    for component, values in sorted(found.items(), key=lambda item: len(item[1])):
        keys *= len(values)
        if keys > expand_max:
            break
        kept[component] = values
    return kept


def components_of(equalities: Equalities) -> Components:
    return tuple(sorted(equalities, key=lambda component: (component[0], component[1] or "")))


def make_plan(wanted: Filter, equalities: Equalities, components: Components) -> Plan:
    """The plan of a filter in the facet with these components, which are some or all of its equalities."""
    values = [equalities[component] for component in components]
    keys: Iterable[Key] = values[0] if len(values) == 1 else product(*values)
    literals = sum(token is not None for token in wanted.subject or ())
    checked = literals > sum(kind is None for _, kind in components)
    ranges: dict[Slot, tuple[Number, Number]] = {}
    for position, constraint in wanted.constraints:
        slot = (position, constraint.kind)
        if slot in components and equalities[slot] == constraint.operands and constraint.members is not None:
            continue
        exact = _narrow(ranges, slot, constraint)
        checked = checked or not exact
    return Plan(
        keys=tuple(keys),
        ranges=tuple((slot, low, high) for slot, (low, high) in sorted(ranges.items())),
        area=None if wanted.area is None else type(wanted.area),
        excludes=bool(wanted.exclude_nodes),
        checked=checked,
    )


def _narrow(ranges: dict[Slot, tuple[Number, Number]], slot: Slot, constraint: Constraint) -> bool:
    """Narrow a slot's interval by a constraint; false when the interval does not say all of it."""
    if constraint.kind is Kind.TEXT:
        return False
    low, high = ranges.get(slot, (constraint.low, constraint.high))
    ranges[slot] = max(low, constraint.low), min(high, constraint.high)
    return constraint.op is not Op.IN
