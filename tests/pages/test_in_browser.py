"""Reports as a browser shows them: marks, hover, list, filter, sort, and nothing from a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from browser import complaints, opened, requests
from fires import FIRE, HOSTILE, farm, hostile, matcher
from test_automaton import stages_of, taken
from test_playground import QUERY, ROWS, served

import celc
from celc.interfaces.cli.serving.server import HOST
from celc.interfaces.pages.automaton import automaton_page

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
    click(browser, "#query summary")
    words = browser.find_elements("css selector", "#text .k")
    assert [one.text for one in words][:2] == ["CREATE", "STREAM"]
    assert browser.find_element("id", "text").text == FIRE.strip()


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


def test_near_misses_are_grey_bars_that_tell_what_was_bent(show: Any) -> None:
    query, events = matcher(FIRE), farm()
    near = query.near_misses(events, near=0.2)
    browser = show(celc.report(query.match_table(events), events, query=query, near=near))
    found = counts(browser)
    assert (found["matches"], found["nearMisses"], found["barsDrawn"]) == (
        3,
        len(near),
        3 + len(near),
    )
    tip = hover(browser, "Match", 3).splitlines()
    assert tip[0] == "near miss 1"
    told = near.to_pylist()[0]
    for name in ("part", "asked", "found"):
        assert any(str(told[name]) in line for line in tip[1:8]), name
    assert "near miss" in browser.find_element("id", "summary").text
    assert "part" not in hover(browser, "Match", 0)


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


def test_keys_move_through_the_list(show: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(report())
    browser.find_element("id", "filter").send_keys(Keys.TAB)
    for _ in range(len(column(browser, 0)) + 5):
        focused = browser.switch_to.active_element
        if focused.get_attribute("data-match"):
            break
        focused.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert counts(browser)["selected"] == 1
    assert browser.switch_to.active_element.get_attribute("data-match") == "1"
    before = browser.execute_script("return celcReport.view()")
    browser.find_element("id", "timeline").send_keys("+")
    after = browser.execute_script("return celcReport.view()")
    assert after[1] - after[0] < before[1] - before[0]
    browser.find_element("id", "timeline").send_keys(Keys.ESCAPE)
    assert counts(browser)["selected"] == -1


def test_types_and_partitions_can_be_hidden(show: Any) -> None:
    browser = show(report())
    click(browser, "#legend button")
    browser.execute_script("celcReport.drawNow()")
    assert counts(browser)["marksDrawn"] == 4
    click(browser, "#matched")
    assert counts(browser)["lanes"] == 1


def test_lanes_with_most_matches_come_first_and_empty_ones_are_hidden(show: Any) -> None:
    def at(place: int, rows: int) -> pa.Table:
        return farm().slice(0, rows).set_column(1, "id", pa.array([place] * rows, pa.int64()))

    events = pa.concat_tables([*(at(place, 1) for place in range(15)), at(99, len(farm()))])
    browser = show(report(events=events.sort_by("ts")))
    only = browser.find_element("id", "only")
    assert counts(browser)["lanes"] == 1
    assert " ".join(only.text.split()) == "only partitions with matches (15 hidden)"
    click(browser, "#matched")
    assert (counts(browser)["lanes"], counts(browser)["firstLane"]) == (16, "99")
    assert only.text == "only partitions with matches"


def test_a_page_without_data(show: Any) -> None:
    browser = show(report(events=farm().slice(0, 0)))
    assert counts(browser)["rows"] == 0
    assert "There are no matches." in browser.find_element("id", "body").text
    query, events = matcher(), farm()
    browser = show(celc.report(query.match_table(events)))
    assert counts(browser)["barsDrawn"] == 3


def test_hostile_texts_are_shown_and_do_nothing(show: Any) -> None:
    text, events = hostile()
    query = matcher(text)
    page = celc.report(query.match_table(events), events, query=query, title=HOSTILE[0])
    browser = show(page)
    assert browser.find_element("tag name", "h1").text == HOSTILE[0]
    for number in range(len(HOSTILE)):
        browser.execute_script(f"celcReport.select({number})")
        hover(browser, "Event", number)
    assert browser.execute_script("return window.hurt === undefined")
    assert browser.find_elements("css selector", "main img, main b") == []
    assert HOSTILE[1] in column(browser, 0)


def test_many_events_are_sampled_and_told(show: Any) -> None:
    rows = 120_000
    times = pa.array([1_782_907_200_000_000 + 1_000_000 * n for n in range(rows)])
    events = pa.table(
        {
            "type": pa.array(["T", "H"] * (rows // 2)),
            "id": pa.array([n % 24 // 2 for n in range(rows)], pa.int64()),
            "value": pa.array([(41.0, 20.0)[n % 2] for n in range(rows)]),
            "ts": times.cast(pa.timestamp("us", tz="UTC")),
        }
    )
    query = celc.compile(FIRE)  # plain Python would take half a minute for so many
    browser = show(celc.report(query.match_table(events), events, query=query))
    found = counts(browser)
    assert (found["eventsShown"], found["matchesShown"]) == (100_000, 10_000)
    told = browser.find_element("id", "summary").text
    assert told.startswith("showing 100,000 of 120,000 events · showing 10,000 of ")
    click(browser, "th button[data-column='1']")
    browser.find_element("id", "filter").send_keys("value=41.0")
    assert counts(browser)["rows"] == 10_000
    assert len(browser.find_elements("css selector", "#body tr")) < 60


def test_the_automaton(show: Any) -> None:
    from selenium.webdriver import ActionChains

    stages = stages_of(FIRE)
    browser = show(automaton_page(stages, FIRE, taken(FIRE, farm())))
    found = browser.execute_script("return celcAutomaton.counts()")
    assert (found["nodes"], found["arrows"], found["events"]) == (3, 3, 7)
    assert "×2" in browser.find_element("css selector", ".tag text").text
    plate = browser.find_element("css selector", ".tag .plate")
    ActionChains(browser, duration=0).move_to_element(plate).perform()
    tip = browser.find_element("id", "tip").text
    assert "start → state 1" in tip
    assert "at 2 of 7 events" in tip


def test_a_report_lives_in_the_frame_of_a_notebook(show: Any) -> None:
    query, events = matcher(), farm()
    page = celc.report(query.match_table(events), events, query=query)
    browser = show(f"<!doctype html><title>notebook</title>{page._repr_html_()}")
    browser.switch_to.frame(browser.find_element("tag name", "iframe"))
    assert counts(browser)["marksDrawn"] == 7
    click(browser, "tr[data-match='1']")
    assert counts(browser)["selectedEvents"] == [0, 3]
    browser.switch_to.default_content()


def test_the_playground(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    with served() as port:
        requests(browser), complaints(browser)
        wait = WebDriverWait(browser, 60)

        def shown(selector: str, count: int) -> list[Any]:
            found: list[Any] = []

            def is_there(_: Any) -> bool:
                found[:] = browser.find_elements("css selector", selector)
                return len(found) == count

            wait.until(is_there)
            return found

        address = f"http://{HOST}:{port}"
        browser.get(f"{address}/")
        assert browser.find_elements("css selector", ".cm-content .k")[0].text == "CREATE"
        # A query is typed, with an error, which is underlined and mended by its fix.
        text = browser.find_element("css selector", ".cm-content")
        text.send_keys(Keys.CONTROL, "a")
        text.send_keys(Keys.BACKSPACE)
        text.send_keys(QUERY.replace("x.v", "x.vv"))
        (wrong,) = shown(".cm-lintRange-error", 1)
        assert wrong.text == "vv"
        (mend,) = shown("#problems button", 1)
        assert mend.text == "write v"
        mend.click()
        shown("#problems li", 0)
        # Rows are shown.
        rows = browser.find_element("id", "events")
        rows.clear()
        rows.send_keys(ROWS)
        browser.find_element("id", "run").click()
        cells = shown("#matches td", 3)
        assert [one.text for one in cells] == ["0", "0", "#0 v=41"]
        assert complaints(browser) == []
        assert {one.rpartition("/")[0] for one in requests(browser)} == {address}
        # A page of another origin gets no answer, whether the browser asks first or not.
        asked = "fetch(arguments[0], {method: 'POST', mode: arguments[1], headers: arguments[2], "
        asked += "body: '{}'}).then(a => arguments[3](a.type), e => arguments[3](e.message))"
        browser.get("data:text/html,<title>other</title>")
        sent = browser.execute_async_script(asked, f"{address}/check", "no-cors", {})
        json_type = {"Content-Type": "application/json"}
        told = browser.execute_async_script(asked, f"{address}/check", "cors", json_type)
        assert sent == told == "Failed to fetch"
