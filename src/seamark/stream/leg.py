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


class _History:
    """What is special about a leg's history. Few legs have any of it, and there may be a million of the others."""

    __slots__ = ("left", "limit_ends", "pause_seconds", "then_live", "until")

    def __init__(self) -> None:
        self.until: int | None = None
        self.left: int | None = None
        self.limit_ends = False
        self.then_live = False
        self.pause_seconds = 0.0

    @classmethod
    def of(cls, spec: LegSpec) -> _History | None:
        plain = spec.until is None and spec.history_max is None
        if plain and not (spec.limit_ends or spec.then_live or spec.pause_seconds):
            return None
        history = cls()
        history.until = spec.until
        history.left = spec.history_max
        history.limit_ends = spec.limit_ends
        history.then_live = spec.then_live
        history.pause_seconds = spec.pause_seconds
        return history


class Leg:
    """A leg is in exactly one state: live (`group` is set), behind (`channel` is set, no group), over (neither).

    While it is live and shared its cursor is its group's, so that a burst costs nothing per leg.
    """

    __slots__ = (
        "_history",
        "channel",
        "cursor",
        "filter",
        "first_read",
        "gone_head",
        "group",
        "instance",
        "joined_at",
        "over",
        "parked",
        "session",
        "slot",
        "stream",
        "synced",
        "told",
    )

    def __init__(self, session: Session, spec: LegSpec) -> None:
        self.session = session
        self.stream = spec.stream
        self.cursor = spec.cursor.seq
        self.instance = spec.cursor.instance
        self.filter = None if spec.filter is None or spec.filter.everything else spec.filter
        self.synced = spec.synced
        self._history = _History.of(spec)
        self.channel: Channel | None = None
        self.group: Group | None = None
        self.slot = -1  # place in the group's tight loop, or among those that are delivered to by their session
        self.joined_at = 0.0
        self.first_read = True  # nothing was read on this connection yet
        self.told = False  # "caught up" was said and nothing since
        self.parked = False  # ahead of its channel, which wakes it
        self.gone_head: int | None = None  # the stream was dropped at this head and the reader is not told yet
        self.over = False

    @property
    def place(self) -> int:
        """Everything up to here was handed to the pipe."""
        return self.cursor if self.group is None else self.group.place_of(self)

    @property
    def until(self) -> int | None:
        """The last seq that is its own to read, None while there is no such end."""
        return None if self._history is None else self._history.until

    @until.setter
    def until(self, seq: int | None) -> None:
        if self._history is None and seq is not None:
            self._history = _History()
        if self._history is not None:
            self._history.until = seq

    @property
    def history_left(self) -> int | None:
        """Records of history that may still be said, None without a bound."""
        return None if self._history is None else self._history.left

    @history_left.setter
    def history_left(self, records: int | None) -> None:
        if self._history is not None:
            self._history.left = records

    @property
    def limit_ends(self) -> bool:
        return self._history is not None and self._history.limit_ends

    @property
    def then_live(self) -> bool:
        return self._history is not None and self._history.then_live

    @property
    def pause_seconds(self) -> float:
        return 0.0 if self._history is None else self._history.pause_seconds

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
