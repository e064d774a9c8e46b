"""Worked examples of losing and removing (spec/topics.md section 7, and a few of our own), as a table that the model
and every engine must agree with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seamark.log.protocol import Selector, TagMatch
from seamark.log.record import Draft
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Gap, Loss

TTL_150 = StreamSettings(ttl_ms=150)
LATEST_1 = StreamSettings(latest_per_subject=1)


@dataclass(frozen=True, slots=True)
class Write:
    """One batch."""

    drafts: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    ms: int


@dataclass(frozen=True, slots=True)
class Set:
    settings: StreamSettings


@dataclass(frozen=True, slots=True)
class Delete:
    selector: Selector
    count: int


Step = Write | Wait | Set | Delete
Told = tuple[list[tuple[int, int, Loss]], list[int]]  # the gaps and the seqs that a reader is told


@dataclass(frozen=True, slots=True)
class Example:
    """What is done to a fresh stream, where it stands afterwards, and what readers at some cursors are told."""

    name: str
    settings: StreamSettings
    steps: tuple[Step, ...]
    head: int
    evict_floor: int
    earliest: int
    count: int
    told: Mapping[int, Told] = field(default_factory=dict)


def gaps_of(told: Told) -> list[Gap]:
    return [Gap(first, last, loss) for first, last, loss in told[0]]


def _write(count: int, size: int = 1) -> Write:
    return Write(tuple(Draft(b"x" * size) for _ in range(count)))


def _tagged(*tags: str | None) -> Write:
    return Write(tuple(Draft(b"x", tag=tag) for tag in tags))


def _about(*subjects: str | None) -> Write:
    return Write(tuple(Draft(b"x", subject=None if s is None else (s,)) for s in subjects))


def _before(seq: int, count: int) -> Delete:
    return Delete(Selector(before=seq), count)


def _tag(text: str, count: int) -> Delete:
    return Delete(Selector(tag=TagMatch(text)), count)


def _cap(records: int) -> StreamSettings:
    return StreamSettings(cap_records=records)


SPEC_EXAMPLES = (
    Example(
        "1 cap", _cap(3), (_write(6),), head=6, evict_floor=4, earliest=4, count=3,
        told={
            0: ([(1, 3, Loss.CAP)], [4, 5, 6]), 2: ([(3, 3, Loss.CAP)], [4, 5, 6]), 3: ([], [4, 5, 6]), 6: ([], []),
        },
    ),
    Example(
        "2 a deleted front is silent", StreamSettings(), (_write(5), _before(3, 2)),
        head=5, evict_floor=1, earliest=3, count=3, told={0: ([], [3, 4, 5]), 1: ([], [3, 4, 5])},
    ),
    Example(
        "3 deleting by tag", StreamSettings(), (_tagged("a", "b", "c", None), _tag("a", 1), _tag("c", 1)),
        head=4, evict_floor=1, earliest=2, count=2, told={0: ([], [2, 4]), 2: ([], [4])},
    ),
    Example(
        "4 a cap over a deleted front", _cap(4), (_write(4), _before(3, 2), _write(6)),
        head=10, evict_floor=7, earliest=7, count=4, told={0: ([(1, 6, Loss.CAP)], [7, 8, 9, 10])},
    ),
    Example(
        "5 a deletion above the floor", _cap(3), (_write(6), _before(6, 2)), head=6, evict_floor=4, earliest=6, count=1,
        told={0: ([(1, 3, Loss.CAP)], [6]), 3: ([], [6])},
    ),
    Example(
        "6 ttl", TTL_150, (_write(3), Wait(200), _write(1)), head=4, evict_floor=4, earliest=4, count=1,
        told={0: ([(1, 3, Loss.TTL)], [4]), 1: ([(2, 3, Loss.TTL)], [4])},
    ),
    Example(
        "7 everything expires", TTL_150, (_write(3), Wait(200)), head=3, evict_floor=4, earliest=4, count=0,
        told={0: ([(1, 3, Loss.TTL)], []), 3: ([], [])},
    ),
    Example(
        "8 cap and ttl", StreamSettings(ttl_ms=150, cap_records=3), (_write(4), Wait(200), _write(5)),
        head=9, evict_floor=7, earliest=7, count=3,
        told={0: ([(1, 6, Loss.MIXED)], [7, 8, 9]), 4: ([(5, 6, Loss.CAP)], [7, 8, 9])},
    ),
)  # fmt: skip

OWN_EXAMPLES = (
    Example(
        "the ttl boundary is strict", TTL_150, (_write(1), Wait(150)), head=1, evict_floor=1, earliest=1, count=1,
        told={0: ([], [1])},
    ),
    Example(
        "a millisecond beyond it", TTL_150, (_write(1), Wait(150), Wait(1)), head=1, evict_floor=2, earliest=2, count=0,
        told={0: ([(1, 1, Loss.TTL)], [])},
    ),
    Example(
        "a longer ttl brings nothing back", TTL_150,
        (_write(2), Wait(151), Set(StreamSettings(ttl_ms=10_000)), _write(1)),
        head=3, evict_floor=3, earliest=3, count=1, told={0: ([(1, 2, Loss.TTL)], [3])},
    ),
    Example(
        "bytes", StreamSettings(cap_bytes=10), (_write(3, 3), _write(1, 4)), head=4, evict_floor=2, earliest=2, count=3,
        told={0: ([(1, 1, Loss.CAP)], [2, 3, 4])},
    ),
    Example(
        "meta counts", StreamSettings(cap_bytes=10), (Write((Draft(b"12345", meta=b"6789"), Draft(b"ab"))),),
        head=2, evict_floor=2, earliest=2, count=1, told={0: ([(1, 1, Loss.CAP)], [2])},
    ),
    Example(
        "a batch beyond its own cap", _cap(2), (_write(5),), head=5, evict_floor=4, earliest=4, count=2,
        told={0: ([(1, 3, Loss.CAP)], [4, 5])},
    ),
    Example(
        "a deletion makes room", _cap(3), (_tagged("a", "b", "c"), _tag("b", 1), _write(1)),
        head=4, evict_floor=1, earliest=1, count=3, told={0: ([], [1, 3, 4])},
    ),
    Example(
        "a loss next to a deletion states only the loss", _cap(3),
        (_tagged("a", "b", "c"), _tag("b", 1), _write(2)),
        head=5, evict_floor=2, earliest=3, count=3, told={0: ([(1, 1, Loss.CAP)], [3, 4, 5]), 1: ([], [3, 4, 5])},
    ),
    Example(
        "a tightened cap evicts at once", StreamSettings(), (_write(4), Set(_cap(1))),
        head=4, evict_floor=4, earliest=4, count=1, told={0: ([(1, 3, Loss.CAP)], [4])},
    ),
    Example(
        "a tightened ttl expires at once", StreamSettings(), (_write(2), Wait(200), _write(1), Set(TTL_150)),
        head=3, evict_floor=3, earliest=3, count=1, told={0: ([(1, 2, Loss.TTL)], [3])},
    ),
    Example(
        "age goes before caps", StreamSettings(),
        (_write(8), Wait(2_000), Set(StreamSettings(ttl_ms=500, cap_records=3))),
        head=8, evict_floor=9, earliest=9, count=0, told={0: ([(1, 8, Loss.TTL)], [])},
    ),
    Example(
        "replacement is not loss", LATEST_1, (_about("a", "b", "a", None), _about("b", "c", None)),
        head=7, evict_floor=1, earliest=3, count=5, told={0: ([], [3, 4, 5, 6, 7]), 3: ([], [4, 5, 6, 7])},
    ),
    Example(
        "the newest two of each", StreamSettings(latest_per_subject=2), (_about("a", "a", "b", "a", "b", "b"),),
        head=6, evict_floor=1, earliest=2, count=4, told={0: ([], [2, 4, 5, 6])},
    ),
    Example(
        "replacement and a cap", StreamSettings(latest_per_subject=1, cap_records=2), (_about("a", "b", "a", "c"),),
        head=4, evict_floor=3, earliest=3, count=2, told={0: ([(1, 2, Loss.CAP)], [3, 4])},
    ),
    Example(
        "all conditions of a selector hold", StreamSettings(),
        (_tagged("a", "ab", "a", "b"), Delete(Selector(before=3, tag=TagMatch("a", prefix=True)), 2)),
        head=4, evict_floor=1, earliest=3, count=2, told={0: ([], [3, 4])},
    ),
)  # fmt: skip

EXAMPLES = SPEC_EXAMPLES + OWN_EXAMPLES
