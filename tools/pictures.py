"""Draws the pictures of docs/images: a report and an automaton, as a headless browser shows them.

    python tools/pictures.py

Needs Chromium and chromedriver (`make browser`). The events are made here, the same each time.
"""

from __future__ import annotations

import math
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import celc
from celc.diagnostics.source import Source
from celc.driver.pipeline import compile_source
from celc.interfaces.pages.automaton import automaton_page
from celc.interfaces.pages.counts import taken_by
from celc.options import Options

IMAGES = Path(__file__).parents[1] / "docs" / "images"

QUERY = """CREATE STREAM Farm {
  EVENT T { id: STRING, value: DOUBLE, ts: TIMESTAMP },  -- temperature in °C
  EVENT H { id: STRING, value: DOUBLE, ts: TIMESTAMP },  -- relative humidity in %
  EVENT W { id: STRING, value: DOUBLE, ts: TIMESTAMP }   -- wind in km/h
}

-- Dry air and then wind, soon after a hot reading at the same place.
QUERY fire:
SELECT hot[value], dry[value], gust[value]
FROM Farm
WHERE (T AS hot ; H AS dry ; W AS gust)
  FILTER hot.value > 36 AND dry.value <= 30 AND gust.value > 20
PARTITION BY id
WITHIN 60 MINUTES [ts]
"""

_PLACES = ("hill", "orchard", "pasture", "riverside")
_MORNING = 1_782_889_200_000_000  # microseconds since 1970: 2026-07-01 07:00 UTC


def farm() -> pa.Table:
    """Random events of ten hours of a hot day at four places, place after place."""
    chance = random.Random(4)
    rows = []
    for place, name in enumerate(_PLACES):
        minute = 0.0
        while minute < 600:
            minute += chance.expovariate(1 / 9.0)
            heat = math.sin(math.pi * minute / 600) - 0.12 * place
            kind = chance.choice("TTHHW")
            value = {
                "T": 26 + 13 * heat + chance.gauss(0, 2.2),
                "H": 52 - 27 * heat + chance.gauss(0, 5),
                "W": 14 + 13 * heat + chance.gauss(0, 7),
            }[kind]
            at = _MORNING + int(minute * 60) * 1_000_000
            rows.append((kind, name, round(max(0.0, value), 1), at))
    kinds, ids, values, times = zip(*rows, strict=True)
    return pa.table(
        {
            "type": kinds,
            "id": ids,
            "value": values,
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


def drawn(page: str, script: str, file: Path, size: str) -> None:
    """Save a picture of a page of HTML, after a script has run in it. size: `width,height`."""
    from selenium import webdriver

    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        sys.exit("needs Chromium and chromedriver: make browser")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        options: Any = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars", "no-first-run"):
            options.add_argument(f"--{flag}")
        options.add_argument(f"--user-data-dir={folder}/profile")
        options.add_argument(f"--window-size={size}")
        shown = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            shown.get(path.as_uri())
            shown.execute_script(script)
            time.sleep(0.5)
            shown.save_screenshot(str(file))
        finally:
            shown.quit()


def main() -> None:
    """Draw both pictures."""
    IMAGES.mkdir(exist_ok=True)
    matcher, events = celc.compile(QUERY), farm()
    page = celc.report(matcher.match_table(events), events, query=matcher)
    drawn(page, "celcReport.select(9)", IMAGES / "report.png", "1280,1000")
    (stages,) = compile_source(Source("fire.cel", QUERY), Options()).queries
    taken = taken_by(stages, matcher.queries["fire"].program, events)
    drawn(automaton_page(stages, QUERY, taken), "", IMAGES / "automaton.png", "1280,720")


if __name__ == "__main__":
    main()
