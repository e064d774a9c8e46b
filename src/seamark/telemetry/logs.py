"""Structured logs: JSON lines for machines, short lines for a terminal. Never a secret, never a payload."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Protocol, cast

import structlog

_TALKATIVE = ("httpx", "httpcore")  # they would log every address and header of what we ask others, secrets and all


class Logger(Protocol):
    def debug(self, event: str, **fields: Any) -> Any: ...
    def info(self, event: str, **fields: Any) -> Any: ...
    def warning(self, event: str, **fields: Any) -> Any: ...
    def error(self, event: str, **fields: Any) -> Any: ...


def logger(room: str) -> Logger:
    """A logger whose lines carry `room`. Event names come from `telemetry.events`."""
    return cast("Logger", structlog.get_logger(room=room))


def _rounded(_: Any, __: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Microseconds are enough; seventeen digits are noise."""
    for name, value in fields.items():
        if type(value) is float:
            fields[name] = round(value, 6)
    return fields


def configure(*, level: str, style: str) -> None:
    """Route structlog and the standard library's logging (uvicorn) to stderr. `style` is `json` or `text`."""
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
        _rounded,
    ]
    final = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), timestamp_key="time")
    )
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*processors, final],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, final], foreign_pre_chain=processors
        )
    )
    logging.basicConfig(handlers=[handler], level=number, force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
