"""The console at `/` in a real browser: what there is, what comes in, and what happens when the server goes and returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from seamark.testing.server import ServerProcess
from tests.browser.browser import complaints, until

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as server:
        yield server


def append(server: ServerProcess, stream: str, *data: object) -> None:
    answer = httpx.post(f"{server.base_url}/raw/{stream}", json={"records": [{"data": one} for one in data]})
    assert answer.is_success, answer.text


def text(browser: Chrome, name: str) -> str:
    return browser.find_element(By.ID, name).text


def test_the_console_lists_streams_and_shows_records_as_they_come(server: ServerProcess, chromium: Chrome) -> None:
    append(server, "harbour", "early <b>bird</b>")
    complaints(chromium)  # of other tests' pages
    chromium.get(server.base_url)
    until(lambda: text(chromium, "health") == "ready", "ready")
    until(lambda: "harbour" in text(chromium, "streams"), "the stream in the table")
    until(lambda: text(chromium, "tail-state") == "live", "a live tail")
    until(lambda: "early <b>bird</b>" in text(chromium, "tail"), "history, as text and not as markup")
    append(server, "harbour", {"ship": "Anna"}, {"ship": "Bela"})
    until(lambda: "Bela" in text(chromium, "tail"), "a live record")
    newest_first = [words for line in text(chromium, "tail").splitlines() if "ship" in (words := line)]
    assert [line.partition(" ")[2] or line for line in newest_first] == ['{"ship":"Bela"}', '{"ship":"Anna"}']
    assert complaints(chromium) == []


def test_another_stream_is_watched_when_it_is_chosen(server: ServerProcess, chromium: Chrome) -> None:
    append(server, "a", "of a")
    append(server, "b", "of b")
    chromium.get(server.base_url)
    until(lambda: "of a" in text(chromium, "tail"), "the first stream")
    chromium.find_element(By.XPATH, "//button[text()='b']").click()
    until(lambda: "of b" in text(chromium, "tail"), "the chosen stream")
    assert "of a" not in text(chromium, "tail")
    assert text(chromium, "tail-name") == "b"
