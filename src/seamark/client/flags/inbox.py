"""What was heard of one namespace and not looked at yet: in order of arrival, bounded, and without what something later makes moot."""

from __future__ import annotations

from collections import deque

from seamark.client.flags.event import Resync, Said, Snapshot
from seamark.limits import CLIENT_EVENTS_WAITING_MAX


class Inbox:
    """Of one connection: versions only rise on it, so what does not is a copy of what was said before."""

    __slots__ = ("_last_resync", "_newest", "_waiting", "renewals")

    def __init__(self) -> None:
        self._waiting: deque[Said] = deque()
        self._newest = 0
        self._last_resync: Resync | None = None
        self.renewals = 0  # how often a closure was offered whole: whatever is tried for an older one is moot then

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, said: Said) -> bool:
        """False for what was said before."""
        if isinstance(said, Resync):
            if said == self._last_resync:
                return False
            self._last_resync = said
            self._newest = said.snapshot.version
            self._renew(said)
        elif said.version > self._newest:
            self._newest = said.version
            if isinstance(said, Snapshot):
                self._renew(said)
            elif len(self._waiting) < CLIENT_EVENTS_WAITING_MAX:
                self._waiting.append(said)
            else:
                self._renew(Snapshot(said.namespace, said.version, said.after, None))
        else:
            return False
        return True

    def take(self) -> Said | None:
        return self._waiting.popleft() if self._waiting else None

    def _renew(self, whole: Snapshot | Resync) -> None:
        """It holds all that waits. That something was to be abandoned must not be forgotten over it."""
        if isinstance(whole, Snapshot) and any(isinstance(said, Resync) for said in self._waiting):
            whole = Resync(whole, "superseded")
        self._waiting.clear()
        self._waiting.append(whole)
        self.renewals += 1
