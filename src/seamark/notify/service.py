"""Notifications in the log: where each event type's are, how they come in, and how an operator takes them out."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from seamark.errors import StreamNotFound
from seamark.log.protocol import Append, Done, Log, Selector, StreamState
from seamark.log.settings import StreamSettings
from seamark.notify.eventtype import EventType
from seamark.notify.options import NotifySettings
from seamark.notify.request import Request
from seamark.notify.topic import STREAM_PREFIX, stream_of
from seamark.notify.validate import generic_notification, generic_stream, notification


class Notifications:
    """All streams of the surface. Those of the schema are made at the start, others when they are first named."""

    def __init__(self, log: Log, options: NotifySettings) -> None:
        self.log = log
        self.schema = options.schema
        self._generic = _indexed(options.streams)
        self._settings = {event.name: _indexed(event.settings(options.streams)) for event in options.schema}
        self.prepared = False

    async def prepare(self) -> None:
        """Make the streams of the schema, and bring those that were there to their present policy."""
        for event in self.schema:
            wanted = self._settings[event.name]
            try:
                state = await self.log.state(event.stream)
            except StreamNotFound:
                await self.log.configure(event.stream, wanted)
            else:
                if state.settings != wanted:
                    await self.log.configure(event.stream, wanted)
        self.prepared = True

    def settings(self, event: EventType | None) -> StreamSettings:
        return self._generic if event is None else self._settings[event.name]

    def submit(self, event: EventType | None, request: Request, done: Done) -> None:
        """Store a notification. Raises BadField or BadFilter for one that is not in order."""
        if event is None:
            stream, draft = generic_stream(request.event_type), generic_notification(request)
        else:
            stream, draft = event.stream, notification(event, request)
        self.log.writer.submit(Append(stream=stream, drafts=(draft,), create=self.settings(event)), done)

    async def state(self, stream: str, event: EventType | None) -> StreamState:
        """Where a stream stands; it is made if nobody has named it before."""
        return await self.found(stream) or (await self.log.configure(stream, self.settings(event))).state

    async def found(self, stream: str) -> StreamState | None:
        """The same without making any."""
        try:
            return await self.log.state(stream)
        except StreamNotFound:
            return None

    # -- for operators

    async def delete(self, name: str, seq: int) -> bool:
        """Whether there was such a notification. `name` is an event type's, or a stream's."""
        stream = await self._find(name)
        if stream is None:
            return False
        return (await self.log.delete(stream, Selector(seqs=(seq,)))).count > 0

    async def wipe(self, name: str) -> bool:
        """Whether there is such a stream. Its numbers go on, and whoever watches it stays."""
        stream = await self._find(name)
        if stream is not None:
            await self._empty(stream)
        return stream is not None

    async def wipe_all(self) -> None:
        async for state in self._all():
            await self._empty(state.name)

    async def _empty(self, stream: str) -> None:
        head = (await self.log.state(stream)).marks.head
        if head:
            await self.log.delete(stream, Selector(before=head + 1))

    async def _find(self, name: str) -> str | None:
        event = self.schema.resolve(name)
        wanted = stream_of(name) if event is None else event.stream
        lower = wanted.lower()
        found = None
        async for state in self._all():
            if state.name == wanted:
                return wanted
            if event is None and state.name.lower() == lower:
                found = state.name
        return found

    async def _all(self) -> AsyncIterator[StreamState]:
        after = STREAM_PREFIX
        while states := await self.log.streams(prefix=STREAM_PREFIX, after=after):
            for state in states:
                yield state
            after = states[-1].name


def _indexed(settings: StreamSettings) -> StreamSettings:
    """Filters of watches and replays are selective as a rule."""
    return msgspec.structs.replace(settings, indexed=True)
