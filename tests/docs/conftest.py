"""A real server for the examples."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import clean_environment

READY_SECONDS_MAX = 30.0


def wait_until_ready(process: subprocess.Popen[str], port_file: Path, log: Path) -> str:
    """The base URL of a server that has just been started, when it is ready."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        if port_file.exists():
            base_url = f"http://{port_file.read_text().strip()}"
            try:
                with urllib.request.urlopen(f"{base_url}/ready", timeout=5) as answer:
                    assert answer.status == 200
                    return base_url
            except (urllib.error.URLError, OSError):
                pass
        time.sleep(0.05)
    raise AssertionError(f"the server did not become ready:\n{log.read_text()[-4000:]}")


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Start `seamark serve --demo` as a user would; gives its base URL. Ended by SIGTERM, which must be clean."""
    started: list[subprocess.Popen[str]] = []
    log = tmp_path / "server.log"

    def start() -> str:
        port_file = tmp_path / "port"
        command = ["seamark", "serve", "--demo", "--port", "0", "--port-file", str(port_file)]
        command += ["--data", str(tmp_path / "var")]
        with log.open("w") as output:
            process = subprocess.Popen(
                command, cwd=tmp_path, env=clean_environment(), stdout=output, stderr=output, text=True
            )
        started.append(process)
        return wait_until_ready(process, port_file, log)

    yield start
    for process in started:
        process.terminate()
        try:
            assert process.wait(timeout=30) == 0, log.read_text()[-4000:]
        finally:
            process.kill()
            process.wait()
