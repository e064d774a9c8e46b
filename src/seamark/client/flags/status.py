"""What a client of flags says about itself: where each namespace is, and what went wrong last."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(enum.Enum):
    """Of one namespace. In `live`, what is held is what the server has; in `stopped`, nobody tries any more."""

    IDLE = "idle"
    CONNECTING = "connecting"
    AWAIT_BASELINE = "await_baseline"
    LIVE = "live"
    RECOVERING = "recovering"
    BACKOFF = "backoff"
    STOPPED = "stopped"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class RefreshError:
    """Why what is held may be old. `kind` is one of: `connection`, `refused`, `protocol`, `event`, `pre_apply`, `files`,
    `post_apply`, `snapshot`, `fetch`, `lint`, `cache`, `fault`."""

    kind: str
    message: str
    at: float  # seconds since the epoch
    version: int | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Status:
    """One namespace, as it is now. `version` and `closure_hash` are those of what is evaluated."""

    namespace: str
    state: State
    version: int | None
    closure_hash: str | None
    flags: int
    ready: bool  # a baseline was verified since the start
    stale_since: float | None  # seconds since the epoch
    last_error: RefreshError | None

    @property
    def stale(self) -> bool:
        return self.stale_since is not None


@dataclass(frozen=True, slots=True)
class Change:
    """A new closure is in force, and these flags may answer otherwise than before."""

    namespace: str
    version: int
    flags: frozenset[str]
