"""The answering half of a connection: turns start when there is room, and their answers leave in order."""

from __future__ import annotations

import asyncio
import enum
import sys
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from seamark import limits
from seamark.http import answer
from seamark.http.transport_pipe import TransportPipe
from seamark.http.turn import AsgiTurn, PlaneExchange, Turn

if TYPE_CHECKING:
    from seamark.http.plane import Plane


class Phase(enum.IntEnum):
    """What the connection expects from the client."""

    FRESH = 0  # nothing yet: a new connection owes its first headers
    IDLE = 1  # between requests
    HEAD = 2
    BODY = 3
    DEAF = 4  # nothing more: what still comes is thrown away
    CLOSING = 5  # closed, the last bytes are on their way


DEAF = Phase.DEAF  # a global is cheaper than an attribute of the enumeration


class OrderedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with one queue of turns in front of it, for hot exchanges and ASGI cycles alike."""

    def __init__(
        self,
        plane: Plane,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.plane = plane
        self.front = plane.front
        self.monotonic = plane.front.clock.monotonic
        self.turns: deque[Turn] = deque()
        self.waiting = 0  # turns at the end that have not started, for want of room
        self.unfed = b""  # received and not yet parsed, for want of room
        self.busy = False  # in the parser or in here: what is answered now is written afterwards
        self.held = False  # reading is paused because turns wait
        self.flush_due = False
        self.continue_due = False
        self.deserted = False  # the client has stopped speaking, and may have left
        self.midway = False  # the last turn's request was not read to its end
        self.unwritten = 0  # answer bytes not yet given to the transport
        self.phase = Phase.FRESH
        self.since = 0.0
        self.left = 0  # unsent bytes when progress was last looked at
        self.discarded = 0

    # -- what turns call
    def answered(self, turn: Turn) -> None:
        """`turn` has its answer. Several in one tick are written together; a stream begins in the next one, because
        its owner is set only after this returns."""
        assert turn.answer is not None
        self.unwritten += len(turn.answer)
        if self.busy or turn is not self.turns[0]:
            return
        if len(self.turns) > 1 or turn.pipe is not None:
            self._flush_soon()
        elif not self._write_only(turn):
            self._advance()

    def attend(self, exchange: PlaneExchange, result: Awaitable[None]) -> None:
        """A coroutine route: it gets a task, and its exception an answer."""
        task = self.loop.create_task(_attended(exchange, result))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def start_cycle(self, turn: AsgiTurn) -> None:
        super()._start_asgi_task(turn.cycle, turn.app)

    # -- what uvicorn calls
    def on_response_complete(self) -> None:
        """The ASGI cycle whose turn it is has written its answer."""
        self.server_state.total_requests += 1
        turn = self.turns.popleft()
        assert isinstance(turn, AsgiTurn)
        if self.transport.is_closing():
            self._closing()
        elif turn.cycle.more_body and self.expect_100_continue and not turn.cycle.body:
            self._linger()  # the client may still wait for a word, or be sending: where its next request starts is unclear
        elif turn.last:
            self._close()
        else:
            if not self.held:
                self.flow.resume_reading()  # a large body stops it, and the app need not have asked for more
            self._rest()
            self._flush_soon()

    def shutdown(self) -> None:
        """What has begun is finished, nothing else is."""
        if self.turns:
            for turn in self.turns:
                if isinstance(turn, AsgiTurn):
                    turn.cycle.keep_alive = False
            if self.phase is Phase.IDLE:
                self.turns[-1].last = True
                self.phase = DEAF
        elif self.phase in (Phase.FRESH, Phase.IDLE):
            self._close()

    def abort(self) -> None:
        self.transport.abort()

    def inspect(self, now: float) -> None:
        raise AssertionError("the reading half knows what is due")

    def pause_writing(self) -> None:
        super().pause_writing()
        self.left = self._unsent()
        if self.phase is Phase.IDLE:
            self.since = self.plane.now

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.turns:
            self._flush_soon()

    # -- order
    def _admit(self, turn: Turn) -> None:
        """Take a turn in, and start it if there is room."""
        self.turns.append(turn)
        if self.waiting == 0 and self._may_start(len(self.turns) - 1):
            turn.start()
            return
        self.waiting += 1
        if not self.held:
            self.held = True
            self.flow.pause_reading()

    def _may_start(self, at: int) -> bool:
        """The first turn may unless the client takes no answers; others only beside their like: a read must see what
        an earlier write did, and an ASGI app writes straight to the transport."""
        if self.flow.write_paused:
            return False
        if at == 0:
            return True
        turn, before = self.turns[at], self.turns[at - 1]
        return (
            type(turn) is PlaneExchange
            and type(before) is PlaneExchange
            and turn.method == before.method
            and at < limits.PIPELINE_MAX
            and self.unwritten < limits.ANSWER_BYTES_PENDING_MAX
        )

    def _advance(self) -> None:
        """Write what can be written, start what may now start, until neither moves."""
        if self.busy:
            return
        turns = self.turns
        if len(turns) == 1 and not self.waiting and self._write_only(turns[0]):
            return
        self.busy = True
        try:
            while self._write_answers() and self.waiting and self._start_waiting():
                pass
        finally:
            self.busy = False
        if self.held and not self.waiting:
            if self.unfed:
                self._flush_soon()
            else:
                self.held = False
                self.flow.resume_reading()

    def _write_only(self, turn: Turn) -> bool:
        """The usual case, one request and its answer, without the machinery of the others."""
        if turn.answer is None or turn.last or turn.pipe is not None:
            return False
        self.turns.popleft()
        self.unwritten = 0
        if not self.transport.is_closing():
            self.transport.write(turn.answer)
        self._rest()
        return not self.held

    def _write_answers(self) -> bool:
        """Everything answered from the front on, in one write. False: the connection has no further turn."""
        turns = self.turns
        out: list[bytes] = []
        ending: Turn | None = None
        while turns and ending is None:
            turn = turns[0]
            if turn.answer is None:
                break
            turns.popleft()
            out.append(turn.answer)
            if turn.last or turn.pipe is not None:
                ending = turn
        self.unwritten = 0
        if out and not self.transport.is_closing():  # uvloop raises on a closed transport
            self.transport.write(out[0] if len(out) == 1 else b"".join(out))
        if ending is not None:
            self._end(ending)
            return False
        if not turns:
            self._rest()
        return True

    def _start_waiting(self) -> bool:
        started = False
        while self.waiting and self._may_start(len(self.turns) - self.waiting):
            turn = self.turns[len(self.turns) - self.waiting]
            self.waiting -= 1
            turn.start()
            started = True
        return started

    def _rest(self) -> None:
        """Nothing is owed to the client."""
        if self.phase is Phase.IDLE:
            self.since = self.plane.now
        elif self.continue_due:
            self.continue_due = False
            if not self.transport.is_closing():
                self.transport.write(answer.CONTINUE)

    def _flush_soon(self) -> None:
        if not self.flush_due:
            self.flush_due = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self.flush_due = False
        if self.phase is Phase.CLOSING:
            return
        if self.unfed and not self.waiting and self.phase < DEAF:
            data, self.unfed = self.unfed, b""
            self._feed(data)
        self._advance()

    def _feed(self, data: bytes) -> None:
        raise AssertionError("the reading half parses")

    # -- endings
    def _end(self, turn: Turn) -> None:
        if turn.pipe is not None:
            self._hand_over(turn.pipe, last=turn.last)
        elif self.midway:
            self._linger()
        else:
            self._close()

    def _hand_over(self, pipe: TransportPipe, *, last: bool) -> None:
        """The transport becomes the stream's; nothing of this connection stays. Requests behind it are not served, and
        nobody may take half of one for a whole: then the connection ends with the stream."""
        transport = self.transport
        keeps = not (last or self.turns or self.unfed) and self.phase is Phase.IDLE
        self.flow.resume_reading()
        self.phase = Phase.CLOSING
        self._forget()
        self.connections.discard(self)
        self.plane.leave(self)
        self.parser = None  # type: ignore[assignment]
        if transport.is_closing() or self.deserted:
            pipe.lost()
            transport.close()
            return
        transport.set_protocol(pipe)
        pipe.attach(transport, keeps=keeps)

    def _close(self) -> None:
        self._closing()
        self.transport.close()

    def _closing(self) -> None:
        self.phase = Phase.CLOSING
        self.since = self.plane.now
        self.left = self._unsent()

    def _inspect_unsent(self, now: float, age: float) -> None:
        """The client owes us its reading: unsent bytes must become fewer."""
        left = self._unsent()
        if left < self.left:
            self.since = now
        elif age > self.plane.patience.write_stall_seconds:
            self.transport.abort()
        self.left = left

    def _unsent(self) -> int:
        """Bytes that the peer has not acknowledged: those that wait here, and those in the kernel's queue. Without the
        latter a slow reader of a fast server seems to make no progress for megabytes."""
        waiting = self.transport.get_write_buffer_size()
        handle = self.transport.get_extra_info("socket")
        try:
            import fcntl  # not everywhere
            import termios

            queued = fcntl.ioctl(handle.fileno(), termios.TIOCOUTQ, b"\0" * 4)
        except (ImportError, OSError, ValueError, AttributeError):
            return waiting
        return waiting + int.from_bytes(queued, sys.byteorder)

    def _linger(self) -> None:
        """Close the sending half and read on a little: closing over unread bytes would reset the connection, and the
        client might never see the answer."""
        if self.scheme == "https" or self.transport.is_closing():
            self._close()
            return
        self.phase = DEAF
        self.since = self.plane.now
        self.flow.resume_reading()
        self.transport.write_eof()

    def _discard(self, data: bytes) -> None:
        self.discarded += len(data)
        if self.discarded > limits.LINGER_BYTES_MAX:
            self.transport.abort()

    def _forget(self) -> None:
        """Let go of turns that will never be answered."""
        while self.turns:
            self.turns.popleft().lost()
        self.waiting = 0
        self.unfed = b""


async def _attended(exchange: PlaneExchange, result: Awaitable[None]) -> None:
    try:
        await result
    except Exception as error:
        exchange.fail(error)
