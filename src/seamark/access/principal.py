"""Who is asking, and what they may do. Surfaces ask `principal.may(action, resource)` and nothing else."""

from __future__ import annotations

from typing import Protocol


class Principal(Protocol):
    """Resolved once per request by the access room."""

    @property
    def name(self) -> str:
        """For logs and session binding: a key's digest prefix or a user name, never a secret."""
        ...

    def can(self, action: str) -> bool:
        """Whether it may do this to anything at all: its scope."""
        ...

    def may(self, action: str, resource: str) -> bool: ...
