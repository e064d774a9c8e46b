"""A real server process for tests: started on a free port, asked until it is ready, stopped or killed, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from seamark.clock import SystemClock

SERVE = (sys.executable, "-m", "seamark", "serve")
READY_SECONDS = 30.0  # patience, not a promise
STOP_SECONDS = 20.0
POLL_SECONDS = 0.02
TAIL_BYTES = 4_000


class ServerFailed(Exception):
    """The process did not do what was asked; the message ends with the tail of its stderr."""


class ServerProcess:
    """`seamark serve` below a directory: data in `place/data`, what it says in `place/stderr.log`.

    Use it as a context manager; leaving it stops the process, whatever state it is in.
    """

    def __init__(
        self,
        place: Path,
        *args: str,
        engine: str = "embedded",
        command: Sequence[str] = SERVE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.data = place / "data"
        self.stderr = place / "stderr.log"
        self._port_file = place / "port"
        self._command = [
            *command, "--host", "127.0.0.1", "--port", "0", "--port-file", str(self._port_file),
            "--data", str(self.data), "--engine", engine, *args,
        ]  # fmt: skip
        # The settings of whoever runs the tests are not the server's.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SEAMARK_", "TOPICS_", "AVISOSERVER_"))
        }
        self._environment = {**inherited, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""
        self._clock = SystemClock()

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.kill()

    # -- what it is

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was never started"
        return self._process.pid

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self._address.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def base_url(self) -> str:
        assert self._address, "the server was never ready"
        return f"http://{self._address}"

    def stderr_tail(self) -> str:
        """The last that the process said."""
        if not self.stderr.exists():
            return ""
        with self.stderr.open("rb") as file:
            file.seek(max(0, self.stderr.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")

    # -- what it does

    def start(self) -> None:
        """Start the process and wait until `/ready` answers 200."""
        assert not self.running, "the server runs"
        self._port_file.unlink(missing_ok=True)
        self._address = ""
        self.data.mkdir(parents=True, exist_ok=True)
        with self.stderr.open("ab") as stderr:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=self._environment,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> int:
        """Ask the process to end (SIGTERM) and wait for it. Returns its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process without asking (SIGKILL)."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop if need be, and start again on the same data."""
        if self.running:
            self.stop()
        self.start()

    # -- inside

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None, "the server was never started"
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ServerFailed(
                f"it did not end within {STOP_SECONDS} s of {number.name}\n{self.stderr_tail()}"
            ) from None

    def _wait_until_ready(self) -> None:
        deadline = self._clock.monotonic() + READY_SECONDS
        while not self._is_ready():
            if not self.running:
                code = None if self._process is None else self._process.returncode
                raise ServerFailed(f"it ended with {code} before it was ready\n{self.stderr_tail()}")
            if self._clock.monotonic() > deadline:
                raise ServerFailed(f"it was not ready after {READY_SECONDS} s\n{self.stderr_tail()}")
            time.sleep(POLL_SECONDS)

    def _is_ready(self) -> bool:
        if not self._address:
            if not self._port_file.exists():
                return False
            self._address = self._port_file.read_text("ascii").strip()
        try:
            with urllib.request.urlopen(f"{self.base_url}/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return False
        except OSError:
            return False
