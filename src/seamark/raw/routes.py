"""The raw surface over HTTP: `/raw/{name}`, one route per thing that can be asked of a log stream."""

from __future__ import annotations

from functools import partial

import msgspec

from seamark import limits
from seamark.clock import NS_PER_MS
from seamark.errors import BadInput, Forbidden, SeamarkError
from seamark.log.protocol import Append, Log, ReadsNow, Receipt, Selector, TagMatch
from seamark.log.settings import StreamSettings
from seamark.log.watermarks import Cursor
from seamark.raw.docs import OPERATIONS
from seamark.raw.model import (
    ENCODER,
    PREFIX,
    DeleteBody,
    SettingsBody,
    decode_append,
    drafts_of,
    page_json,
    receipt_json,
    settings_of,
    state_dict,
    stream_of,
)
from seamark.raw.problem import raw_problem
from seamark.raw.watch import Watches
from seamark.wire import query
from seamark.wire.exchange import Exchange, Handler, Route
from seamark.wire.strictjson import decode

_SETTINGS = msgspec.json.Decoder(SettingsBody)
_DELETE = msgspec.json.Decoder(DeleteBody)
_NEW_STREAM = StreamSettings()
_RECORDS_QUERY = frozenset({"after", "limit", "bytes", "synced"})
_LIST_QUERY = frozenset({"prefix", "after", "limit"})
_SEQ_QUERY = frozenset({"at_ms"})
LIST_MAX = 1_000


class RawRoutes:
    """Handlers bound to one log."""

    def __init__(self, log: Log, watches: Watches, *, body_bytes_max: int = limits.BODY_BYTES_MAX) -> None:
        self._log = log
        self._watches = watches
        self._body_bytes_max = body_bytes_max

    def table(self) -> list[Route]:
        """The surface's rows of the route table."""
        hot_reads = isinstance(self._log, ReadsNow)
        records: Handler = self.records_now if hot_reads else self.records
        big, small = self._body_bytes_max, min(limits.SMALL_BODY_BYTES_MAX, self._body_bytes_max)
        return [
            _route("GET", "/raw", self.list, "read"),
            _route("POST", "/raw/{name}", self.append, "write", body=big, hot=True),
            _route("GET", "/raw/{name}", self.state, "read"),
            _route("PUT", "/raw/{name}", self.configure, "admin", body=small),
            _route("DELETE", "/raw/{name}", self.drop, "delete"),
            _route("GET", "/raw/{name}/records", records, "read", hot=hot_reads),
            _route("GET", "/raw/{name}/seq", self.seq, "read"),
            _route("POST", "/raw/{name}/delete", self.delete, "delete", body=small),
            _route("GET", "/raw/{name}/watch", self.watch, "read", hot=True),
        ]

    def append(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "write")
        body = decode_append(exchange.body)
        append = Append(stream=stream_of(name), drafts=drafts_of(body.records), key=body.key, create=_NEW_STREAM)
        self._log.writer.submit(append, partial(_appended, exchange, name))

    def records_now(self, exchange: Exchange) -> None:
        assert isinstance(self._log, ReadsNow)
        stream, cursor, most, size, synced = _reading(exchange)
        page = self._log.read_now(stream, cursor, records_max=most, bytes_max=size, synced=synced)
        exchange.respond(200, page_json(page))

    async def records(self, exchange: Exchange) -> None:
        stream, cursor, most, size, synced = _reading(exchange)
        page = await self._log.read(stream, cursor, records_max=most, bytes_max=size, synced=synced)
        exchange.respond(200, page_json(page))

    async def watch(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "read")
        await self._watches.open(exchange, stream_of(name))

    async def seq(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "read")
        fields = query.parse(exchange.query, _SEQ_QUERY)
        if "at_ms" not in fields:
            raise BadInput("at_ms is required: milliseconds since the epoch")
        at_ms = query.number(fields, "at_ms", 0, most=limits.SEQ_MAX // NS_PER_MS)
        seq = await self._log.seq_at(stream_of(name), at_ms * NS_PER_MS)
        exchange.respond(200, ENCODER.encode({"stream": name, "seq": seq}))

    async def list(self, exchange: Exchange) -> None:
        fields = query.parse(exchange.query, _LIST_QUERY)
        most = query.number(fields, "limit", LIST_MAX, most=LIST_MAX) or LIST_MAX
        after = fields.get("after", "")
        states = await self._log.streams(
            prefix=PREFIX + fields.get("prefix", ""), after=PREFIX + after if after else "", limit=most
        )
        names = [(state, state.name.removeprefix(PREFIX)) for state in states]
        shown = [state_dict(state) for state, name in names if exchange.principal.may("read", name)]
        # The next page starts after the last name that was looked at, whether or not it may be shown.
        following = names[-1][1] if len(states) == most else None
        exchange.respond(200, ENCODER.encode({"streams": shown, "next": following}))

    async def state(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "read")
        exchange.respond(200, ENCODER.encode(state_dict(await self._log.state(stream_of(name)))))

    async def configure(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "admin")
        body = decode(exchange.body, _SETTINGS) if exchange.body else SettingsBody()
        done = await self._log.configure(stream_of(name), settings_of(body))
        answer = {"created": done.created, **state_dict(done.state)}
        exchange.respond(201 if done.created else 200, ENCODER.encode(answer))

    async def drop(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "delete")
        dropped = await self._log.drop(stream_of(name))
        exchange.respond(200, ENCODER.encode({"stream": name, "existed": dropped.existed, "head": dropped.head}))

    async def delete(self, exchange: Exchange) -> None:
        name = _allowed(exchange, "delete")
        body = decode(exchange.body, _DELETE)
        if body.tag is not None and body.tag_prefix is not None:
            raise BadInput("give tag or tag_prefix, not both")
        text = body.tag if body.tag is not None else body.tag_prefix
        tag = None if text is None else TagMatch(text, prefix=body.tag is None)
        if body.before is None and tag is None and body.seqs is None:
            raise BadInput("give at least one of before, tag, tag_prefix, seqs")
        deleted = await self._log.delete(stream_of(name), Selector(before=body.before, tag=tag, seqs=body.seqs))
        exchange.respond(200, ENCODER.encode({"deleted": deleted.count, **state_dict(deleted.state)}))


def _route(method: str, path: str, handler: Handler, action: str, *, body: int = 0, hot: bool = False) -> Route:
    summary, openapi = OPERATIONS[method, path]
    return Route(method, path, handler, summary, action, raw_problem, body, hot, openapi)


def _allowed(exchange: Exchange, action: str) -> str:
    """The stream's name, if the caller may do this to it."""
    name = exchange.params["name"]
    if not exchange.principal.may(action, name):
        message = f"this key may not {action} stream {name!r}"
        raise Forbidden(message, action=action, resource=name)
    return name


def _reading(exchange: Exchange) -> tuple[str, Cursor, int, int, bool]:
    name = _allowed(exchange, "read")
    fields = query.parse(exchange.query, _RECORDS_QUERY)
    cursor = Cursor(query.number(fields, "after", 0))
    most = query.number(fields, "limit", 0, most=limits.PAGE_RECORDS_MAX) or limits.PAGE_RECORDS_DEFAULT
    size = query.number(fields, "bytes", 0, most=limits.PAGE_BYTES_MAX) or limits.PAGE_BYTES_DEFAULT
    return stream_of(name), cursor, most, size, query.flag(fields, "synced")


def _appended(exchange: Exchange, name: str, outcome: Receipt | SeamarkError) -> None:
    if isinstance(outcome, Receipt):
        exchange.respond(201 if outcome.created else 200, receipt_json(outcome, name))
    else:
        status, body, headers = raw_problem(outcome, exchange.request_id)
        exchange.respond(status, body, headers=headers)
