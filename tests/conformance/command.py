"""The contract's own command line, `aviso`, as processes in a directory of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.rig import PATIENCE_SECONDS, connect, wait_until

AVISO = str(Path(sys.executable).with_name("aviso"))


class Aviso:
    """Calls it with `place` as its home."""

    def __init__(self, base_url: str, place: Path) -> None:
        self.place = place
        self._client = connect(base_url)
        self.environment = os.environ | {"HOME": str(place), "AVISO_BASE_URL": base_url}

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [AVISO, *args],
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    def lines(self, *args: str) -> list[dict[str, Any]]:
        """What it prints, which must be a success."""
        done = self.run(*args)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def publish(self, event_type: str, *numbers: int) -> None:
        """Through the library, which is quicker to start."""
        for number in numbers:
            self._client.notify(event_type=event_type, identifier={"n": number}, payload={"n": number})

    @contextmanager
    def listening(self, *args: str, listeners: int = 1) -> Iterator[Listening]:
        """`aviso listen`, from when all its listeners are there. It is told to stop, which must be clean."""
        with Listening(self, args) as process:
            process.wait_until_listening(listeners)
            yield process
            assert process.interrupt() == 0, process.said


class Listening:
    def __init__(self, aviso: Aviso, args: tuple[str, ...]) -> None:
        self._stdout = aviso.place / "listen.stdout"
        self._stderr = aviso.place / "listen.stderr"
        with self._stdout.open("wb") as stdout, self._stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                [AVISO, "listen", *args], cwd=aviso.place, env=aviso.environment, stdout=stdout, stderr=stderr
            )

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def said(self) -> str:
        """What it said beside its notifications."""
        return self._stderr.read_text("utf-8")

    @property
    def heard(self) -> list[dict[str, Any]]:
        """What its `echo` triggers printed."""
        whole, _, _ = self._stdout.read_text("utf-8").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def returns(self) -> list[tuple[str, str]]:
        """Why it came back to the server, and after how many milliseconds, as it says itself."""
        said = [json.loads(line)["attributes"] for line in self.said.splitlines() if line.startswith("{")]
        return [(one["cause"], one["delay_ms"]) for one in said if one["event.name"] == "client.connection.retrying"]

    def wait_until_listening(self, listeners: int) -> None:
        wait_until(
            lambda: self.said.count("Listening for ") == listeners or self._process.poll() is not None, "it listens"
        )
        assert self._process.poll() is None, self.said

    def until(self, count: int) -> list[dict[str, Any]]:
        wait_until(lambda: len(self.heard) >= count or self._process.poll() is not None, f"{count} notifications")
        assert len(self.heard) >= count, self.said
        return self.heard

    def end(self) -> int:
        """Wait until it ends by itself."""
        return self._process.wait(PATIENCE_SECONDS)

    def interrupt(self) -> int:
        """Ctrl+C."""
        self._process.send_signal(signal.SIGINT)
        return self.end()
