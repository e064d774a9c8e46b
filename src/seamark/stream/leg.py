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


class Leg:
    """A leg is in exactly one state: live (`group` is set), behind (`channel` is set, no group), over (neither).

    While it is live and shared its cursor is its group's, so that a burst costs nothing per leg.
    """

    __slots__ = (
        "channel",
        "cursor",
        "filter",
        "first_read",
        "gone_head",
        "group",
        "history_left",
        "instance",
        "joined_at",
        "limit_ends",
        "over",
        "parked",
        "pause_seconds",
        "session",
        "slot",
        "stream",
        "synced",
        "then_live",
        "told",
        "until",
    )

    def __init__(self, session: Session, spec: LegSpec) -> None:
        self.session = session
        self.stream = spec.stream
        self.cursor = spec.cursor.seq
        self.instance = spec.cursor.instance
        self.filter = None if spec.filter is None or spec.filter.everything else spec.filter
        self.synced = spec.synced
        self.until = spec.until
        self.history_left = spec.history_max
        self.limit_ends = spec.limit_ends
        self.then_live = spec.then_live
        self.pause_seconds = spec.pause_seconds
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
    def lives(self) -> bool:
        """Its history is over: what it reads from the log, because it lags or because that was faster, is told as live."""
        return self.then_live and self.until is None

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
