"""One version of a manifest: its files by digest, what they mean, and what subscriptions to it would hold."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from seamark.limits import FLAG_CLOSURES_KEPT_MAX
from seamark.manifest.closure import Index, closure_hash, closure_of
from seamark.manifest.evaluate import Evaluator
from seamark.manifest.model import Manifest
from seamark.manifest.subscription import FlagList


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


class Version:
    """Immutable in all that can be seen of it. What it means is worked out when somebody asks, and then kept."""

    __slots__ = ("_closures", "_evaluator", "_manifest", "_narrow", "index", "number", "stream")

    def __init__(
        self,
        stream: str,
        number: int,
        index: Index,
        *,
        manifest: Manifest | None,
        narrow: Callable[[Version, FlagList], Index],
    ) -> None:
        """`narrow` makes closures where the manifest is not at hand."""
        self.stream = stream
        self.number = number
        self.index = index
        self._manifest = manifest
        self._narrow = narrow
        self._evaluator: Evaluator | None = None
        self._closures: OrderedDict[str, Closure] = OrderedDict()

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
        closure = self._closures.get(wanted.canonical)
        if closure is None:
            index = self._part(wanted)
            closure = self._closures[wanted.canonical] = Closure(index, closure_hash(index))
            if len(self._closures) > FLAG_CLOSURES_KEPT_MAX:
                self._closures.popitem(last=False)
        else:
            self._closures.move_to_end(wanted.canonical)
        return closure

    def _part(self, wanted: FlagList) -> Index:
        if wanted.keys is None:
            return self.index
        return closure_of(self.manifest, self.index, wanted) if self.is_read else self._narrow(self, wanted)
