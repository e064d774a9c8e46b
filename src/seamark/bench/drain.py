"""The compiled inner loop of the load client (`drain.c`), where there is a C compiler and epoll."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.resources
import os
import shutil
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path
from typing import NamedTuple

SWITCH = "BENCH_CLIENT"  # "python" keeps the load client in Python
COMPILE_SECONDS_MAX = 60
EVENTS = 256
TOTALS = 5


@functools.cache
def library() -> ctypes.CDLL | None:
    """Compile and load it once; None where that cannot be done."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux") or os.environ.get(SWITCH) == "python":
        return None
    with tempfile.TemporaryDirectory(prefix="seamark-drain-") as folder:
        made = Path(folder) / "drain.so"
        source = Path(folder) / "drain.c"
        source.write_bytes((importlib.resources.files("seamark.bench") / "drain.c").read_bytes())
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(source)]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS_MAX)
            return ctypes.CDLL(str(made))
    return None


def kind() -> str:
    """What the load client is, for the report."""
    return "Python" if library() is None else "Python with a C read loop"


class Taken(NamedTuple):
    """What the C loop did in one wait."""

    delivered: int
    bytes: int
    closed: int
    latencies: array[int]


class Drain:
    """State of one epoll set: the newest seq seen on each connection that is served in C.

    `timing` notes the latency of the newest event of each read: exact where events come one by one.
    """

    def __init__(self, made: ctypes.CDLL, epoll_fd: int, files_max: int, buffer: bytearray) -> None:
        self._turn = made.turn
        self._epoll_fd = epoll_fd
        self._seen = array("q", [-1]) * files_max
        self._totals = array("q", [0]) * TOTALS
        self._others = array("i", [0]) * (2 * EVENTS)
        self._late = array("q", [0]) * EVENTS
        self._buffer = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        held = (self._seen, self._totals, self._others, self._late)
        self._places = tuple(ctypes.c_void_p(one.buffer_info()[0]) for one in held)
        self.timing = False

    def adopt(self, fd: int, seen: int) -> None:
        """Serve a connection in C from here on."""
        self._seen[fd] = seen

    def turn(self, seconds: float) -> list[tuple[int, int]]:
        """Wait once; what is ready and not served in C."""
        seen, totals, others, late = self._places
        wait_ms = -(-int(seconds * 1e6) // 1000)
        size = len(self._buffer)
        count = self._turn(self._epoll_fd, wait_ms, seen, totals, self._buffer, size, others, late, self.timing)
        if count < 0:
            raise OSError("epoll_wait failed")
        ready = self._others
        return [(ready[2 * place], ready[2 * place + 1]) for place in range(count)]

    def take(self) -> Taken:
        """What was done since the last call; call it after every turn."""
        totals = self._totals
        taken = Taken(totals[0], totals[1], totals[3], self._late[: totals[4]])
        for place in range(TOTALS):
            totals[place] = 0
        return taken
