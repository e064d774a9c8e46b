"""Every example that is marked `run` runs, in the order of its page, against a real server where it says `server`."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Block, blocks, clean_environment, page_paths

ADDRESS = "http://127.0.0.1:8000"  # what the pages say
TAGS = frozenset({"run", "server", "watch"})
BLOCK_SECONDS_MAX = 60.0
PAGES = [path for path in page_paths() if any("run" in block.tags for block in blocks(path))]
# An example that gets an error as its answer is a wrong example.
PRELUDE = 'set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body "$@"; }\n'

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl")


@needs_curl
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_run(path: Path, tmp_path: Path, start_server: Callable[[], str]) -> None:
    base_url: str | None = None
    for block in blocks(path):
        if "run" not in block.tags:
            continue
        text = block.text
        if "server" in block.tags:
            base_url = base_url or start_server()
            text = text.replace(ADDRESS, base_url)
        where = f"{path.relative_to(ROOT)}:{block.line}"
        if "watch" in block.tags:
            watch(text, tmp_path, where)
        else:
            run(text, tmp_path, where)


def run(text: str, directory: Path, where: str) -> None:
    """A block that ends. It must succeed and say something."""
    done = subprocess.run(
        ["bash", "-c", PRELUDE + text],
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=BLOCK_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), f"{where} printed nothing"


def watch(text: str, directory: Path, where: str) -> None:
    """A block that goes on until it is stopped. It must deliver one whole event with an id."""
    process = subprocess.Popen(
        ["bash", "-c", PRELUDE + text],
        cwd=directory,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    seen = bytearray()
    deadline = time.monotonic() + BLOCK_SECONDS_MAX
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not re.search(rb"(?m)^id: \S.*\n(?:.+\n)*\n", bytes(seen)):
                assert time.monotonic() < deadline, f"{where} delivered no event: {bytes(seen)!r}"
                if selector.select(timeout=1.0):
                    part = os.read(process.stdout.fileno(), 65536)
                    assert part, f"{where} ended by itself after {bytes(seen)!r}"
                    seen += part
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


def test_blocks_are_marked_in_words_that_mean_something() -> None:
    wrong: list[tuple[str, Block]] = []
    for path in page_paths():
        for block in blocks(path):
            known = block.tags <= TAGS and ("run" in block.tags or not block.tags)
            # What is not meant to be run as it stands is `console`, with a prompt.
            if not known or not block.language or (block.language == "bash" and "run" not in block.tags):
                wrong.append((path.relative_to(ROOT).as_posix(), block))
    assert not wrong


def test_the_readme_opens_with_the_two_commands() -> None:
    first = blocks(ROOT / "README.md")[0]
    commands = [line.split("#")[0].strip() for line in first.text.splitlines()]
    assert commands == ["$ make run", "$ make test"]
    assert first.line <= 4
    assert sum("server" in block.tags for block in blocks(ROOT / "README.md")) >= 2
