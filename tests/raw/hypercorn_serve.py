"""`seamark serve` as it would be under another ASGI server: the same flags, hypercorn instead of our own protocol."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config

from seamark import config
from seamark.http.app import asgi
from seamark.http.server import write_port_file


async def main() -> None:
    words = iter(sys.argv[1:])
    flags = {word.removeprefix("--").replace("-", "_"): next(words) for word in words}
    settings = config.load(flags)
    listener = socket.create_server((settings.host, 0))
    hypercorn = Config()
    hypercorn.bind = [f"fd://{listener.fileno()}"]
    hypercorn.graceful_timeout = 2
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    assert isinstance(settings.port_file, Path)
    write_port_file(settings.port_file, settings.host, listener.getsockname()[1])
    await serve(asgi(settings), hypercorn, shutdown_trigger=ended.wait)  # type: ignore[arg-type]


asyncio.run(main())
