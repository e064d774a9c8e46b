"""The access log: one line per answered request, whole or sampled."""

from __future__ import annotations

from seamark.telemetry import events, logs


class AccessLog:
    """`every` 1 logs each request, 100 one in a hundred. A server without an access log has no AccessLog at all, so
    that hot requests pay for a test of None and nothing else. Paths are logged; queries never, they may hold secrets.
    """

    __slots__ = ("_every", "_log", "_skipped")

    def __init__(self, *, every: int = 1) -> None:
        assert every >= 1
        self._every = every
        self._skipped = 0
        self._log = logs.logger("http")

    def record(self, *, method: str, path: str, status: int, seconds: float, request_id: str) -> None:
        self._skipped += 1
        if self._skipped < self._every and status < 500:  # failures are never sampled away
            return
        self._skipped = 0
        self._log.info(
            events.REQUEST,
            method=method,
            path=path,
            status=status,
            ms=round(seconds * 1_000, 3),
            request_id=request_id,
        )
