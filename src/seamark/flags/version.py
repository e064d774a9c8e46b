"""One version of a manifest: its files by digest, what they mean, and what subscriptions to it would hold."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

import msgspec

from seamark.limits import FLAG_CLOSURES_WEIGHT_KEPT
from seamark.manifest.closure import Index, closure_hash, closure_of
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.model import Manifest
from seamark.manifest.subscription import FlagList

_CLOSURE_BYTES, _FILE_BYTES = 500, 100  # of a closure without files, and of each file in its index
_serials = count()  # a version has one of its own, also where a stream that was made again has the same numbers


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payload of a version's record. When it was uploaded, and its number, the record itself says."""

    uploaded_by: str
    flag_count: int
    segment_count: int
    file_count: int
    bytes: int  # of all files
    closure_hash: str  # of all files
    warnings: int = 0
    restored: int | None = None  # the version whose files these are, where it came by a rollback


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a namespace's history."""

    number: int
    ts: int  # ns
    facts: Facts
    files_available: bool


class Closure(msgspec.Struct, frozen=True):
    """The part of a version that one subscription holds."""

    index: Index
    hash: str


class KeptClosures:
    """Those of all versions that were asked for not long ago, within a bound on the memory that they take."""

    def __init__(self) -> None:
        self._closures: OrderedDict[tuple[int, str], tuple[Closure, int]] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._closures)

    def find(self, serial: int, wanted: str) -> Closure | None:
        found = self._closures.get((serial, wanted))
        if found is None:
            return None
        self._closures.move_to_end((serial, wanted))
        return found[0]

    def keep(self, serial: int, wanted: str, closure: Closure, *, files: int) -> None:
        """What was not there. `files` are those of an index of its own."""
        weight = _CLOSURE_BYTES + len(wanted) + _FILE_BYTES * files
        self._closures[serial, wanted] = closure, weight
        self._weight += weight
        while self._weight > FLAG_CLOSURES_WEIGHT_KEPT and len(self._closures) > 1:
            self._weight -= self._closures.popitem(last=False)[1][1]


class Version:
    """Immutable in all that can be seen of it. What it means is worked out when somebody asks, and then kept."""

    __slots__ = ("_closures", "_evaluator", "_manifest", "_narrow", "_serial", "index", "number", "stream")

    def __init__(
        self,
        stream: str,
        number: int,
        index: Index,
        *,
        manifest: Manifest | None,
        narrow: Callable[[Version, FlagList], Index],
        closures: KeptClosures,
    ) -> None:
        """`narrow` makes closures where the manifest is not at hand."""
        self.stream = stream
        self.number = number
        self.index = index
        self._manifest = manifest
        self._narrow = narrow
        self._evaluator: Evaluator | None = None
        self._closures = closures
        self._serial = next(_serials)

    @property
    def is_read(self) -> bool:
        """Whether `manifest` is at hand."""
        return self._manifest is not None

    @property
    def manifest(self) -> Manifest:
        """Of a version that is read."""
        assert self._manifest is not None
        return self._manifest

    def learn(self, manifest: Manifest) -> None:
        """What its files mean, as somebody else has read them."""
        self._manifest = manifest

    @property
    def evaluator(self) -> Evaluator:
        if self._evaluator is None:
            self._evaluator = Evaluator(self.manifest)
        return self._evaluator

    def closure(self, wanted: FlagList) -> Closure:
        """Made once for all who want the same. Raises Busy when the version is not read and it would take long."""
        closure = self._closures.find(self._serial, wanted.canonical)
        if closure is None:
            index = self._part(wanted)
            closure = Closure(index, closure_hash(index))
            self._closures.keep(self._serial, wanted.canonical, closure, files=0 if index is self.index else len(index))
        return closure

    def _part(self, wanted: FlagList) -> Index:
        if wanted.keys is None:
            return self.index
        return closure_of(self.manifest, self.index, wanted) if self.is_read else self._narrow(self, wanted)
