from __future__ import annotations

import contextlib
import os
import socket
import time

import pytest

from seamark.bench import process
from seamark.bench.bench import Bench
from seamark.bench.process import Process, StartFailed


def test_usage_of_a_process_is_read() -> None:
    before, memory = process.usage(os.getpid()), process.memory(os.getpid())
    assert before is not None
    assert memory is not None
    assert 0 < memory.private <= memory.total
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        pass
    after = process.usage(os.getpid())
    assert after is not None
    assert after.since(before).ran > 0
    assert after.since(before).waited >= 0


def test_usage_of_a_process_that_is_gone_is_unknown(bare: Process) -> None:
    assert bare.usage() is not None
    bare.kill()
    assert bare.usage() is None
    assert bare.memory() is None


def test_a_server_that_does_not_start_says_why(bench: Bench) -> None:
    server = Process(["seamark.bench.no_such_server"], bench=bench, label="missing")
    with pytest.raises(StartFailed, match="no_such_server"):
        server.ready()
    server.stop()


def test_stop_ends_the_process_and_may_be_repeated(bench: Bench) -> None:
    with process.bare(bench) as server:
        pid = server.pid
    server.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_does_not_start_is_not_left_behind(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "START_SECONDS_MAX", 0.0)
    server = process.bare(bench)
    with pytest.raises(StartFailed, match="not ready in 0 s"), server:
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_socket_memory_counts_what_nobody_has_read() -> None:
    uncounted = (
        (os.cpu_count() or 1) * 1024 * 1024
    )  # each processor may keep a MiB to itself before it tells the others
    sent = 0
    with contextlib.ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        while sent < 4 * uncounted:
            sockets.enter_context(socket.create_connection(listener.getsockname()))
            writer = sockets.enter_context(listener.accept()[0])
            writer.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    sent += writer.send(bytes(65_536))
        after = process.socket_memory()
    assert after is not None
    assert after >= sent - uncounted
