"""A server under test as a real process on its own core, and what it used."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from seamark.bench import machine
from seamark.bench.bench import Bench

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
POLL_SECONDS = 0.002
STDERR_BYTES_SHOWN = 2_000
QUIET = {"SEAMARK_ACCESS_LOG": "false", "SEAMARK_LOG_LEVEL": "warning"}


class Memory(NamedTuple):
    """Resident memory. `private` leaves out mapped files: pages of the store that the system may take back at will."""

    total: int
    private: int


class Usage(NamedTuple):
    """Seconds on a core, and seconds ready to run while other work had the core."""

    ran: float
    waited: float

    def since(self, before: Usage) -> Usage:
        return Usage(self.ran - before.ran, self.waited - before.waited)


class StartFailed(Exception):
    """The server under test did not come up; the message holds the end of what it said."""


def usage(pid: int) -> Usage | None:
    """What all threads of a process have had of their cores, None where the system does not say."""
    try:
        tasks = [(task / "schedstat").read_bytes().split() for task in Path(f"/proc/{pid}/task").iterdir()]
        return Usage(sum(int(task[0]) for task in tasks) / 1e9, sum(int(task[1]) for task in tasks) / 1e9)
    except (OSError, ValueError, IndexError):
        return None


def memory(pid: int) -> Memory | None:
    """What a process holds now, None where the system does not say."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    sizes = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            sizes[name] = int(rest.split()[0]) * 1024
    return Memory(sizes["VmRSS"], sizes["RssAnon"]) if len(sizes) == 2 else None


def _environment() -> dict[str, str]:
    """The settings of whoever runs the benchmark are not what is measured."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("SEAMARK_", "AVISOSERVER_"))
    } | QUIET


def socket_memory() -> int | None:
    """Bytes that the system's TCP buffers hold, of all processes together, but for a MiB that each processor may not have
    told yet; None where the system does not say."""
    try:
        lines = Path("/proc/net/sockstat").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("TCP:"):
            words = line.split()
            return int(words[words.index("mem") + 1]) * os.sysconf("SC_PAGESIZE")
    return None


class Process:
    """Started in the constructor; `ready` waits until it takes requests. Always stopped by its own pid."""

    def __init__(self, arguments: list[str], *, bench: Bench, label: str) -> None:
        self.label = label
        home = bench.fresh(label + "-process")
        home.mkdir()
        self._port_file = home / "port"
        self._stderr = (home / "stderr").open("w+b")
        command = [sys.executable, "-m", *arguments, "--port-file", str(self._port_file)]
        self.started = time.perf_counter()
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._stderr, stderr=self._stderr, env=_environment(), cwd=home
        )
        self.pid = self._child.pid
        self.host, self.port = "127.0.0.1", 0
        self.pinned = machine.pin(self.pid, machine.SERVER_CORE, bench.cores)

    def __enter__(self) -> Self:
        try:
            self.ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ready(self) -> float:
        """Wait until `/ready` answers 200; seconds since the process was started."""
        while time.perf_counter() - self.started < START_SECONDS_MAX:
            if self._child.poll() is not None:
                raise StartFailed(f"{self.label} exited with {self._child.returncode}: {self.tail()}")
            if self._port() and self._answers():
                return time.perf_counter() - self.started
            time.sleep(POLL_SECONDS)
        raise StartFailed(f"{self.label} was not ready in {START_SECONDS_MAX:.0f} s: {self.tail()}")

    def usage(self) -> Usage | None:
        return usage(self.pid)

    def used(self, before: Usage | None) -> Usage | None:
        """What was used since an earlier `usage`."""
        now = self.usage()
        return None if now is None or before is None else now.since(before)

    def memory(self) -> Memory | None:
        return memory(self.pid)

    def tail(self) -> str:
        """The end of what the process said."""
        self._stderr.flush()
        text = Path(self._stderr.name).read_bytes()
        return text[-STDERR_BYTES_SHOWN:].decode(errors="replace").strip()

    def kill(self) -> None:
        """As a crash would: no warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._stderr.closed:
            return
        if self._child.poll() is None:
            self._child.send_signal(how)
            try:
                self._child.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._stderr.close()

    def _port(self) -> bool:
        if not self.port and self._port_file.exists():
            host, _, port = self._port_file.read_text().strip().rpartition(":")
            self.host, self.port = host or self.host, int(port)
        return self.port != 0

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=5)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def bare(bench: Bench, *extra: str) -> Process:
    """The reference: a bare loop that moves the same bytes and does nothing else."""
    return Process(["seamark.bench.bare", *extra], bench=bench, label="bare")


def seamark(bench: Bench, data: Path | None = None, *extra: str) -> Process:
    """The real server on the embedded engine."""
    store = str(data or bench.fresh("store"))
    arguments = ["seamark", "serve", "--engine", "embedded", "--data", store, "--host", "127.0.0.1", "--port", "0"]
    return Process([*arguments, *extra], bench=bench, label="seamark")
