"""What every test has."""

from __future__ import annotations

import os

import hypothesis
import structlog

# What is logged is shown with a test that fails. By default structlog draws an exception with the source around every frame,
# which takes longer than most tests.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

# No test asks a server that the world vouches for, and every HTTP client would read the certificates of all who do.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

# For the quick gate; the full one takes Hypothesis at its own word.
hypothesis.settings.register_profile("quick", max_examples=8)
