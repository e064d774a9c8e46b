"""A session: one reader's stream, from its opening words through history and live to a close with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seamark.errors import BadInput
from seamark.limits import (
    CLOSE_LINGER_SECONDS_MAX,
    HEARTBEAT_SPREAD_PERCENT,
    LEGS_PER_SESSION_MAX,
)
from seamark.log.watermarks import Cursor
from seamark.stream.catch_up import CatchUp
from seamark.stream.dialect import Alike, Close, Script, Span
from seamark.stream.hub import Hub
from seamark.stream.leg import Leg, LegSpec
from seamark.stream.pipe import Block, Pipe
from seamark.stream.stall import Stall
from seamark.stream.wheel import Timer
from seamark.telemetry import events
from seamark.telemetry.logs import logger

OnClose = Callable[[Close | None], None]
OnProgress = Callable[[str, int], None]

_log = logger("stream")


class Session:
    """The owner of a pipe. Idle and live it is these slots and a timer: no task, no queue, no copy of anything.

    A pipe that pauses takes the session out of the live set, with its place; when the pipe resumes, the session reads
    the log from there, exactly as a reader that comes back with a cursor would.
    """

    __slots__ = (
        "_alike",
        "_beat",
        "_catch_up",
        "_deadline",
        "_dropped",
        "_linger",
        "_on_close",
        "_on_progress",
        "_stall",
        "closed",
        "deadline_seconds",
        "finite",
        "heartbeat_always",
        "heartbeat_seconds",
        "hub",
        "legs",
        "own_bytes",
        "paused",
        "pipe",
        "script",
        "surface",
        "wrote_at",
    )

    def __init__(
        self,
        hub: Hub,
        pipe: Pipe,
        script: Script,
        legs: Sequence[LegSpec],
        *,
        surface: str,
        heartbeat_seconds: float = 0.0,
        heartbeat_always: bool = False,
        deadline_seconds: float = 0.0,
        finite: bool = False,
        on_close: OnClose | None = None,
        on_progress: OnProgress | None = None,
    ) -> None:
        """`heartbeat_seconds` and `deadline_seconds` 0: none. `heartbeat_always`: on a fixed beat, also when the stream is busy. `finite`: end
        at the head found at the start. `on_close` is called exactly once, with None when the peer went away.
        `on_progress(stream, seq)` is called after bytes went to the pipe, never before."""
        if len(legs) > LEGS_PER_SESSION_MAX:
            raise BadInput("too many streams in one session", max=LEGS_PER_SESSION_MAX)
        self.hub = hub
        self.pipe = pipe
        self.script = script
        self.legs = tuple(Leg(self, spec) for spec in legs)
        self.surface = surface
        self.heartbeat_seconds = heartbeat_seconds
        self.heartbeat_always = heartbeat_always
        self.deadline_seconds = deadline_seconds
        self.finite = finite
        self.own_bytes = script.personal or on_progress is not None
        self._alike = script if self.own_bytes and isinstance(script, Alike) else None
        self.paused = False
        self.closed = False
        self.wrote_at = 0.0
        self._on_close = on_close
        self._on_progress = on_progress
        self._dropped = 0
        self._catch_up: CatchUp | None = None
        self._beat: Timer | None = None
        self._deadline: Timer | None = None
        self._stall: Stall | None = None
        self._linger: Timer | None = None
        pipe.owner = self

    def open(self) -> None:
        """Say the opening words and begin to read."""
        hub = self.hub
        hub.sessions.add(self)
        hub.metrics.counter("seamark_stream_sessions_total", self.surface).value += 1
        hub.metrics.gauge("seamark_stream_sessions", self.surface).value += 1
        if self.deadline_seconds:
            self._deadline = hub.wheel.add(self.deadline_seconds, self._expire)
        try:
            self.say(self.script.opening())
        except Exception as error:
            self.fail(error)
        if self.closed:
            return
        if hub.draining:
            self.close(Close.SHUTDOWN)
            return
        for leg in self.legs:
            hub.attach(leg)
        self._arm_beat(self.heartbeat_seconds)
        if not self.legs:
            self.close(Close.END)
        elif not self.paused:
            self._read()

    def close(self, reason: Close) -> None:
        """End the stream with the surface's closing event. Only the first call counts."""
        if self.closed:
            return
        try:
            raw = self.script.closing(reason)
        except Exception:
            _log.error(events.SESSION_FAILED, surface=self.surface, exc_info=True)
            raw = b""
        self._end(reason)
        self._linger = self.hub.wheel.add(CLOSE_LINGER_SECONDS_MAX, self.pipe.abort)
        self.pipe.close(Block(raw) if raw else None)

    def fail(self, error: BaseException) -> None:
        """End it because it cannot be served truthfully."""
        if not self.closed:
            _log.error(events.SESSION_FAILED, surface=self.surface, exc_info=error)
            self.close(Close.FAULT)

    def cursors(self) -> dict[str, Cursor]:
        """Where the reader is on each stream: everything up to there was handed to the pipe. Also after the end."""
        return {leg.stream: Cursor(leg.place, leg.instance) for leg in self.legs}

    @property
    def flowing(self) -> bool:
        return not self.paused and not self.closed

    # -- the pipe's owner

    def pause(self) -> None:
        if self.paused or self.closed:
            return
        self.paused = True
        for leg in self.legs:
            leg.leave()
        self._stall = Stall(self.hub, self.pipe, self._too_slow)

    def resume(self) -> None:
        if not self.paused or self.closed:
            return
        self._unpause()
        self._read()

    def gone(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if not self.closed:
            self._end(None)

    # -- what the readers of the log and the channels call

    def say(self, raw: bytes) -> None:
        if raw and not self.closed:
            self.wrote_at = self.hub.wheel.now()
            self.pipe.write(Block(raw))

    def deliver(self, leg: Leg, block: Block | None, span: Span, *, last: bool) -> None:
        """A live burst for a session that has bytes of its own (or wants to know about every burst)."""
        try:
            if block is not None and self._alike is not None:
                block = self._alike.live(block, span, last=last)
                leg.told = last
            elif self.script.personal:
                block = self._own_words(leg, block, span, last=last)
            elif block is not None:
                leg.told = False
            if self.closed:
                return
            leg.cursor = span.to  # before the write: it may pause us, and the block counts as handed over
            if block is not None:
                self.wrote_at = self.hub.wheel.now()
                self.pipe.write(block)
            self.progressed(leg, span.to)
        except Exception as error:
            self.fail(error)

    def _own_words(self, leg: Leg, block: Block | None, span: Span, *, last: bool) -> Block | None:
        """The burst as this session says it, with its "caught up" in the same block: a write is a system call."""
        script = self.script
        burst = block.raw if block else b""
        raw = script.stamp(burst, span)
        said = burst if raw is None else raw
        if said:
            leg.told = False
        tail = b""
        if last and not leg.told and not self.closed:
            tail = script.caught_up(span)
            leg.told = bool(tail)
        if raw is None and not tail:
            return block
        return Block(said + tail) if said or tail else None

    def say_caught_up(self, leg: Leg, span: Span) -> None:
        if not leg.told and self.flowing:
            raw = self.script.caught_up(span)
            leg.told = bool(raw)
            self.say(raw)

    def progressed(self, leg: Leg, seq: int) -> None:
        if self._on_progress is not None:
            self._on_progress(leg.stream, seq)

    def kick(self, leg: Leg) -> None:
        """The leg has something to read in the log."""
        if leg.over or not self.flowing:
            return
        if self._catch_up is None:
            self._catch_up = CatchUp(self)
        self._catch_up.add(leg)

    def caught_up(self) -> None:
        """The catch-up has nothing left to do."""
        self._catch_up = None

    def stream_gone(self, leg: Leg, head: int) -> None:
        """The leg's stream was dropped. A paused reader is told when it reads again."""
        leg.detach()
        leg.gone_head = head
        if self.flowing:
            self.say_dropped(leg)

    def say_dropped(self, leg: Leg) -> None:
        assert leg.gone_head is not None, "only a dropped stream is said to be"
        if not leg.over:
            self._dropped += 1
            leg.over = True
            try:
                self.say(self.script.dropped(leg.stream, leg.gone_head))
            except Exception as error:
                self.fail(error)
            self._maybe_over()

    def finish(self, leg: Leg) -> None:
        """The leg came to its own end."""
        leg.detach()
        leg.over = True
        self._maybe_over()

    # -- within

    def _read(self) -> None:
        for leg in self.legs:
            if not leg.over and leg.group is None and not leg.parked:
                self.kick(leg)

    def _maybe_over(self) -> None:
        if all(leg.over for leg in self.legs):
            self.close(Close.DROPPED if self._dropped == len(self.legs) else Close.END)

    def _end(self, reason: Close | None) -> None:
        self.closed = True
        for leg in self.legs:
            leg.detach()
            leg.over = True
        if self.paused:
            self._unpause()
        for timer in (self._beat, self._deadline):
            if timer is not None:
                timer.cancel()
        if self._catch_up is not None:
            self._catch_up.stop()
            self._catch_up = None
        hub = self.hub
        hub.sessions.discard(self)
        hub.metrics.gauge("seamark_stream_sessions", self.surface).value -= 1
        hub.metrics.counter("seamark_stream_closed_total", reason or "gone").value += 1
        if self._on_close is not None:
            try:
                self._on_close(reason)
            except Exception:
                _log.error(events.SESSION_FAILED, surface=self.surface, exc_info=True)

    def _unpause(self) -> None:
        self.paused = False
        if self._stall is not None:
            self._stall.end()
            self._stall = None

    # -- timers

    def _arm_beat(self, delay_seconds: float) -> None:
        if self.heartbeat_seconds and not self.closed:
            spread = 0.0 if self.heartbeat_always else self.heartbeat_seconds * HEARTBEAT_SPREAD_PERCENT / 100
            self._beat = self.hub.wheel.add(delay_seconds, self._on_beat, spread_seconds=spread)

    def _on_beat(self) -> None:
        period = self.heartbeat_seconds
        if self.paused:
            self._arm_beat(period)
            return
        quiet = period if self.heartbeat_always else self.hub.wheel.now() - self._last_written()
        if quiet < period:
            self._arm_beat(period - quiet)
            return
        try:
            raw = self.script.heartbeat()
        except Exception as error:
            self.fail(error)
            return
        if raw and not self.closed:
            self.wrote_at = self.hub.wheel.now()
            self.pipe.write(self.hub.block(raw))
        self._arm_beat(period)

    def _last_written(self) -> float:
        """Shared bursts leave their time with the group, not with each member."""
        if self.own_bytes:
            return self.wrote_at
        shared = [
            leg.group.wrote_at for leg in self.legs if leg.group is not None and leg.group.wrote_at >= leg.joined_at
        ]
        return max(self.wrote_at, *shared) if shared else self.wrote_at

    def _expire(self) -> None:
        self.close(Close.DEADLINE)

    def _too_slow(self) -> None:
        self.close(Close.SLOW)
