"""A page with a plain EventSource, as somebody would write it, that keeps everything it is told."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from selenium.webdriver import Chrome

from tests.browser.browser import run

KINDS = ("record", "tombstone", "caught-up", "topic-deleted", "error")

# An `error` without data is the browser's own: the connection was lost, or will never be.
_OPEN = """
const [url, kinds] = arguments;
window.told ??= [];
window.opened ??= 0;
window.source = new EventSource(url);
window.source.addEventListener("open", () => { window.opened += 1; });
for (const kind of kinds)
  window.source.addEventListener(kind, (event) => {
    if (event.data !== undefined) window.told.push([kind, event.lastEventId, event.data]);
  });
"""


class Event(NamedTuple):
    """One event as the page had it."""

    kind: str
    id: str
    data: dict[str, Any]


class Page:
    """Open on the server's own origin, because the surface lets no other one in."""

    def __init__(self, browser: Chrome, base_url: str) -> None:
        self._browser = browser
        browser.get(f"{base_url}/v0/health")  # any answer that runs no script of its own

    def listen(self, url: str) -> None:
        run(self._browser, _OPEN, url, list(KINDS))

    def close(self) -> None:
        run(self._browser, "window.source.close()")

    @property
    def opened(self) -> int:
        """How often the stream was opened, by the page or by the browser itself."""
        return int(run(self._browser, "return window.opened"))

    def opened_since(self, count: int) -> bool:
        return self.opened > count

    @property
    def closed(self) -> bool:
        """Whether the browser has given up."""
        return bool(run(self._browser, "return window.source.readyState === EventSource.CLOSED"))

    def count(self) -> int:
        return int(run(self._browser, "return window.told.length"))

    def has(self, count: int) -> bool:
        return self.count() >= count

    def told(self) -> list[Event]:
        rows = run(self._browser, "return window.told")
        return [Event(kind, event_id, json.loads(data)) for kind, event_id, data in rows]
