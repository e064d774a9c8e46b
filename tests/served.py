"""The two ways in which a server is served: on our data plane, and as plain ASGI by another server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seamark.testing.server import SERVE

_HYPERCORN = (sys.executable, str(Path(__file__).parent / "raw" / "hypercorn_serve.py"))

SERVED = (
    pytest.param(SERVE, id="our server"),
    pytest.param(_HYPERCORN, id="hypercorn", marks=pytest.mark.slow),  # the same questions again
)
