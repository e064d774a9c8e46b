"""The gatekeeper that knows people: by what they show, by their roles, and by what plug-ins say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, Protocol

from seamark.access.bearer import BASIC, BEARER, Presented, presented
from seamark.access.jwt import Tokens
from seamark.access.keys import NOBODY
from seamark.access.roles import Roles, has_role
from seamark.access.trusted_proxy import TrustedProxy
from seamark.access.user import User
from seamark.clock import Clock
from seamark.config import Settings
from seamark.errors import Forbidden, Refused, SeamarkError, Unauthenticated
from seamark.notify.eventtype import EventType, Schema
from seamark.notify.gate import Gatekeeper, OpenGate
from seamark.notify.gates import Gate, open_gates
from seamark.notify.settings import AuthSettings, read_auth
from seamark.telemetry.metrics import Metrics
from seamark.wire.exchange import Exchange

SCHEMES: Mapping[str, tuple[str, ...]] = {"direct": (BEARER, BASIC), "trusted_proxy": (BEARER,)}
COUNTED = "aviso_auth_requests_total"


class Source(Protocol):
    """Where users come from."""

    async def user(self, shown: Presented) -> User:
        """Raises Unauthenticated, Forbidden or Refused."""
        ...

    async def close(self) -> None: ...


def make_gate(settings: Settings, *, schema: Schema, clock: Clock, metrics: Metrics) -> Gatekeeper:
    """The one that the file asks for. Raises BadConfig."""
    auth = read_auth(settings)
    if auth is None:
        return OpenGate()
    gates = open_gates(settings=settings, schema=schema, clock=clock, metrics=metrics)
    source = _source(auth, clock, place=str(settings.sources["auth.jwt_secret"]))
    return Guard(source, mode=auth.mode, admin_roles=auth.admin_roles, gates=gates, metrics=metrics)


def _source(auth: AuthSettings, clock: Clock, *, place: str) -> Source:
    tokens = Tokens(auth.secret, clock, place=place)
    if not auth.url:
        return TrustedProxy(tokens)
    from seamark.access.direct import AuthOTron  # late: only those who ask others need a client

    return AuthOTron(auth.url, tokens, timeout_seconds=auth.timeout_seconds)


class Guard:
    """A Gatekeeper."""

    decides = True

    def __init__(
        self, source: Source, *, mode: str, admin_roles: Roles, gates: Mapping[str, Gate], metrics: Metrics
    ) -> None:
        self._source = source
        self._mode = mode
        self._schemes = SCHEMES[mode]
        self._admin_roles = admin_roles
        self._gates = gates
        self._metrics = metrics
        for outcome in ("success", "unauthorized", "forbidden", "service_unavailable"):
            metrics.counter(COUNTED, mode, outcome)

    async def identify(self, exchange: Exchange) -> None:
        shown = presented(exchange.headers, self._schemes)
        exchange.principal = NOBODY if shown is None else await self._user(shown)

    async def reader(self, exchange: Exchange, event: EventType | None) -> None:
        if event is None or not event.auth.required:
            return
        user, wanted = self._known(exchange), event.auth.read_roles
        if wanted is not None and not has_role(user, wanted) and not self._is_admin(user):
            raise Forbidden("The roles of this user do not allow reading this stream", action="read")

    async def writer(self, exchange: Exchange, event: EventType | None) -> None:
        if event is None or not event.auth.required:
            return
        user, wanted = self._known(exchange), event.auth.write_roles
        if not self._is_admin(user) and (wanted is None or not has_role(user, wanted)):
            raise Forbidden("The roles of this user do not allow writing to this stream", action="write")

    async def admin(self, exchange: Exchange) -> None:
        await self.identify(exchange)
        if not isinstance(exchange.principal, User):
            self._count("unauthorized")
            if exchange.header(b"authorization"):
                schemes = " or ".join(scheme.title() for scheme in self._schemes)
                self._refuse(f"The Authorization header must hold {schemes} credentials")
            self._refuse("Authorization header is required")
        if not self._is_admin(exchange.principal):
            raise Forbidden("This needs the role of an admin", action="admin")

    async def release(self, exchange: Exchange, event: EventType | None, values: Mapping[str, str]) -> None:
        user = exchange.principal
        if event is None or not event.auth.plugins or not isinstance(user, User) or self._is_admin(user):
            return  # who must be known and is not was sent away by `reader`
        for name in event.auth.plugins:
            await self._gates[name].release(user, event, values)

    async def close(self) -> None:
        await self._source.close()
        for gate in self._gates.values():
            await gate.close()

    def _known(self, exchange: Exchange) -> User:
        if not isinstance(exchange.principal, User):
            self._refuse("Authentication is required for this stream")
        return exchange.principal

    def _is_admin(self, user: User) -> bool:
        return has_role(user, self._admin_roles)

    async def _user(self, shown: Presented) -> User:
        try:
            user = await self._source.user(shown)
        except Unauthenticated as error:
            self._count("unauthorized")
            self._refuse(error.message)
        except SeamarkError as error:
            self._count("service_unavailable" if isinstance(error, Refused) else "forbidden")
            raise
        self._count("success")
        return user

    def _refuse(self, message: str) -> NoReturn:
        raise Unauthenticated(message, schemes=tuple(scheme.title() for scheme in self._schemes))

    def _count(self, outcome: str) -> None:
        self._metrics.counter(COUNTED, self._mode, outcome).value += 1
