"""Diff: what a topic holds after a cursor, at once or as soon as there is something."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from seamark import limits
from seamark.clock import Clock
from seamark.log.protocol import Page, StreamState
from seamark.log.record import Record
from seamark.log.watermarks import Cursor
from seamark.topics.body import or_default, parse_or
from seamark.topics.model import U32, U64, check_u64, config_of, stream_of
from seamark.topics.render import Variant, diff_json
from seamark.topics.service import Topics
from seamark.topics.waiting import Waiter
from seamark.wire.exchange import Exchange

_MS_PER_SECOND = 1_000


class DiffBody(msgspec.Struct, gc=False):
    """What a diff asks for; a number beyond its range is moved into it."""

    from_seq: U64 = 0
    limit: U32 = limits.PAGE_RECORDS_DEFAULT
    node: str | tuple[str, ...] | None = None
    include_tags: bool = False
    include_meta: bool = True
    wait_ms: U32 = 0
    max_batch_bytes: U64 = 0

    def __post_init__(self) -> None:
        check_u64(self.from_seq, "from_seq")
        check_u64(self.max_batch_bytes, "max_batch_bytes")


_DIFF = msgspec.json.Decoder(DiffBody)
_ALL_DEFAULTS = DiffBody()


class Diff:
    """One diff on its way. Told apart from its answer, because it may have to wait for something to say."""

    __slots__ = ("_begun", "_clock", "_exchange", "accept", "bytes_max", "cursor", "name", "records_max", "scanned", "stream", "variant", "wait_ms")  # fmt: skip

    def __init__(self, exchange: Exchange, name: str, body: DiffBody, clock: Clock) -> None:
        self._begun = clock.monotonic()
        self._clock = clock
        self._exchange = exchange
        self.name = name
        self.stream = stream_of(name)
        self.cursor = Cursor(min(body.from_seq, limits.SEQ_MAX))
        self.records_max = or_default(body.limit, limits.PAGE_RECORDS_DEFAULT, limits.TOPIC_RECORDS_MAX)
        self.bytes_max = or_default(body.max_batch_bytes, limits.PAGE_BYTES_DEFAULT, limits.PAGE_BYTES_MAX)
        self.wait_ms = min(body.wait_ms, limits.LONG_POLL_MS_MAX)
        self.variant = Variant(meta=body.include_meta, tags=body.include_tags)
        self.accept: Callable[[Record], bool] | None = None
        self.scanned = 0

    def exclude(self, node: str | tuple[str, ...], state: StreamState) -> None:
        """Leave out what these nodes wrote, unless the topic wants it otherwise; what nobody signed is never left out."""
        if config_of(state.settings).dedupe_node:
            nodes = frozenset((node,) if isinstance(node, str) else node)
            self.accept = lambda record: record.node not in nodes

    def took(self, page: Page) -> None:
        """Go on after this page if there is any reason to."""
        self.scanned += page.scanned
        self.cursor = page.cursor

    def answer(self, page: Page) -> None:
        fragments = page.each((self.variant, False), self.variant.record)  # as in the history of a watch
        seconds = self._clock.monotonic() - self._begun
        self._exchange.respond(200, diff_json(self.name, page, fragments, scanned=self.scanned, seconds=seconds))


class Diffs:
    """Answers diffs. What can be read and answered at once is, without a task."""

    def __init__(self, topics: Topics, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock

    def handle(self, exchange: Exchange, name: str) -> Awaitable[None] | None:
        """An awaitable only when there is something to wait for. Raises StreamNotFound, BadRequest, UnsupportedMedia."""
        body = parse_or(exchange, _DIFF, _ALL_DEFAULTS)
        diff = Diff(exchange, name, body, self._clock)
        topics, reads = self._topics, self._topics.reads
        if reads is None or topics.derived(name):
            return self._catch_up(diff, body)
        if body.node:
            diff.exclude(body.node, reads.state_now(diff.stream))
        page = reads.read_now(
            diff.stream, diff.cursor, records_max=diff.records_max, bytes_max=diff.bytes_max, accept=diff.accept
        )
        topics.activity.touch(diff.stream)
        diff.took(page)
        if diff.accept is not None and _cut_short(page):
            return self._wait(diff, None, topics.waiting.add(diff.stream))
        if diff.wait_ms and _says_nothing(page):
            return self._wait(diff, page, topics.waiting.add(diff.stream))
        diff.answer(page)
        return None

    async def _catch_up(self, diff: Diff, body: DiffBody) -> None:
        """Read by way of what may have to wait: a topic that is fed by others is brought up to date first."""
        if self._topics.derived(diff.name):
            await self._topics.before_read(diff.name)
        if body.node:
            diff.exclude(body.node, await self._topics.log.state(diff.stream))
        await self._wait(diff, None, self._topics.waiting.add(diff.stream))
        self._topics.activity.touch(diff.stream)

    async def _wait(self, diff: Diff, page: Page | None, waiter: Waiter) -> None:
        """Answer as soon as there is something to say, at the latest when the client's patience ends."""
        deadline = asyncio.get_running_loop().time() + diff.wait_ms / _MS_PER_SECOND
        with waiter:
            if page is None:
                page = await self._page(diff)
            while diff.wait_ms and _says_nothing(page) and await waiter.wait(deadline):
                page = await self._page(diff)
        diff.answer(page)

    async def _page(self, diff: Diff) -> Page:
        page = await self._topics.log.read(
            diff.stream, diff.cursor, records_max=diff.records_max, bytes_max=diff.bytes_max, accept=diff.accept
        )
        diff.took(page)
        return page


def _says_nothing(page: Page) -> bool:
    return not page.records and page.gap is None and page.caught_up


def _cut_short(page: Page) -> bool:
    """The filter passed over so much that the look was ended, with nothing to show for it but a cursor."""
    return page.scanned >= limits.SCAN_RECORDS_MAX and not page.records and page.gap is None and not page.caught_up
