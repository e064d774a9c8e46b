"""Deltas that many connections share: whoever was told the same before and wants the same hears the same, made once."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from seamark.flags.event import Inline, version_data, version_event
from seamark.flags.rows import owner_of
from seamark.flags.tars import Tars
from seamark.flags.version import Closure, Version
from seamark.flags.versions import Versions
from seamark.limits import FLAG_DELTA_BYTES_KEPT, INLINE_BYTES_MAX
from seamark.manifest.closure import has_changed
from seamark.manifest.delta import FileChange, State, Step, change_of, steps_between
from seamark.manifest.subscription import FlagList
from seamark.stream.pipe import Block
from seamark.telemetry.metrics import Metrics

_ENTRY_BYTES, _FILE_BYTES = 512, 200  # what one takes that says nothing, and each file of a closure that one leads to
_BASE64_LETTERS, _BASE64_BYTES = 4, 3

_Key = tuple[str, str, int, str, int]


class Told(NamedTuple):
    """What a connection was told last of a namespace, and so holds."""

    number: int
    closure: Closure


class Turn(NamedTuple):
    """What follows from a version for those who were told the same before: nothing; an inline event, which is here to be
    written; or a snapshot, for which everybody needs an address of their own."""

    closure: Closure | None = None
    block: Block | None = None
    size: int = 0  # of the snapshot


_NOTHING = Turn()


class Deltas:
    """Keeps as many as fit; a reader that lags behind all others has its own made again."""

    def __init__(self, versions: Versions, tars: Tars, metrics: Metrics, *, files_max: int) -> None:
        """`files_max`: a version that changes more of a closure is not told inline; 0 sets no bound."""
        self._versions = versions
        self._tars = tars
        self._files_max = files_max
        self._kept: OrderedDict[_Key, Turn] = OrderedDict()
        self._kept_bytes = 0
        self._made = metrics.counter("seamark_flags_deltas_total")
        self._ops = {
            op: metrics.counter("seamark_flags_delta_files_total", op)
            for op in ("added", "modified", "removed", "enter", "leave")
        }

    def __len__(self) -> int:
        return len(self._kept)

    def between(self, stream: str, wanted: FlagList, told: Told, number: int) -> Turn | None:
        """From what was told to a version; None when that version's files are not kept any more."""
        key = (stream, wanted.canonical, told.number, told.closure.hash, number)
        turn = self._kept.get(key)
        if turn is not None:
            self._kept.move_to_end(key)
            return turn
        version = self._versions.at_now(stream, number)
        if version is None:
            return None
        turn = self._made_now(stream, wanted, told, version)
        self._kept[key] = turn
        self._kept_bytes += _weight(key, turn)
        while self._kept_bytes > FLAG_DELTA_BYTES_KEPT and len(self._kept) > 1:
            self._kept_bytes -= _weight(*self._kept.popitem(last=False))
        return turn

    def forget(self, stream: str) -> None:
        """The numbers of a stream that was made again mean other versions."""
        for key in [key for key in self._kept if key[0] == stream]:
            self._kept_bytes -= _weight(key, self._kept.pop(key))

    def _made_now(self, stream: str, wanted: FlagList, told: Told, version: Version) -> Turn:
        if not has_changed(told.closure.index, version.index, wanted):
            return _NOTHING
        self._made.value += 1
        closure = version.closure(wanted)
        before = self._versions.at_now(stream, told.number)
        if before is None:
            return self._snapshot(version, closure)
        steps = steps_between(State(before.index, told.closure.index), State(version.index, closure.index))
        for step in steps:
            self._ops[step.op].value += 1
        data = self._inline(stream, told, version, closure, steps)
        if data is None:
            return self._snapshot(version, closure)
        return Turn(closure, Block(version_event(owner_of(stream)[1], version.number, data)))

    def _snapshot(self, version: Version, closure: Closure) -> Turn:
        return Turn(closure, size=self._tars.size_now(version, closure))

    def _inline(self, stream: str, told: Told, version: Version, closure: Closure, steps: list[Step]) -> bytes | None:
        """The JSON of the event, None when it would be too much."""
        if self._files_max and len(steps) > self._files_max:
            return None
        contents: dict[bytes, bytes] = {}
        size = 0
        for step in steps:
            if step.digest is not None:
                content = contents[step.digest] = self._versions.content(version, step.path)
                size += len(content) * _BASE64_LETTERS // _BASE64_BYTES
                if size > INLINE_BYTES_MAX:
                    return None
        files: list[FileChange] = [change_of(step, contents.__getitem__) for step in steps]
        data = version_data(
            Inline(
                namespace=owner_of(stream)[1],
                version=version.number,
                prev_version=told.number,
                prev_closure_hash=told.closure.hash,
                closure_hash=closure.hash,
                files=files,
            )
        )
        return data if len(data) <= INLINE_BYTES_MAX else None


def _weight(key: _Key, turn: Turn) -> int:
    """An event is kept twice: as it is, and framed for the connection."""
    event = 0 if turn.block is None else 2 * len(turn.block.raw)
    return _ENTRY_BYTES + len(key[1]) + event + (0 if turn.closure is None else _FILE_BYTES * len(turn.closure.index))
