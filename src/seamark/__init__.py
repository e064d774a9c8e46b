"""Seamark, a change server. What this module names is public; the rest is internal unless a docs page names it."""

from typing import TYPE_CHECKING, Any

from seamark.errors import SeamarkError

if TYPE_CHECKING:
    from seamark.client.flags.aio import AsyncFlagsClient
    from seamark.client.flags.client import FlagsClient

__all__ = ["AsyncFlagsClient", "FlagsClient", "SeamarkError", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Clients are loaded when they are asked for: whoever only wants another part does not wait for them."""
    if name == "FlagsClient":
        from seamark.client.flags.client import FlagsClient

        return FlagsClient
    if name == "AsyncFlagsClient":
        from seamark.client.flags.aio import AsyncFlagsClient

        return AsyncFlagsClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
