"""`GET /api/v1/events`: the checks in the order of the contract, and then a stream."""

from __future__ import annotations

from collections.abc import Mapping

from seamark.access.tokens import TokenHolder
from seamark.errors import InvalidSubscription
from seamark.flags import watch_docs
from seamark.flags.caller import Callers
from seamark.flags.directory import Directory
from seamark.flags.links import Base, Links
from seamark.flags.script import EventScript, Voice
from seamark.flags.signing import Signer
from seamark.flags.subscribe import Part, read_hints, read_parts, read_query
from seamark.flags.table import row
from seamark.flags.watch import EventStreams, Start
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange, Route

READ = "manifest.read"
PATH = "/api/v1/events"
_HEADERS = (
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-store"),
    (b"X-Accel-Buffering", b"no"),
)


class EventRoutes:
    def __init__(
        self,
        streams: EventStreams,
        voice: Voice,
        *,
        directory: Directory,
        callers: Callers,
        signer: Signer,
        base: Base,
        metrics: Metrics,
    ) -> None:
        self._streams = streams
        self._directory = directory
        self._callers = callers
        self._voice = voice
        self._signer = signer
        self._base = base
        self._hints = {
            where: metrics.counter("seamark_flags_resumed_total", where) for where in ("current", "behind", "ahead")
        }

    def table(self) -> list[Route]:
        return [row(watch_docs.OPERATIONS, "GET", PATH, self.events, hot=True)]

    async def events(self, exchange: Exchange) -> None:
        query = read_query(exchange.query)
        holder = self._callers.authenticate(exchange)
        if not holder.can(READ):
            raise self._callers.forbidden(READ)
        parts = read_parts(query.ns, holder.token.tenant)
        self._check(holder, parts)
        slot = self._streams.take(holder)
        try:
            starts = await self._streams.prepare(parts)
            links = Links(self._signer, base=self._base.of(exchange), principal=holder.name)
            script = EventScript(self._voice, links, {start.leg.stream: start.place for start in starts})
            self._streams.open(holder, script, starts, pipe=lambda: exchange.stream(headers=_HEADERS), slot=slot)
        except BaseException:
            slot.release()
            raise
        self._count(read_hints(query.since, exchange.header(b"last-event-id")), parts, starts)

    def _check(self, holder: TokenHolder, parts: list[Part]) -> None:
        """What a caller may not see is refused before it is said whether it exists."""
        for part in parts:
            if not holder.permits(READ, part.tenant, part.namespace):
                raise self._callers.forbidden(READ)
        for part in parts:
            if self._directory.namespace(part.tenant, part.namespace) is None:
                raise InvalidSubscription(
                    f"there is no namespace {part.namespace}", reason="unknown_namespace", namespace=part.namespace
                )

    def _count(self, hints: Mapping[str, int], parts: list[Part], starts: list[Start]) -> None:
        """Hints change nothing; they tell an operator how far behind those are who come back."""
        for part, start in zip(parts, starts, strict=True):
            hint = hints.get(part.namespace)
            if hint is not None:
                here = start.leg.cursor.seq
                self._hints["current" if hint == here else "behind" if hint < here else "ahead"].value += 1
