"""What the data plane and the ASGI app share: the table, who may come in, what an error looks like, what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from seamark import limits
from seamark.access.inflight import InFlight
from seamark.access.keys import ANYONE
from seamark.access.principal import Principal
from seamark.clock import Clock, SystemClock
from seamark.errors import BadRequest, Forbidden, QueryTooLong, SeamarkError
from seamark.http.access_log import AccessLog
from seamark.http.answer import HttpDate
from seamark.http.problems import refusal_body, with_http_headers
from seamark.http.realm import Realm
from seamark.http.request_ids import RequestIds
from seamark.http.routing import Match, RouteTable
from seamark.telemetry import events, logs
from seamark.telemetry.metrics import Counter, Histogram, Metrics
from seamark.wire.exchange import ANY_KEY, Headers, Route
from seamark.wire.problem import plain_problem

Authenticate = Callable[[Headers, bytes, Route], Principal]
"""Headers, raw query, route -> who is asking. Raises Unauthenticated or Forbidden."""

UNROUTED = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REFUSALS: Mapping[int, type[SeamarkError]] = {414: QueryTooLong, 500: SeamarkError}  # any other is a BadRequest


class Tally:
    """One route's counts, found once and then bumped."""

    __slots__ = ("_cells", "_metrics", "_pattern", "_seconds")

    def __init__(self, metrics: Metrics, pattern: str) -> None:
        self._metrics = metrics
        self._pattern = pattern
        self._cells: dict[tuple[str, int], Counter] = {}
        self._seconds: Histogram = metrics.histogram("seamark_http_request_seconds", pattern)

    def count(self, method: str, status: int, seconds: float) -> None:
        """One more answer, and how long it took."""
        cell = self._cells.get((method, status))
        if cell is None:
            named = method if method in _METHODS else "other"
            cell = self._metrics.counter("seamark_http_requests_total", self._pattern, named, str(status))
            self._cells[(named, status)] = cell
        cell.value += 1
        self._seconds.observe(seconds)


class Front:
    """Built once by the wiring. `realms` say whose the unknown paths are."""

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        authenticate: Authenticate,
        metrics: Metrics,
        clock: Clock | None = None,
        access_log: AccessLog | None = None,
        inflight: InFlight | None = None,
        realms: Iterable[Realm] = (),
    ) -> None:
        self.table = RouteTable(routes)
        self.authenticate = authenticate
        self.metrics = metrics
        self.clock = clock or SystemClock()
        self.access_log = access_log
        self.new_id = RequestIds()
        self.date = HttpDate(self.clock)
        self.inflight = inflight or InFlight()
        self._realms = sorted(realms, key=lambda realm: -len(realm.prefix))
        self._tallies: dict[str, Tally] = {}
        self._log = logs.logger("http")

    def tally(self, pattern: str) -> Tally:
        tally = self._tallies.get(pattern)
        if tally is None:
            tally = self._tallies[pattern] = Tally(self.metrics, pattern)
        return tally

    def permit(self, principal: Principal, route: Route, params: Mapping[str, str]) -> None:
        """Whether the caller's scopes, and its prefixes as far as the path has a name, allow this. Raises Forbidden."""
        if principal is ANYONE or not route.action or route.action == ANY_KEY:
            return
        for action in route.action.split("+"):
            if not principal.can(action):
                raise Forbidden(f"this key lacks the scope {action!r}", action=action)
            name = params[route.named] if route.named else None
            if name is not None and not principal.may(action, name):
                raise Forbidden(f"this key may not {action} {name!r}", action=action, resource=name)

    def refusal(self, match: Match, headers: Headers, query: bytes) -> SeamarkError | None:
        """What is in the way of this request before its body is read, None when nothing is. For requests that will
        not be served whatever the answer, so nothing is counted."""
        try:
            principal = self.authenticate(headers, query, match.route)
            if self.inflight.enter(principal):
                self.inflight.leave(principal)
            self.permit(principal, match.route, match.params)
        except SeamarkError as error:
            return error
        return None

    def stray_refusal(self, method: str, raw_path: str, headers: Headers, query: bytes) -> SeamarkError | None:
        """What is in the way of learning that there is no row. Outside the realms, and where the path serves anybody
        with another method, nothing is."""
        realm, neighbour = self.realm(raw_path), self.table.neighbour(raw_path)
        if realm is None or (neighbour is not None and not neighbour.action):
            return None
        name = realm.name_of(raw_path)
        row = realm.row(method) if name is None else realm.row(method)._replace(named="name")
        return self.refusal(Match(row, {"name": name or ""}, raw_path), headers, query)

    def realm(self, raw_path: str) -> Realm | None:
        """The surface that owns a path, the most specific one."""
        return next((realm for realm in self._realms if realm.owns(raw_path)), None)

    def problem(self, route: Route, error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
        """The route's own answer to an error. What is not a SeamarkError is logged, and the client learns nothing."""
        if not isinstance(error, SeamarkError):
            self.report(error, request_id, route.path)
        try:
            status, body, headers = route.problem(error, request_id)
        except Exception as broken:
            self.report(broken, request_id, route.path)
            status, body, headers = plain_problem(error, request_id)
        return status, body, with_http_headers(error, headers)

    def report(self, error: BaseException, request_id: str, pattern: str) -> None:
        """Log what should not have happened, with the id that the client was given."""
        self._log.error(events.REQUEST_FAILED, request_id=request_id, route=pattern, exc_info=error)

    def stray_problem(self, raw_path: str, error: Exception, request_id: str) -> tuple[int, bytes, Headers]:
        """The answer where no row was found: by the surface that owns the path, as far as one does."""
        neighbour = self.table.neighbour(raw_path)
        if neighbour is not None:
            return self.problem(neighbour, error, request_id)
        realm = self.realm(raw_path)
        status, body, headers = (plain_problem if realm is None else realm.problem)(error, request_id)
        return status, body, with_http_headers(error, headers)

    def unread(
        self, match: Match | None, too_large: SeamarkError, *, method: str, path: str, headers: Headers, query: bytes, request_id: str
    ) -> tuple[int, bytes, Headers]:  # fmt: skip
        """The answer to a request whose body is beyond its bound. `path` is raw."""
        if match is not None:
            error = self.refusal(match, headers, query) or too_large
            return self.problem(match.route, error, request_id)
        try:
            self.table.resolve(method, path)
        except SeamarkError as missing:
            error = self.stray_refusal(method, path, headers, query) or missing
        else:
            error = too_large
        return self.stray_problem(path, error, request_id)

    def refused(self, path: str, status: int, code: str, message: str, request_id: str) -> tuple[bytes, Headers]:
        """Body and headers of the server's own refusal of a request, in the words of whoever owns its path."""
        realm = self.realm(path)
        if realm is None:
            return refusal_body(code, message, request_id), ()
        error = _REFUSALS.get(status, BadRequest)(message)
        _, body, headers = realm.problem(error, request_id)
        return body, headers

    def body_bytes_max(self, route: Route | None) -> int:
        return limits.BODY_BYTES_UNROUTED_MAX if route is None else min(route.body_bytes_max, limits.BODY_BYTES_MAX)

    def answered(self, tally: Tally, method: str, status: int, seconds: float, *, request_id: str, path: str) -> None:
        """Count one answered request, and log it if somebody asked for that."""
        tally.count(method, status, seconds)
        if self.access_log is not None:
            self.access_log.record(method=method, path=path, status=status, seconds=seconds, request_id=request_id)
