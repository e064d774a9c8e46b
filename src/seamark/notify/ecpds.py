"""The plug-in `ecpds`: a user may watch a destination that ECPDS lists as one of theirs.

Every server of the file is asked with one account for all, and what they list is put together. By default all of them must
answer (`partial_outage_policy: strict`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import httpx
import msgspec

from seamark import contract, limits
from seamark.access.fetch import FAILURES, Fetcher
from seamark.access.memo import Memo
from seamark.access.user import User
from seamark.clock import Clock
from seamark.config import Settings
from seamark.errors import BadConfig, Forbidden, Refused, Unreachable
from seamark.kinds import Secret, is_loopback
from seamark.match.subject import WILDCARD
from seamark.notify.configtree import Node
from seamark.notify.eventtype import EventType, Schema
from seamark.notify.settings import refuse
from seamark.telemetry.metrics import Metrics

NAME = "ecpds"
PATH = "/ecpds/v1/destination/list"
UNAVAILABLE = "ECPDS cannot be reached or does not answer as it should"
DECIDED = ("allow", "deny_destination", "deny_match_key_missing", "unavailable")
ANSWERED = ("success", "http_401", "http_403", "http_5xx", "invalid_response", "unreachable")


class _List(msgspec.Struct, rename={"destinations": "destinationList"}):
    success: str
    destinations: list[dict[str, object]]


_LIST = msgspec.json.Decoder(_List)


def open_gate(*, settings: Settings, schema: Schema, clock: Clock, metrics: Metrics) -> Ecpds:
    """What the entry point names. Raises BadConfig."""
    values = settings.contract
    for name in ("ecpds.username", "ecpds.password", "ecpds.match_key"):
        if not values[name]:
            refuse(settings, name, "it is missing, and an event type has the plug-in ecpds", "text")
    match_key = str(values["ecpds.match_key"])
    for event in schema:
        field = event.fields.get(match_key)
        if NAME in event.auth.plugins and (field is None or not field.required):
            accepts = "an identifier that is required in every event type with the plug-in ecpds"
            refuse(settings, "ecpds.match_key", f"{match_key!r} is not one of {event.name}", accepts)
    password = values["ecpds.password"]
    assert isinstance(password, Secret)
    fetcher = Fetcher(
        timeout_seconds=_number(values["ecpds.request_timeout_seconds"]),
        connect_seconds=_number(values["ecpds.connect_timeout_seconds"]),
        bytes_max=limits.GATE_ANSWER_BYTES_MAX,
        auth=httpx.BasicAuth(str(values["ecpds.username"]), password.reveal()),
    )
    return Ecpds(
        fetcher,
        _servers(settings),
        match_key=match_key,
        target_field=str(values["ecpds.target_field"]),
        all_must_answer=values["ecpds.partial_outage_policy"] == "strict",
        memo=Memo(
            clock,
            seconds=_number(values["ecpds.cache_ttl_seconds"]),
            most=int(_number(values["ecpds.max_entries"])),
        ),
        metrics=metrics,
    )


class Ecpds:
    """A Gate."""

    def __init__(
        self,
        fetcher: Fetcher,
        servers: Sequence[str],
        *,
        match_key: str,
        target_field: str,
        all_must_answer: bool,
        memo: Memo[frozenset[str]],
        metrics: Metrics,
    ) -> None:
        self._fetcher = fetcher
        self._servers = servers
        self._match_key = match_key
        self._target_field = target_field
        self._all_must_answer = all_must_answer
        self._memo = memo
        self._metrics = metrics
        for outcome in DECIDED:
            metrics.counter("aviso_ecpds_access_decisions_total", outcome)
        for outcome in ANSWERED:
            metrics.counter("aviso_ecpds_fetch_total", outcome)
        size = metrics.gauge("aviso_ecpds_cache_size")
        metrics.on_scrape(lambda: setattr(size, "value", len(memo)))

    async def release(self, user: User, event: EventType, values: Mapping[str, str]) -> None:
        wanted = values.get(self._match_key, WILDCARD)
        if wanted == WILDCARD:
            self._decided("deny_match_key_missing")
            raise Forbidden(f"Access to this stream needs one value for '{self._match_key}'", action="read")
        try:
            allowed = await self._destinations(user.name)
        except Refused:
            self._decided("unavailable")
            raise
        if wanted not in allowed:
            self._decided("deny_destination")
            raise Forbidden("This user may not read this destination", action="read", resource=wanted)
        self._decided("allow")

    async def close(self) -> None:
        await self._memo.close()
        await self._fetcher.close()

    async def _destinations(self, name: str) -> frozenset[str]:
        known = self._memo.known(name)
        hit = "aviso_ecpds_cache_hits_total" if known is not None else "aviso_ecpds_cache_misses_total"
        self._metrics.counter(hit).value += 1
        return await self._memo.ask(name, lambda: self._listed(name)) if known is None else known

    async def _listed(self, name: str) -> frozenset[str]:
        """What all servers list for one user. Raises Unreachable."""
        lists = await asyncio.gather(*(self._listed_by(server, name) for server in self._servers))
        found = [names for names in lists if names is not None]
        if not found or (self._all_must_answer and len(found) < len(lists)):
            raise Unreachable(UNAVAILABLE, service=NAME)
        return frozenset().union(*found)

    async def _listed_by(self, server: str, name: str) -> frozenset[str] | None:
        """What one server lists; None when it does not say."""
        outcome, names = "unreachable", None
        try:
            answer = await self._fetcher.get(server + PATH, params={"id": name})
        except FAILURES:
            pass
        else:
            names = self._active(answer.body) if answer.status == 200 else None
            outcome = "success" if names is not None else _outcome(answer.status)
        self._metrics.counter("aviso_ecpds_fetch_total", outcome).value += 1
        return names

    def _active(self, body: bytes) -> frozenset[str] | None:
        """The names of destinations that are in use; None when that is not what the body holds."""
        try:
            listed = _LIST.decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if listed.success != "yes":
            return None
        names = (row.get(self._target_field) for row in listed.destinations if row.get("active") is True)
        return frozenset(name for name in names if isinstance(name, str))

    def _decided(self, outcome: str) -> None:
        self._metrics.counter("aviso_ecpds_access_decisions_total", outcome).value += 1


def _outcome(status: int) -> str:
    if status in {401, 403}:
        return f"http_{status}"
    return "http_5xx" if status >= 500 else "invalid_response"


def _servers(settings: Settings) -> tuple[str, ...]:
    """Where they are. A password goes there, so only over TLS, or to this machine."""
    name = "ecpds.servers"
    try:
        given = Node(contract.at(settings.notify, NAME), NAME).texts("servers")
    except BadConfig as error:
        refuse(settings, name, "it is no list of texts", error.fields["accepts"])
    for server in given:
        parts = urlsplit(server)
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not safe or not parts.hostname or parts.query or parts.fragment:
            refuse(
                settings,
                name,
                f"{server!r} will not do",
                "https:// addresses (http:// for this machine) without a query",
            )
    if not given:
        refuse(settings, name, "it is empty", "at least one https:// address")
    return tuple(server.rstrip("/") for server in given)


def _number(value: object) -> float:
    assert isinstance(value, int)
    return float(value)
