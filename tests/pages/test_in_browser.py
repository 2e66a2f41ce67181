"""Reports as a browser shows them: marks, hover, list, filter, sort, and nothing from a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from browser import complaints, opened, requests
from fires import FIRE, farm, matcher

import celc

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests of this file."""
    with opened(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a page; at the end of a test nothing was asked for and nothing complained about."""
    shown: list[str] = []

    def show(page: str) -> Any:
        path = tmp_path / f"page{len(shown)}.html"
        path.write_text(page, encoding="utf-8")
        shown.append(path.as_uri())
        browser.get(shown[-1])
        return browser

    requests(browser), complaints(browser)
    yield show
    assert requests(browser) == shown
    assert complaints(browser) == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def report(text: str = FIRE, events: pa.Table | None = None, **options: Any) -> str:
    table = farm() if events is None else events
    query = matcher(text)
    return celc.report(query.match_table(table), table, query=query, **options)


def counts(browser: Any) -> dict[str, Any]:
    found: dict[str, Any] = browser.execute_script("return celcReport.counts()")
    return found


def hover(browser: Any, what: str, number: int) -> str:
    """Move the mouse to the mark of an event, or the bar of a match; the text of the tip."""
    from selenium.webdriver import ActionChains

    at = browser.execute_script(f"return celcReport.placeOf{what}({number})")
    mouse = ActionChains(browser, duration=0)
    mouse.w3c_actions.pointer_action.move_to_location(round(at["x"]), round(at["y"]))
    mouse.perform()
    tip = browser.find_element("id", "tip")
    return str(tip.text) if tip.is_displayed() else ""


def column(browser: Any, number: int) -> list[str]:
    """The cells of a column of the list."""
    script = "return [...document.querySelectorAll('#body tr[data-match]')].map("
    script += f"row => row.children[{number}].textContent)"
    found: list[str] = browser.execute_script(script)
    return found


def click(browser: Any, selector: str) -> None:
    browser.find_element("css selector", selector).click()


def test_marks_and_bars_are_drawn(show: Any) -> None:
    browser = show(report())
    found = counts(browser)
    assert (found["events"], found["marksDrawn"]) == (7, 7)
    assert (found["matches"], found["barsDrawn"], found["rows"]) == (3, 3, 3)
    assert (found["partitions"], found["lanes"]) == (2, 2)
    painted = browser.execute_script(
        "const c = document.getElementById('timeline');"
        "const at = celcReport.placeOfEvent(0), box = c.getBoundingClientRect();"
        "const ratio = window.devicePixelRatio;"
        "return [...c.getContext('2d').getImageData("
        "(at.x - box.left) * ratio, (at.y - box.top) * ratio, 1, 1).data]"
    )
    assert painted[3] > 200  # opaque: there is a mark
    assert browser.find_element("id", "summary").text.startswith("7 events · 3 matches")


def test_hover_shows_attributes(show: Any) -> None:
    browser = show(report())
    tip = hover(browser, "Event", 2)
    assert tip.splitlines()[0] == "T #2"
    assert "42" in tip
    assert "2026-07-01 12:04:00" in tip
    tip = hover(browser, "Match", 1)
    assert tip.splitlines()[0] == "match 2"
    assert "#0 value=41.5" in tip
    browser.execute_script("celcReport.select(-1)")


def test_a_click_on_a_match_marks_its_events(show: Any) -> None:
    browser = show(report())
    click(browser, "tr[data-match='2']")
    found = counts(browser)
    assert (found["selected"], found["selectedEvents"]) == (2, [2, 4])
    row = browser.find_element("css selector", "tr[data-match='2']")
    assert row.get_attribute("aria-selected") == "true"
    facts = browser.find_element("id", "facts").text
    assert "2 events" in facts
    assert "dry H #4" in facts


def test_the_list_is_filtered_and_sorted(show: Any) -> None:
    browser = show(report())
    assert column(browser, 1) == ["2", "0", "2"]
    click(browser, "th button[data-column='1']")
    assert column(browser, 1) == ["0", "2", "2"]
    click(browser, "th button[data-column='1']")
    assert column(browser, 1) == ["2", "2", "0"]
    head = browser.find_elements("css selector", "th")[1]
    assert head.get_attribute("aria-sort") == "descending"
    browser.find_element("id", "filter").send_keys("41.5")
    assert column(browser, 1) == ["0"]
    assert browser.find_element("id", "found").text == "1 of 3 matches"
    browser.find_element("id", "filter").send_keys("nothing")
    assert counts(browser)["rows"] == 0
