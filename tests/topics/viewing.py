"""Watching topics without sockets: one reader of a rig's session, and what its pipe took, as bytes and as frames."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, NamedTuple

from seamark.stream.sse import Comment, Event, Parser
from seamark.topics.sessions import WatchSession
from tests.stream.conftest import TapPipe
from tests.topics.rig import TopicsRig


class Frame(NamedTuple):
    """One event; `place` is what its id stands for, or the id itself where that is opaque."""

    event: str
    body: Any
    place: Any = None


def place_of(event_id: str) -> Any:
    if not event_id or event_id.startswith("ckpt_"):
        return event_id or None
    return json.loads(base64.urlsafe_b64decode(event_id + "=" * (-len(event_id) % 4)))


def id_of(**places: int) -> bytes:
    """The id that a client would have seen at these places."""
    return base64.urlsafe_b64encode(json.dumps(places).encode()).rstrip(b"=")


def frames_of(raw: bytes) -> list[Frame]:
    """Everything that was said; a heartbeat is a frame without a body."""
    frames = []
    for event in Parser(comments=True).feed(raw):
        if isinstance(event, Comment):
            frames.append(Frame(event.text, None))
        else:
            assert isinstance(event, Event)
            frames.append(Frame(event.event, json.loads(event.data), place_of(event.id)))
    return frames


class Viewer:
    """A connection to one session."""

    def __init__(self, rig: TopicsRig, wid: str) -> None:
        self.rig = rig
        self.wid = wid
        self.pipe = TapPipe()

    @property
    def session(self) -> WatchSession:
        return self.rig.surface.watches.sessions.find(self.wid)

    async def open(self, last_event_id: bytes = b"") -> Viewer:
        await self.rig.surface.watches.open(self.session, last_event_id, lambda: self.pipe)
        await settle()
        return self

    async def again(self, last_event_id: bytes = b"") -> Viewer:
        """The same session over a new connection."""
        return await Viewer(self.rig, self.wid).open(last_event_id)

    @property
    def raw(self) -> bytes:
        return b"".join(self.pipe.taken)

    @property
    def frames(self) -> list[Frame]:
        return frames_of(self.raw)

    def seqs(self, topic: str | None = None) -> list[int]:
        """The seqs of all records, as they came."""
        return [
            record["$seq"]
            for frame in self.frames
            if frame.event == "record" and topic in (None, frame.body["topic"])
            for record in frame.body["records"]
        ]


async def watch(rig: TopicsRig, *names: str, starts: dict[str, Any] | None = None, **options: object) -> Viewer:
    """A new session with its stream open, on these topics from their beginning, or from where `starts` says."""
    body = {name: {} for name in names} | (starts or {})
    answer = await rig.call("POST", "/watch", {"topics": body, **options})
    return await Viewer(rig, answer["wid"]).open()


async def settle(turns: int = 40) -> None:
    """Let the loop turn until nothing is left to do."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def pass_time(rig: TopicsRig, seconds: float, step: float = 0.1) -> None:
    """Time goes by, a little at a time."""
    for _ in range(round(seconds / step)):
        rig.clock.advance(step)
        rig.assembly.wheel.advance()
        await settle(3)
