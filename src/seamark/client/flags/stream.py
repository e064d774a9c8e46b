"""The client's only I/O: event streams, and the snapshots that they lead to. One task for each stream, and one for each namespace
on it, so that what one namespace fetches or lints keeps no other waiting, and its own events are taken in their order."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from seamark.client.flags.event import BadEvent, Resync, Said, Snapshot, read_event
from seamark.client.flags.inbox import Inbox
from seamark.client.flags.place import NoPlace, Server
from seamark.client.flags.retry import Chance, Pace, retry_after, system_chance
from seamark.client.flags.status import Change, State
from seamark.client.flags.subscription import Part, events_target, shards
from seamark.client.flags.track import RECONNECT, SLOW, Fetch, Track
from seamark.client.http import Answer, HttpClient, NoAnswer
from seamark.errors import ArchiveTooLarge, BadArchive
from seamark.limits import (
    ARCHIVE_BYTES_MAX,
    CLIENT_EVENT_BYTES_MAX,
    CLIENT_RETRY_AFTER_SECONDS_MAX,
    CLIENT_SNAPSHOT_TRIES_MAX,
    CLIENT_STRANGE_ANSWERS_MAX,
)
from seamark.manifest.archive import unpack
from seamark.stream.sse import Event, Parser, SseError

T = TypeVar("T")
_TAG = re.compile(r'(?:W/)?"v[0-9]+-(sha256:[0-9a-f]{64})"')


class Hooks:
    """What a driver tells, and how it has longer work done. Everything happens in its loop."""

    def changed(self, change: Change) -> None:
        """Another closure answers."""

    async def held(self, track: Track) -> None:
        """What is held was replaced, or confirmed."""

    def troubled(self, track: Track) -> None:
        """What is held may be old now."""

    async def work(self, job: Callable[[], T]) -> T:
        """Unpacking and linting: milliseconds, or a second for ten thousand flags."""
        return job()


class _Over(Exception):
    """A connection serves no longer. `slow`: nothing will be better until somebody changes something. `asked`: seconds. `slug`:
    the namespace that could not be served, where the others could."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        slow: bool = False,
        asked: float = 0.0,
        fatal: bool = False,
        slug: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.slug = slug
        self.slow = slow
        self.asked = asked
        self.fatal = fatal


class Driver:
    """Keeps tracks up to date until it is cancelled."""

    def __init__(
        self,
        server: Server,
        tracks: Mapping[str, Track],
        hooks: Hooks,
        *,
        client: HttpClient,
        pace: Pace,
        chance: Chance = system_chance,
    ) -> None:
        self.server = server
        self.tracks = tracks
        self.hooks = hooks
        self.client = client
        self.pace = pace
        self.chance = chance

    async def run(self) -> None:
        wanted = {slug: track.wanted for slug, track in self.tracks.items()}
        async with asyncio.TaskGroup() as group:
            for parts in shards(wanted, self.server.owner):
                group.create_task(_Feed(self, parts).run())


class _Feed:
    """One event stream, opened again whenever it ends."""

    def __init__(self, driver: Driver, parts: Sequence[Part]) -> None:
        self._driver = driver
        self._parts = parts
        self._tracks = {part.slug: driver.tracks[part.slug] for part in parts}
        self._failures = 0
        self._blamed: dict[str, int] = {}
        self._strange = ""
        self._strangeness = 0

    async def run(self) -> None:
        while True:
            over = await self._until_over()
            self._count(over)
            is_end = self._strangeness >= CLIENT_STRANGE_ANSWERS_MAX
            for track in self._tracks.values():
                (track.stop if is_end else track.lost)(over.kind, str(over))
                self._driver.hooks.troubled(track)
            if is_end:
                return
            self._failures += 1
            pace, failures = self._driver.pace, max(self._failures, self._blamed.get(over.slug or "", 0))
            delay = pace.delay(failures, self._driver.chance, asked=over.asked)
            await asyncio.sleep(pace.slow if over.slow else delay)

    def _count(self, over: _Over) -> None:
        """A server that speaks another protocol says so on every stream, in the same words; a damaged byte does not."""
        if over.slug is not None:
            self._blamed[over.slug] = self._blamed.get(over.slug, 0) + 1
        if not over.fatal:
            self._strange, self._strangeness = "", 0
        elif str(over) == self._strange:
            self._strangeness += 1
        else:
            self._strange, self._strangeness = str(over), 1

    async def _until_over(self) -> _Over:
        try:
            await self._once()
        except _Over as over:
            return over
        except Exception as error:
            return _Over("fault", f"{type(error).__name__}: {error}")  # ours: what is held stays, and all begins again
        return _Over("connection", "the server ended the stream")

    def verified(self, slug: str) -> None:
        """A namespace is where the server is: the connection is good. One that others get along with and this one does not
        is still opened less and less often for its sake."""
        self._blamed.pop(slug, None)
        self._failures = 0

    async def _once(self) -> None:
        for track in self._tracks.values():
            track.connecting()
        answer = await self._connect()
        workers = {slug: _Worker(self._driver, self, track) for slug, track in self._tracks.items()}
        tasks = [asyncio.create_task(worker.run()) for worker in workers.values()]
        tasks.append(asyncio.create_task(self._listen(answer, workers)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            answer.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _connect(self) -> Answer:
        driver = self._driver
        versions = {slug: track.mirror.version for slug, track in self._tracks.items()}
        address = driver.server.below(events_target(self._parts, versions))
        headers = driver.server.headers(address, Accept="text/event-stream")
        try:
            answer = await driver.client.get(address, headers, seconds=driver.pace.connect)
        except NoAnswer as error:
            raise _Over("connection", str(error)) from None
        if answer.status != 200 or not answer.headers.get("content-type", "").startswith("text/event-stream"):
            status, asked = answer.status, retry_after(answer.headers.get("retry-after"))
            said = await _words(answer)
            raise _Over("refused", f"the server answered {status}{said}", slow=status in SLOW, asked=asked)
        for track in self._tracks.values():
            track.connected()
        return answer

    async def _listen(self, answer: Answer, workers: Mapping[str, _Worker]) -> None:
        parser = Parser(line_bytes_max=CLIENT_EVENT_BYTES_MAX)
        try:
            async for piece in answer.pieces(self._driver.pace.silence):
                for event in parser.feed(piece):
                    if isinstance(event, Event):
                        self._heard(event, workers)
        except NoAnswer as error:
            raise _Over("connection", str(error)) from None
        except SseError as error:
            raise _Over("event", error.message) from None

    def _heard(self, event: Event, workers: Mapping[str, _Worker]) -> None:
        try:
            said = read_event(event.event, event.data)
        except BadEvent as error:
            if error.fatal:
                raise _Over("protocol", str(error), fatal=True) from None
            worker = workers.get(error.namespace or "")
            if worker is None or event.id != f"{error.namespace}:{error.version}":
                raise _Over("event", str(error)) from None
            worker.doubt(error)
            return
        if said is None:
            return
        about = said.snapshot if isinstance(said, Resync) else said
        # No hash covers the version, but the id says it once more.
        if about.namespace not in workers or event.id != f"{about.namespace}:{about.version}":
            raise _Over("event", f"an event of {about.namespace[:80]!r} is not what its id says")
        workers[about.namespace].put(said)


class _Worker:
    """One namespace of one connection."""

    def __init__(self, driver: Driver, feed: _Feed, track: Track) -> None:
        self._driver = driver
        self._feed = feed
        self._track = track
        self._inbox = Inbox()
        self._news = asyncio.Event()

    def put(self, said: Said) -> None:
        if self._inbox.put(said):
            self._news.set()

    def doubt(self, error: BadEvent) -> None:
        """An event that is damaged, but says which version it is: that version is fetched."""
        if self._inbox.put(Snapshot(self._track.slug, error.version, None, None)):
            self._news.set()
            self._track.fail("event", str(error), error.version)
            self._driver.hooks.troubled(self._track)

    async def run(self) -> None:
        while True:
            while (said := self._inbox.take()) is None:
                self._news.clear()
                await self._news.wait()
            await self._take(said)

    async def _take(self, said: Said) -> None:
        renewals = self._inbox.renewals
        outcome = await self._do(lambda: self._track.hear(said))
        while isinstance(outcome, Fetch):
            if outcome.tries:
                await self._pause(self._driver.pace.delay(outcome.tries, self._driver.chance), renewals)
            if self._inbox.renewals != renewals:
                return  # something newer was offered whole
            outcome = await self._fetch(outcome)

    async def _do(self, job: Callable[[], Fetch | Change | None]) -> Fetch | Change | None:
        """Let the track do something, and tell what came of it. What has begun is finished and told also when the connection
        ends meanwhile: the next one must not find it half done, and no change may be in force untold."""
        doing = asyncio.ensure_future(self._done(job))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            while not doing.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([doing])
            doing.exception()
            raise

    async def _done(self, job: Callable[[], Fetch | Change | None]) -> Fetch | Change | None:
        track, hooks, before = self._track, self._driver.hooks, self._track.held
        outcome = await hooks.work(job)
        if track.state is State.LIVE:
            self._feed.verified(track.slug)
        if track.stale_since is not None:
            hooks.troubled(track)
        if isinstance(outcome, Change):
            hooks.changed(outcome)
        if track.held is not before:
            await hooks.held(track)
        return outcome

    async def _pause(self, seconds: float, renewals: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._inbox.renewals == renewals:
                    self._news.clear()
                    await self._news.wait()

    async def _fetch(self, fetch: Fetch) -> Fetch | Change | None:
        driver, track = self._driver, self._track
        try:
            address = driver.server.closure(fetch, track.slug, track.wanted)
            answer = await driver.client.get(address, driver.server.headers(address), seconds=driver.pace.connect)
            if answer.status != 200:
                return await self._refused(fetch, answer)
            try:
                body = await answer.read(ARCHIVE_BYTES_MAX, driver.pace.snapshot)
            finally:
                answer.close()
        except NoPlace as error:
            raise _Over("fetch", str(error), slug=track.slug) from None
        except NoAnswer as error:
            return self._again(fetch, "fetch", str(error))
        tag = _TAG.fullmatch(answer.headers.get("etag", ""))
        try:
            return self._or_over(await self._do(lambda: track.fetched(fetch, _files(body), tag[1] if tag else None)))
        except (BadArchive, ArchiveTooLarge) as error:
            return self._again(fetch, "snapshot", error.message)

    async def _refused(self, fetch: Fetch, answer: Answer) -> Fetch:
        status, asked = answer.status, retry_after(answer.headers.get("retry-after"))
        message = f"the closure of version {fetch.version} was answered with {status}{await _words(answer)}"
        if status in RECONNECT:
            raise _Over("fetch", message, asked=asked, slug=self._track.slug)
        again = self._again(fetch, "fetch", message)
        await self._pause(min(asked, CLIENT_RETRY_AFTER_SECONDS_MAX), self._inbox.renewals)
        return again

    def _again(self, fetch: Fetch, kind: str, message: str) -> Fetch:
        again = self._track.refused(fetch, kind, message)
        self._driver.hooks.troubled(self._track)
        return self._or_over(again)

    def _or_over(self, outcome: T) -> T:
        """What does not come to be what was promised may have been promised wrongly: a new stream promises anew."""
        if isinstance(outcome, Fetch) and outcome.tries >= CLIENT_SNAPSHOT_TRIES_MAX:
            error = self._track.error
            raise _Over("snapshot", "" if error is None else error.message, slug=self._track.slug)
        return outcome


def _files(body: bytes) -> Mapping[str, bytes]:
    """What an archive holds. Whatever else it has to say shows in the hash."""
    return unpack(body).files


async def _words(answer: Answer) -> str:
    """What a refusal says, for people."""
    try:
        body = await answer.read(4_096, 5.0)
    except NoAnswer:
        return ""
    finally:
        answer.close()
    text = "".join(letter if letter.isprintable() else " " for letter in body.decode("utf-8", "replace")).strip()
    return f": {text[:300]}" if text else ""
