"""What every test has."""

from __future__ import annotations

import structlog

# What is logged is shown with a test that fails. By default structlog draws an exception with the source around every frame,
# which takes longer than most tests.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)
