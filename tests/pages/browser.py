"""A headless browser for pages, which are opened from files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
    "--lang=en",
)


def programs() -> tuple[str, str]:
    """The browser and its driver; the test is skipped where one is missing."""
    pytest.importorskip("selenium", reason="needs selenium, which the extra `dev` has")
    found = [shutil.which(name) for name in ("chromium", "google-chrome", "chrome")]
    browser = next(filter(None, found), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs Chromium and chromedriver: `make browser` installs them")
    return browser, driver


@contextmanager
def opened(profile: Path, *flags: str) -> Iterator[Any]:
    """A browser with a profile of its own, which logs its console and each request."""
    browser, driver = programs()
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS, f"--user-data-dir={profile}", *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        started.set_page_load_timeout(60)
        started.get("about:blank")
        yield started
    finally:
        started.quit()


def requests(browser: Any) -> list[str]:
    """The addresses that pages have asked for since the last call."""
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    # The browser's own first page, and pictures that a page holds itself, are no requests.
    return [url for url in found if not url.startswith(("chrome://", "data:"))]


def complaints(browser: Any) -> list[str]:
    """What the console has shown since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]
