"""What the data plane and the ASGI app share: the table, who may come in, what an error looks like, what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from seamark import limits
from seamark.access.principal import Principal
from seamark.clock import Clock, SystemClock
from seamark.errors import SeamarkError
from seamark.http.access_log import AccessLog
from seamark.http.answer import HttpDate
from seamark.http.problems import Problem, with_http_headers
from seamark.http.request_ids import RequestIds
from seamark.http.routing import RouteTable
from seamark.telemetry import events, logs
from seamark.telemetry.metrics import Counter, Histogram, Metrics
from seamark.wire.exchange import Headers, Route
from seamark.wire.problem import plain_problem

Authenticate = Callable[[Headers, bytes, Route], Principal]
"""Headers, raw query, route -> who is asking. Raises Unauthenticated or Forbidden."""

UNROUTED = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


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
    """Built once by the wiring. `problems` names the envelope for unknown paths, by prefix, longest first."""

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        authenticate: Authenticate,
        metrics: Metrics,
        clock: Clock | None = None,
        access_log: AccessLog | None = None,
        problems: Iterable[tuple[str, Problem]] = (),
    ) -> None:
        self.table = RouteTable(routes)
        self.authenticate = authenticate
        self.metrics = metrics
        self.clock = clock or SystemClock()
        self.access_log = access_log
        self.new_id = RequestIds()
        self.date = HttpDate(self.clock)
        self._problems = sorted(problems, key=lambda row: -len(row[0]))
        self._tallies: dict[str, Tally] = {}
        self._log = logs.logger("http")

    def tally(self, pattern: str) -> Tally:
        tally = self._tallies.get(pattern)
        if tally is None:
            tally = self._tallies[pattern] = Tally(self.metrics, pattern)
        return tally

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
        envelope = next((problem for prefix, problem in self._problems if raw_path.startswith(prefix)), plain_problem)
        status, body, headers = envelope(error, request_id)
        return status, body, with_http_headers(error, headers)

    def body_bytes_max(self, route: Route | None) -> int:
        return limits.BODY_BYTES_UNROUTED_MAX if route is None else min(route.body_bytes_max, limits.BODY_BYTES_MAX)

    def answered(self, tally: Tally, method: str, status: int, seconds: float, *, request_id: str, path: str) -> None:
        """Count one answered request, and log it if somebody asked for that."""
        tally.count(method, status, seconds)
        if self.access_log is not None:
            self.access_log.record(method=method, path=path, status=status, seconds=seconds, request_id=request_id)
