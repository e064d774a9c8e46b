from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome

from tests.browser.browser import DRIVER, PROGRAMS, installed, start

MISSING = f"there is no {' or '.join(PROGRAMS)} with {DRIVER} on PATH; `make test` installs them for root on Debian"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One browser for all tests. Where it is missing they are skipped, but a build machine must have it."""
    paths = installed()
    if paths is None and os.environ.get("CI", "").lower() == "true":
        pytest.fail(MISSING)
    if paths is None:
        pytest.skip(MISSING)
    browser = start(*paths, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()
