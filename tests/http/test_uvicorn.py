"""What we lean on inside uvicorn and httptools. When one of these fails after an upgrade, read `http/ordered.py` and
`http/connection.py` against the new source before anything else."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httptools
import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import HANDLED_SIGNALS, ServerState

from seamark.http.connection import PlaneProtocol
from seamark.http.ordered import OrderedProtocol


def source(thing: object) -> str:
    return "".join(inspect.getsource(thing).split())  # type: ignore[arg-type]


def test_the_version_is_the_one_we_read() -> None:
    assert uvicorn.__version__ == "0.54.0"


def test_every_method_we_override_or_call_is_there() -> None:
    ours = {name for kind in (OrderedProtocol, PlaneProtocol) for name in vars(kind) if not name.startswith("__")}
    hooks = {name for name in ours if hasattr(HttpToolsProtocol, name)}
    assert hooks == {
        "_start_asgi_task",
        "connection_lost",
        "connection_made",
        "data_received",
        "eof_received",
        "on_body",
        "on_header",
        "on_headers_complete",
        "on_message_begin",
        "on_message_complete",
        "on_response_complete",
        "pause_writing",
        "resume_writing",
        "shutdown",
    }


def test_signatures_are_the_ones_we_call() -> None:
    expected: dict[Callable[..., Any], list[str]] = {
        HttpToolsProtocol.__init__: ["self", "config", "server_state", "app_state", "_loop"],
        HttpToolsProtocol._start_asgi_task: ["self", "cycle", "app"],
        HttpToolsProtocol.on_url: ["self", "url"],
        uvicorn.Server.startup: ["self", "sockets"],
        uvicorn.Server.shutdown: ["self", "sockets"],
        uvicorn.Server.handle_exit: ["self", "sig", "frame"],
    }
    for function, names in expected.items():
        assert list(inspect.signature(function).parameters) == names, function.__qualname__


def test_uvicorn_knows_nothing_new_about_a_connection() -> None:
    """An attribute that appears in `__init__` may need handling when a connection is handed over or lost."""
    made = uvicorn_protocol()
    assert set(vars(made)) == {
        *("config", "app", "loop", "logger", "access_logger", "access_log", "parser", "ws_protocol_class"),
        *("root_path", "asgi_version", "limit_concurrency", "app_state", "timeout_keep_alive_task"),
        *("timeout_keep_alive", "server_state", "connections", "tasks", "transport", "flow", "server", "client"),
        *("scope", "headers", "expect_100_continue", "cycle", "scheme", "pipeline"),
    }


def uvicorn_protocol() -> HttpToolsProtocol:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        """Never called."""

    loop = asyncio.new_event_loop()
    try:
        return HttpToolsProtocol(uvicorn.Config(app, ws="none", log_config=None), ServerState(), {}, loop)
    finally:
        loop.close()


def test_the_server_state_is_the_one_we_count_with() -> None:
    assert {"connections", "tasks", "total_requests", "default_headers"} <= set(vars(ServerState()))
    assert {number.name for number in map(__import__("signal").Signals, HANDLED_SIGNALS)} == {"SIGINT", "SIGTERM"}


def test_headers_complete_makes_a_cycle_and_starts_it_through_our_hook() -> None:
    text = source(HttpToolsProtocol.on_headers_complete)
    assert "self._start_asgi_task(self.cycle,app)" in text
    assert "ifexisting_cycleisNoneorexisting_cycle.response_complete:" in text
    assert "on_response=self.on_response_complete" in text
    assert "expect_100_continue=self.expect_100_continue" in text


def test_a_cycle_has_the_fields_we_touch() -> None:
    text = source(RequestResponseCycle.__init__)
    for field in ("disconnected", "keep_alive", "more_body", "response_started", "message_event", "body"):
        assert f"self.{field}=" in text
    send = source(RequestResponseCycle.send)
    assert "ifself.disconnected:return" in send
    assert "ifnotself.keep_alive:self.transport.close()self.on_response()" in send


def test_flow_control_pauses_as_we_expect() -> None:
    for name in ("pause_reading", "resume_reading", "pause_writing", "resume_writing"):
        assert callable(getattr(FlowControl, name))
    text = source(FlowControl.__init__)
    assert "self.read_paused=False" in text
    assert "self.write_paused=False" in text


def test_a_callback_s_exception_stops_the_parser_and_is_its_context() -> None:
    class Stops:
        def on_header(self, name: bytes, value: bytes) -> None:
            raise KeyError(name)

        def on_headers_complete(self) -> None:
            raise AssertionError("the parser went on")

    with pytest.raises(httptools.HttpParserCallbackError) as caught:
        httptools.HttpRequestParser(Stops()).feed_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert isinstance(caught.value.__context__, KeyError)


def test_the_parser_reports_trailers_as_headers() -> None:
    """Which is why the connection looks at its phase before it believes a header."""
    seen: list[bytes] = []

    class Sees:
        def on_header(self, name: bytes, value: bytes) -> None:
            seen.append(name)

    parser = httptools.HttpRequestParser(Sees())
    parser.feed_data(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: evil\r\n\r\n")
    assert seen == [b"Transfer-Encoding", b"Host"]


def test_the_parser_takes_memoryviews() -> None:
    urls: list[bytes] = []

    class Sees:
        def on_url(self, url: bytes) -> None:
            urls.append(url)

    httptools.HttpRequestParser(Sees()).feed_data(memoryview(b"xxGET /a HTTP/1.1\r\n")[2:])
    assert urls == [b"/a"]
