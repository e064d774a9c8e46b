"""Seamark, a change server. What this module names is public; the rest is internal unless a docs page names it."""

from seamark.errors import SeamarkError

__all__ = ["SeamarkError", "__version__"]
__version__ = "0.1.0"
