"""A real Chromium without a window: found where it is installed, driven through its own driver."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

T = TypeVar("T")

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
PATIENCE_SECONDS = 60.0  # for a busy machine, not a promise
POLL_SECONDS = 0.05
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # build machines run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def installed() -> tuple[str, str] | None:
    """The paths of the browser and of its driver; None when one of them is missing."""
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    driver = shutil.which(DRIVER)
    return (program, driver) if program and driver else None


def start(program: str, driver: str, profile: Path) -> Chrome:
    """A browser with an empty profile. `quit` it."""
    options = ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=ChromeService(executable_path=driver))


def until(condition: Callable[[], T], what: str) -> T:
    """The first value of `condition` that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, f"it never came: {what}"
        time.sleep(POLL_SECONDS)
    return value


def run(browser: Chrome, script: str, *arguments: object) -> Any:
    """The value that a script returns in the page."""
    return browser.execute_script(script, *arguments)


def complaints(browser: Chrome) -> list[str]:
    """What the page's console holds of errors."""
    lines = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [line["message"] for line in lines if line["level"] == "SEVERE"]
