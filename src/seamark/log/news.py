"""Who is told of news. Implements the `Wakeup` seam for listeners in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seamark.log.protocol import News
from seamark.telemetry import events, logs

Listener = Callable[[Sequence[News]], None]

_log = logs.logger("log")


class Bell:
    """Rings every listener with the same news; one that raises never keeps the others from hearing."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners = (*self._listeners, listener)
        stopped = False

        def stop() -> None:
            nonlocal stopped
            if not stopped:
                stopped = True
                rest = list(self._listeners)
                rest.remove(listener)
                self._listeners = tuple(rest)

        return stop

    def ring(self, news: Sequence[News]) -> None:
        if not news:
            return
        for listener in self._listeners:
            try:
                listener(news)
            except Exception as error:
                _log.error(events.LISTENER_FAILED, error=repr(error), exc_info=True)
