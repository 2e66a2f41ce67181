"""The data of reports: which events and matches are shown, where, and in which words."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases_io import load_cases
from engines import interpreted, table_of
from fires import FIRE, HOSTILE, farm, hostile, matcher
from parameters import rows_table
from places import CASES
from queries_over_queries import source_table

import celc
from celc.diagnostics.source import visible_lines
from celc.interfaces.cli import main
from celc.interfaces.pages.marks import marks_of_columns
from celc.interfaces.pages.sample import lowest, ranks, with_others


class _Parts(HTMLParser):
    """The elements of a page with their attributes, and the texts of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)


def data_of(page: str) -> dict[str, Any]:
    """The data of a page, as its script reads it."""
    first = _Parts(page).texts["script"][0]
    found: dict[str, Any] = json.loads(first)
    return found


def values(part: dict[str, Any], name: str) -> list[Any]:
    """The values of a column."""
    (column,) = (one for one in part["columns"] if one["name"] == name)
    if column["kind"] != "text":
        found: list[Any] = column["values"]
        return found
    return [None if code < 0 else column["texts"][code] for code in column["codes"]]


def report(text: str, events: pa.Table, options: dict[str, Any] | None = None, **more: Any) -> Any:
    query = matcher(text, **(options or {}))
    tables = {name: more.pop(name) for name in list(more) if isinstance(more[name], pa.Table)}
    return data_of(celc.report(query.match_table(events, **tables), events, query=query, **more))


# --- near misses ----------------------------------------------------------------------------------


def test_near_misses_stand_behind_the_matches() -> None:
    query, events = matcher(FIRE), farm()
    matches, near = query.match_table(events), query.near_misses(events, near=0.2)
    data = data_of(celc.report(matches, events, query=query, near=near))
    assert len(matches) == 3
    assert len(near) > 0
    assert data["near"] == {
        "first": 3,
        "count": len(near),
        "columns": len(matches.schema),
    }
    assert data["matches"]["count"] == 3
    assert sum(data["counts"][0]["counts"]) == 3
    assert values(data["matches"], "part") == [None] * 3 + near["part"].to_pylist()
    assert len(data["matches"]["lane"]) == 3 + len(near)
    few = data_of(celc.report(matches, events, query=query, near=near, max_matches=0))
    assert (len(few["matches"]["lane"]), few["near"]["count"]) == (0, len(near))
    with pytest.raises(ValueError, match="near must be what near_misses returned"):
        celc.report(matches, events, query=query, near=matches)


def test_the_command_makes_a_report_of_near_misses(tmp_path: Path) -> None:
    (tmp_path / "fire.cel").write_text(FIRE)
    pq.write_table(farm(), tmp_path / "farm.parquet")
    out = tmp_path / "fire.html"
    given = [str(tmp_path / "fire.cel"), str(tmp_path / "farm.parquet")]
    assert main(["run", *given, "--near", "--near-by", "0.2", "-o", str(out)]) == 0
    data = data_of(out.read_text("utf-8"))
    assert data["matches"]["count"] == 3
    assert data["near"]["count"] > 0


# --- what is shown --------------------------------------------------------------------------------


def test_matches_name_their_events() -> None:
    data = report(FIRE, farm())
    events, matches = data["events"], data["matches"]
    assert [values(events, "value")[n] for n in range(7)] == [41.5, 31, 42, 24.5, 23, 38, 22]
    assert events["pos"] == [0, 1, 2, 3, 4, 0, 1]
    assert events["lane"] == [0, 0, 0, 0, 0, 1, 1]
    assert [data["types"][n] for n in events["type"]] == list("THTHHTH")
    assert matches["lane"] == [0, 0, 0]
    ends = zip(matches["offsets"], matches["offsets"][1:], strict=False)
    assert [matches["events"][a:b] for a, b in ends] == [[2, 3], [0, 3], [2, 4]]
    assert [matches["labels"][n] for n in matches["labelOf"]] == ["hot", "dry"] * 3
    assert values(matches, "hot") == ["#2 value=42.0", "#0 value=41.5", "#2 value=42.0"]
    assert data["axis"] == {"kind": "time", "name": "ts"}
    assert sum(data["counts"][0]["counts"]) == 3
    assert data["text"] == FIRE.strip()


def test_events_in_any_order_have_the_same_report() -> None:
    mixed = farm().take([6, 2, 5, 0, 3, 1, 4])
    assert report(FIRE, mixed) == report(FIRE, farm())


def test_without_the_query_columns_tell_partitions_order_and_types() -> None:
    query, events = matcher(), farm()
    found = query.match_table(events)
    alone = data_of(celc.report(found, events))
    known = data_of(celc.report(found, events, query=query))
    assert alone["matches"] == known["matches"]
    assert alone["events"] == known["events"]
    assert (alone["title"], alone["text"]) == ("Matches", "")


def test_the_order_is_asked_for_where_columns_do_not_tell_it() -> None:
    events = farm()
    doubled = events.append_column("seen", events.column("ts"))
    found = matcher().match_table(events)
    with pytest.raises(ValueError, match="times of the matches are: ts, seen; give query="):
        celc.report(found, doubled)
    moved = events.append_column("seen", pa.array(range(7), pa.timestamp("us", tz="UTC")))
    assert data_of(celc.report(found, moved))["axis"]["name"] == "ts"


@pytest.mark.parametrize("known", [True, False])
def test_matches_of_other_events_are_refused(known: bool) -> None:
    query, events = matcher(), farm()
    found = query.match_table(events)
    for other in (events.slice(1), events.slice(0, 4), events.filter(pa.array([False] * 7))):
        if len(other):
            with pytest.raises(ValueError, match="the matches are not of these events"):
                celc.report(found, other, query=query if known else None)


def test_tables_of_other_libraries() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    query, events = matcher(), farm()
    found = query.match_table(events)
    wanted = data_of(celc.report(found, events, query=query))
    frames = found.to_pandas(), events.to_pandas()
    assert isinstance(frames[0], pandas.DataFrame)
    assert data_of(celc.report(*frames, query=query))["matches"] == wanted["matches"]
    frames = polars.from_arrow(found), polars.from_arrow(events)
    assert data_of(celc.report(*frames, query=query))["matches"] == wanted["matches"]
    with pytest.raises(TypeError, match="events is a str, which is no table"):
        celc.report(found, "events.csv")


def test_no_matches_and_no_events() -> None:
    query, events = matcher(), farm()
    nothing = report(FIRE, events.slice(0, 0))
    assert (nothing["events"]["count"], nothing["matches"]["count"]) == (0, 0)
    alone = data_of(celc.report(query.match_table(events)))
    assert (alone["events"]["count"], alone["matches"]["count"]) == (0, 3)
    assert None not in alone["matches"]["start"]
    only_events = data_of(celc.report(query.match_table(events).slice(0, 0), events, query=query))
    assert (only_events["events"]["count"], only_events["matches"]["count"]) == (7, 0)


def test_rows_that_are_not_drawn_are_counted() -> None:
    events = farm()
    kinds = pa.array(["T", "H", "X", "T", "H", "H", "H"])
    text = FIRE.replace("EVENT H", "EVENT W { id: LONG, ts: TIMESTAMP },\n  EVENT H")
    with pytest.warns(UserWarning, match="declare"):
        data = report(text, events.set_column(0, "type", kinds))
    assert data["events"]["count"] == 6
    assert data["notes"] == [
        "1 rows of types that the query's streams do not declare are left out."
    ]
    kinds = pa.array(["T", "H", "W", "T", "H", "H", "H"])
    data = report(text, events.set_column(0, "type", kinds))
    assert data["events"]["count"] == 6
    assert data["notes"] == ["1 events of types that the query does not name are not drawn."]


# --- samples --------------------------------------------------------------------------------------


def test_a_sample_is_the_same_each_time_and_holds_the_events_of_matches() -> None:
    query, events = matcher(), farm()
    found = query.match_table(events)
    page = celc.report(found, events, query=query, max_events=4, max_matches=2)
    assert page == celc.report(found, events, query=query, max_events=4, max_matches=2)
    data = data_of(page)
    assert (data["events"]["count"], len(data["events"]["x"])) == (7, 4)
    assert (data["matches"]["count"], len(data["matches"]["lane"])) == (3, 2)
    assert sum(data["counts"][0]["counts"]) == 3
    sizes = np.diff(data["matches"]["offsets"]).tolist()
    assert sizes == [2, 2]
    with pytest.raises(ValueError, match="max_events must be a whole number from 0, not -1"):
        celc.report(found, events, query=query, max_events=-1)


def test_batches_do_not_change_a_sample() -> None:
    whole = ranks(0, 1000)
    assert np.array_equal(np.concatenate([ranks(0, 300), ranks(300, 700)]), whole)
    assert len(lowest(whole, 10)) == 10
    chosen = with_others(np.arange(5), 1000, 20)
    assert len(chosen) == 20
    assert set(range(5)) <= set(chosen.tolist())
    assert len(with_others(np.arange(500), 1000, 20)) == 20
    # No run of rows is left out by the hash.
    assert np.diff(lowest(ranks(0, 100_000), 10_000)).max() < 200


# --- other queries --------------------------------------------------------------------------------


def test_totals_are_drawn_where_they_are() -> None:
    each_end = report(FIRE.replace("hot[value], dry[value]", "TOTAL COUNT(*) AS n"), farm())
    assert each_end["words"] == ["row of totals", "rows of totals"]
    assert values(each_end["matches"], "n") == [2, 1]
    assert each_end["matches"]["startPos"] == each_end["matches"]["endPos"] == [3, 4]
    assert "PER END" in each_end["notes"][0]
    text = FIRE.replace("hot[value], dry[value]", "TOTAL COUNT(*) AS n").rstrip()
    parts = report(f"{text}\nPER PARTITION", farm())
    assert parts["matches"]["start"] == [None]
    assert "in the table alone" in parts["notes"][0]


def test_rows_of_other_types_stand_in_some_pieces_alone() -> None:
    events = farm()
    other = events.slice(0, 1).set_column(0, "type", pa.array(["other"]))
    last = pa.concat_tables([events[2:], other.set_column(3, "ts", events["ts"][-1:])])
    pieces = pa.concat_tables([events[:2], last.combine_chunks()])
    query = matcher(FIRE.replace("PARTITION BY id", ""))
    found = data_of(celc.report(query.match_table(pieces), pieces, query=query))
    assert found["matches"]["count"] >= 3


def test_unions_are_bars() -> None:
    data = report(FIRE.replace("SELECT hot", "SELECT COLLAPSED hot"), farm())
    ends = zip(data["matches"]["offsets"], data["matches"]["offsets"][1:], strict=False)
    assert [data["matches"]["events"][a:b] for a, b in ends] == [[0, 2, 3], [2, 4]]
    assert values(data["matches"], "matches") == [2, 1]


@pytest.mark.parametrize("folder", ["language", "parameters", "queries"])
def test_cases_of_the_language_have_reports(folder: str) -> None:
    """Bars have the events that the answer names, in queries of all kinds."""
    cases = load_cases(folder=CASES / folder)
    for case in cases[:: len(cases) // 3]:
        query = matcher(case.query, order_by=case.order_by, ties=case.ties, at_end=case.at_end)
        query = query.queries[case.query_name or list(query.queries)[-1]]
        read = source_table if query.plan.source.reads else table_of_plan
        events = read(query, case.events)
        sets = {name: rows_table(query, rows) for name, rows in case.parameters.items()}
        found = query.match_table(events, **sets)
        data = data_of(celc.report(found, events, query=query))
        matches = data["matches"]
        assert matches["count"] == len(found)
        for number, row in enumerate(found.to_pylist()):
            drawn = range(matches["offsets"][number], matches["offsets"][number + 1])
            named = {(name, event["pos"]) for name in matches["labels"] for event in row[name]}
            assert named == {
                (matches["labels"][matches["labelOf"][n]], data["events"]["pos"][event])
                for n in drawn
                for event in [matches["events"][n]]
                if data["events"]["lane"][event] == matches["lane"][number]
            }, case.name


def table_of_plan(query: Any, events: list[dict[str, Any]]) -> pa.Table:
    return table_of(query.plan, events)


def test_without_an_order_events_are_drawn_by_position() -> None:
    text = (
        "CREATE STREAM S { EVENT A { n: LONG }, EVENT B { n: LONG } } SELECT * FROM S WHERE A ; B"
    )
    events = pa.table({"type": ["A", "B", "B"], "n": [2**60, None, 3]})
    data = report(text + " WITHIN 9 EVENTS", events)
    assert data["axis"] == {"kind": "position", "name": None}
    assert data["matches"]["end"] == [1, 2]
    # JavaScript has no such number.
    assert values(data["events"], "n") == [str(2**60), None, "3"]


# --- the page -------------------------------------------------------------------------------------


def test_nothing_of_a_query_or_its_events_is_html() -> None:
    text, events = hostile()
    query = matcher(text)
    page = celc.report(query.match_table(events), events, query=query, title=HOSTILE[0])
    parts = _Parts(page)
    assert [tag for tag, _ in parts.elements].count("script") == 2
    assert not [tag for tag, _ in parts.elements if tag in ("img", "b")]
    assert not [
        one for _, one in parts.elements if {"src", "href", "style", "onerror"} & one.keys()
    ]
    inside = page.split('id="data">')[1].split("</script>")[0]
    assert inside.isascii()
    assert not set("<>&") & set(inside)
    assert set(map(visible_lines, HOSTILE)) <= set(values(data_of(page)["events"], "note"))
    assert "window.hurt" in data_of(page)["text"]


def test_a_page_forbids_itself_to_load_anything() -> None:
    page = celc.report(matcher().match_table(farm()), farm())
    (policy,) = (
        one["content"]
        for _, one in _Parts(page).elements
        if one.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_a_notebook_shows_a_page_in_a_frame() -> None:
    page = celc.report(matcher().match_table(farm()), farm())
    shown = page._repr_html_()
    (tag, attributes), *more = _Parts(shown).elements
    assert (tag, more) == ("iframe", [])
    assert attributes["srcdoc"] == page
    assert attributes["sandbox"] == "allow-scripts"


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import pyarrow.parquet

    (tmp_path / "fire.cel").write_text(FIRE)
    pyarrow.parquet.write_table(farm(), tmp_path / "farm.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_the_page_that_python_makes(folder: Path) -> None:
    with interpreted():
        assert main(["run", "fire.cel", "farm.parquet", "-o", "report.html"]) == 0
    page = (folder / "report.html").read_text("utf-8")
    assert data_of(page) == report(FIRE, farm())
    with interpreted():
        again = ["run", "fire.cel", "farm.parquet", "--format", "html", "-o", "again.html"]
        assert main([*again, "--max-matches", "2"]) == 0
    assert data_of((folder / "again.html").read_text("utf-8"))["matches"]["count"] == 2


def test_the_command_says_what_it_cannot_draw(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "two.cel").write_text(FIRE + "QUERY b: SELECT * FROM Farm WHERE T WITHIN 1 EVENTS")
    assert main(["run", "two.cel", "farm.parquet", "-o", "report.html"]) == 2
    assert "name a query with --query (fire, b)" in capsys.readouterr().err
    wrong = farm().drop_columns(["value"])
    import pyarrow.parquet

    pyarrow.parquet.write_table(wrong, folder / "wrong.parquet")
    assert main(["run", "fire.cel", "wrong.parquet", "-o", "report.html"]) == 2
    assert "'value'" in capsys.readouterr().err
    assert not (folder / "report.html").exists()


def test_a_lane_of_keys_that_are_equal() -> None:
    """Of events whose query is not known as well: −0.0 is 0.0, and NaN equals NaN."""
    keys = [0.0, float("nan"), -0.0, -float("nan"), 0.0]
    found = marks_of_columns(pa.table({"k": keys}), ["k"], None, [pa.float64()])
    assert found.positions.tolist() == [0, 1, 2, 0, 1]
    assert list(map(str, found.keys[0].to_pylist())) == ["0.0", "0.0", "0.0", "nan", "nan"]
