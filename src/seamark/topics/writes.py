"""The write route, from a request to the log and from the log's receipt to an answer, without a task in between."""

from __future__ import annotations

from collections.abc import Awaitable

from seamark.clock import Clock
from seamark.errors import Forbidden, RecordTooLarge, SeamarkError, StreamFull, StreamNotFound
from seamark.log.protocol import Append, Receipt
from seamark.log.settings import StreamSettings
from seamark.topics.body import check_media, flag, query_fields
from seamark.topics.model import DEFAULT_SETTINGS, check_name, is_name, resolved, settings_of, stream_of
from seamark.topics.problem import topics_problem
from seamark.topics.render import receipt_json
from seamark.topics.service import Topics
from seamark.topics.write import WriteBody, check_count, decode_write, drafts_of, key_of, size_of
from seamark.wire.exchange import Exchange


class Writes:
    """Handles writes. Only a write that brings a configuration, or that might make one topic too many, has to know first
    whether its topic exists."""

    def __init__(self, topics: Topics, clock: Clock) -> None:
        self._topics = topics
        self._clock = clock

    def handle(self, exchange: Exchange, name: str) -> Awaitable[None] | None:
        """An awaitable only when the log cannot say at once what there is."""
        begun = self._clock.monotonic()
        check_media(exchange)
        body = decode_write(exchange.body)
        exists: bool | None = None
        if body.config is not None or self._topics.full:
            exists = self._topics.exists_now(name)
            if exists is None:
                return self._ask_first(exchange, name, body, begun)
        self._submit(exchange, name, body, begun, exists)
        return None

    async def _ask_first(self, exchange: Exchange, name: str, body: WriteBody, begun: float) -> None:
        self._submit(exchange, name, body, begun, await self._topics.exists(name))

    def _submit(self, exchange: Exchange, name: str, body: WriteBody, begun: float, exists: bool | None) -> None:
        if body.config is not None and not exists and not exchange.principal.may("admin", name):
            raise Forbidden(f"this key may not make topic {name} with a configuration", action="admin", resource=name)
        check_count(len(body.records))
        append = Append(
            stream=stream_of(name), drafts=drafts_of(body), key=key_of(exchange, body), create=self._creation(name, body, exists)
        )  # fmt: skip
        listed = not exchange.query or flag(query_fields(exchange.query), "return_seqs", True)
        self._topics.log.writer.submit(append, _Answer(exchange, append, self._clock, begun, seqs=listed))

    def _creation(self, name: str, body: WriteBody, exists: bool | None) -> StreamSettings | None:
        """What the topic is made with if there is none; None when it is not to be made. `exists` None: that is not known,
        and then there is room for another. Raises BadInput, StreamNotFound, QuotaExceeded."""
        config = body.config
        if exists and config is not None:
            return None  # gone since: then it is not there, for nobody looked whether this caller may bring a configuration
        wanted = body.create if body.create is not None else config is None or config.auto_create
        if not wanted:
            if not is_name(name):
                raise StreamNotFound(f"there is no topic {name}", stream=stream_of(name))
            return None
        check_name(name)
        if exists is False:
            self._topics.check_room()
        return DEFAULT_SETTINGS if config is None else settings_of(resolved(config, name))


class _Answer:
    """What is done with the log's verdict."""

    __slots__ = ("_append", "_begun", "_clock", "_exchange", "_seqs")

    def __init__(self, exchange: Exchange, append: Append, clock: Clock, begun: float, *, seqs: bool) -> None:
        self._exchange = exchange
        self._append = append
        self._clock = clock
        self._begun = begun
        self._seqs = seqs

    def __call__(self, outcome: Receipt | SeamarkError) -> None:
        exchange = self._exchange
        if isinstance(outcome, Receipt):
            seconds = self._clock.monotonic() - self._begun
            body = receipt_json(outcome, len(self._append.drafts), seconds, seqs=self._seqs)
            exchange.respond(201 if outcome.created else 200, body)
            return
        status, problem, headers = topics_problem(_never_fits(outcome, self._append), exchange.request_id)
        exchange.respond(status, problem, headers=headers)


def _never_fits(error: SeamarkError, append: Append) -> SeamarkError:
    """A full topic can be made room in, but not for a batch that is larger than all it may hold."""
    if not isinstance(error, StreamFull):
        return error
    records_max, bytes_max = error.fields["cap_records"], error.fields["cap_bytes"]
    size = size_of(append.drafts)
    if records_max and len(append.drafts) > records_max:
        return RecordTooLarge(
            f"{len(append.drafts)} records do not fit a topic that holds {records_max}", max=records_max
        )
    if bytes_max and size > bytes_max:
        return RecordTooLarge(f"{size} bytes do not fit a topic that holds {bytes_max}", bytes=size, max=bytes_max)
    return error
