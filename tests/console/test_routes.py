from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from seamark.testing.server import ServerProcess


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        ServerProcess(tmp_path_factory.mktemp("console"), engine="memory") as server,
        httpx.Client(base_url=server.base_url) as client,
    ):
        yield client


def test_everything_the_page_asks_for_is_served(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    wanted = re.findall(r'(?:src|href)="(/[^"]*)"', page.text)
    assert "/console/console.js" in wanted
    for path in wanted:
        assert client.get(path).status_code == 200, path


def test_nothing_is_loaded_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page.text)


def test_a_known_file_is_not_sent_again(client: httpx.Client) -> None:
    etag = client.get("/console/console.css").headers["etag"]
    again = client.get("/console/console.css", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/console/none.js", "/console/..%2Froutes.py", "/console/__init__.py"])
def test_only_the_console_s_own_files(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "route_not_found"


def test_scripts_build_no_markup_from_data() -> None:
    import seamark.console

    script = (Path(seamark.console.__path__[0]) / "static" / "console.js").read_text()
    assert "innerHTML" not in script
