"""A leg: one stream within a session. What was asked for (`LegSpec`), and how far it has come (`Leg`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from seamark.log.watermarks import Cursor
from seamark.match.filter import Filter

if TYPE_CHECKING:
    from seamark.stream.channel import Channel
    from seamark.stream.group import Group
    from seamark.stream.session import Session


class LegSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader asks of one stream."""

    stream: str
    cursor: Cursor = Cursor()
    filter: Filter | None = None  # None: every record
    synced: bool = False  # a strong reader: only what is durable
    until: int | None = None  # the last seq of a finite reading; None in a finite session: the head found at the start
    history_max: int | None = None  # records from history at the most; then `SaysLimited.limited`, and on to the head
    limit_ends: bool = False  # beyond `history_max` the leg is over instead
    then_live: bool = False  # `until` ends only the history: what follows counts as live, whoever hands it over
    pause_seconds: float = 0.0  # between two pages of history


_SYNCED, _FIRST_READ, _PARKED, _OVER = 1, 2, 4, 8


class _Rare:
    """What is special about a leg: bounds of its history, and its stream's end. Few legs have any of it, and there may be a
    million of the others."""

    __slots__ = ("gone_head", "left", "limit_ends", "pause_seconds", "then_live", "until")

    def __init__(self) -> None:
        self.gone_head: int | None = None
        self.until: int | None = None
        self.left: int | None = None
        self.limit_ends = False
        self.then_live = False
        self.pause_seconds = 0.0

    @classmethod
    def of(cls, spec: LegSpec) -> _Rare | None:
        plain = spec.until is None and spec.history_max is None
        if plain and not (spec.limit_ends or spec.then_live or spec.pause_seconds):
            return None
        rare = cls()
        rare.until = spec.until
        rare.left = spec.history_max
        rare.limit_ends = spec.limit_ends
        rare.then_live = spec.then_live
        rare.pause_seconds = spec.pause_seconds
        return rare


class _Mark:
    """One of a leg's booleans that are seldom looked at: together they take the room of one."""

    __slots__ = ("_bit",)

    def __init__(self, bit: int) -> None:
        self._bit = bit

    def __get__(self, leg: Leg, owner: type[Leg] | None = None) -> bool:
        return leg._marks & self._bit != 0

    def __set__(self, leg: Leg, value: bool) -> None:
        leg._marks = leg._marks | self._bit if value else leg._marks & ~self._bit


class Leg:
    """A leg is in exactly one state: live (`group` is set), behind (`channel` is set, no group), over (neither).

    While it is live and shared its cursor is its group's, so that a burst costs nothing per leg.
    """

    __slots__ = (
        "_marks",
        "_rare",
        "channel",
        "cursor",
        "filter",
        "group",
        "instance",
        "joined_at",
        "session",
        "slot",
        "stream",
        "told",
    )

    synced = _Mark(_SYNCED)
    first_read = _Mark(_FIRST_READ)  # nothing was read on this connection yet
    parked = _Mark(_PARKED)  # ahead of its channel, which wakes it
    over = _Mark(_OVER)

    def __init__(self, session: Session, spec: LegSpec) -> None:
        self.session = session
        self.stream = spec.stream
        self.cursor = spec.cursor.seq
        self.instance = spec.cursor.instance
        self.filter = None if spec.filter is None or spec.filter.everything else spec.filter
        self._marks = _FIRST_READ | (_SYNCED if spec.synced else 0)
        self._rare = _Rare.of(spec)
        self.channel: Channel | None = None
        self.group: Group | None = None
        self.slot = -1  # place in the group's tight loop, or among those that are delivered to by their session
        self.joined_at = 0.0
        self.told = False  # "caught up" was said and nothing since

    @property
    def place(self) -> int:
        """Everything up to here was handed to the pipe."""
        return self.cursor if self.group is None else self.group.place_of(self)

    @property
    def gone_head(self) -> int | None:
        """The head at which the stream was dropped, None while it is there."""
        return None if self._rare is None else self._rare.gone_head

    @gone_head.setter
    def gone_head(self, head: int | None) -> None:
        if self._rare is None and head is not None:
            self._rare = _Rare()
        if self._rare is not None:
            self._rare.gone_head = head

    @property
    def until(self) -> int | None:
        """The last seq that is its own to read, None while there is no such end."""
        return None if self._rare is None else self._rare.until

    @until.setter
    def until(self, seq: int | None) -> None:
        if self._rare is None and seq is not None:
            self._rare = _Rare()
        if self._rare is not None:
            self._rare.until = seq

    @property
    def history_left(self) -> int | None:
        """Records of history that may still be said, None without a bound."""
        return None if self._rare is None else self._rare.left

    @history_left.setter
    def history_left(self, records: int | None) -> None:
        if self._rare is not None:
            self._rare.left = records

    @property
    def limit_ends(self) -> bool:
        return self._rare is not None and self._rare.limit_ends

    @property
    def then_live(self) -> bool:
        return self._rare is not None and self._rare.then_live

    @property
    def pause_seconds(self) -> float:
        return 0.0 if self._rare is None else self._rare.pause_seconds

    @property
    def lives(self) -> bool:
        """Its history is over: what it reads from the log, because it lags or because that was faster, is told as live."""
        return self.then_live and self.until is None

    def select(self, wanted: Filter | None) -> None:
        """Other records from here on."""
        if wanted != self.filter and not self.over:
            self.leave()
            self.filter = wanted
            self.session.kick(self)

    def leave(self) -> None:
        """Out of the live set, remembering the place."""
        if self.group is not None:
            self.cursor = self.group.place_of(self)
            group, self.group = self.group, None
            group.remove(self)
            if self.channel is not None:
                self.channel.left(self)

    def detach(self) -> None:
        """Away from the stream for good."""
        self.leave()
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.detach(self)
