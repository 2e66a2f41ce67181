"""The cases of TOTAL and COLLAPSED through every way to run a query on one machine."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import celc_runtime.engine.totals.kernel as kernel
import pyarrow as pa
import pytest
from cases_io import Case, load_cases
from celc_runtime import CompiledQuery
from celc_runtime.engine.totals.measures import measures_of
from celc_runtime.engine.totals.total_elements import Shape
from celc_runtime.plan.errors import TotalError
from celc_runtime.plan.strategy import Counted, United
from celc_runtime.run.answer import counted
from engines import engines, interpreted, only_query, plain_totals, table_of
from places import CASES
from reference import totals_difference
from test_random_totals import answered, told

import celc
from celc.interfaces.cli import main
from celc.options import Options

FOLDER = CASES / "totals"
_LISTED = {
    "28-totals": 16,
    "29-collapsed": 9,
    "40-first": 0,
    "53-totals-of-decimals": 0,
    "54-collapsed-lasting": 0,
}
"""How many of the first cases have more matches than can be listed."""


def _is_too_long(case: Case, one: CompiledQuery) -> bool:
    stem, _, number = case.name.partition("/")
    is_listed = not isinstance(one.program.listing, Counted | United)
    return int(number) <= _LISTED[stem] and is_listed


def _told(case: Case, one: CompiledQuery, rows: Any) -> str:
    if case.run_error is not None:
        place, error = f"position {case.run_error['end_pos']}:", str(rows)
        named = place[:-1] in error and "APPROX_COUNT" in error
        return "" if isinstance(rows, TotalError) and named else f"{rows}: no error at {place}"
    if isinstance(rows, TotalError):
        return str(rows)
    if case.rows is not None:
        return totals_difference(rows, case.rows)
    return told(_Collapsed, one, rows, case.expected)


class _Collapsed:
    """What `told` asks of a query."""

    is_total = False


@pytest.mark.parametrize("each", [4, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("stem", list(_LISTED))
def test_counted_and_listed(stem: str, each: int) -> None:
    """`match_table` and `match_arrow` over random cuts; one case in so many by the general engine
    too."""
    problems, compared, were_counted = [], 0, 0
    for number, case in enumerate(load_cases(stem, FOLDER)):
        options = Options(case.order_by, at_end=case.at_end)
        with interpreted():
            compiled = engines(case.query, options, general=number % each == 0)
        for engine, matcher in compiled.items():
            one = only_query(matcher)
            if _is_too_long(case, one):
                continue
            compared += 1
            were_counted += isinstance(one.program.listing, Counted | United)
            with plain_totals(wavering=random.Random(case.name)):
                found = answered(one, case.events, random.Random(case.name))
            problems += [
                f"{case.name} {engine} {route}: {wrong}"
                for route, rows in found.items()
                if (wrong := _told(case, one, rows))
            ]
    assert not problems, "\n".join(problems)
    assert compared >= (50 if _LISTED[stem] else 5)
    assert were_counted >= (40 if stem == "28-totals" else 0)


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(((0, 0, 1, 0, 0, 0),), id="one"),
        pytest.param(
            ((0, 0, -1, 0, 0, 0), (1, 1, -1, 0, 0, 0), (0, 0, 1, 1, 0, 0)),
            id="others",
            marks=pytest.mark.long,
        ),
    ],
)
def test_compiled_by_numba(some: tuple[tuple[int, ...], ...]) -> None:
    """As users run them: one case of each number of measures, up to three."""
    shapes: dict[Any, tuple[Case, CompiledQuery]] = {}
    for case in load_cases("28-totals", FOLDER):
        with interpreted():
            one = only_query(celc.compile(case.query, order_by=case.order_by))
        if isinstance(one.program.listing, Counted) and case.run_error is None:
            assert one.plan.answer.totals is not None
            shape = measures_of(one.plan.answer.totals.functions).shape
            if shape in some:
                shapes.setdefault(shape, (case, one))
    assert shapes.keys() == {*some}
    for case, one in shapes.values():
        rows = one.match_table(table_of(one.plan, case.events)).to_pylist()
        assert not totals_difference(rows, case.rows or []), case.name


def test_command_line(tmp_path: Path) -> None:
    """`celc run --format json`: a line for each row, in which a DECIMAL is a text."""
    compared = 0
    for case in load_cases(folder=FOLDER)[20::9]:
        if case.run_error is not None or case.order_by or "TIMESTAMP" in case.query:
            continue
        source, events = tmp_path / "q.cel", tmp_path / "events.jsonl"
        source.write_text(case.query)
        events.write_text("".join(json.dumps(event, default=str) + "\n" for event in case.events))
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with interpreted(), plain_totals(), contextlib.redirect_stdout(out):
            with contextlib.redirect_stderr(io.StringIO()):
                assert main(["run", str(source), str(events), "--format", "json"]) == 0, case.name
            out.flush()
        lines = out.buffer.getvalue().decode().splitlines()  # type: ignore[attr-defined]
        written = [json.loads(line) for line in lines]
        if case.rows is not None:
            found: Any = [line["row"] for line in written]
            assert not totals_difference(found, case.rows), case.name
        else:
            # A number where a LONG can hold it.
            assert sorted(str(line["matches"]) for line in written) == sorted(
                row["matches"] for row in case.expected
            ), case.name
        compared += 1
    assert compared >= 8


# --- many matches ---------------------------------------------------------------------------------

_MANY = "CREATE STREAM S { EVENT A {}, EVENT B {} }\nSELECT TOTAL {} AS n FROM S WHERE A+ ; B"


def _rows(items: str, count: int, clauses: str = "") -> tuple[list[dict[str, Any]], int]:
    """The rows of `A+ ; B` over so many A's and a B, and how many additions they took."""
    with interpreted():
        one = only_query(celc.compile(_MANY.replace("{} AS", f"{items} AS") + clauses))
    steps, patched = 0, set[bool]()
    with plain_totals():
        update = counted.totals_update

        def counted_add(module: dict[str, Any], name: str) -> Callable[..., Any]:
            add = module[name]

            def counting(*words: Any) -> Any:
                nonlocal steps
                steps += 1
                return add(*words)

            return counting

        def counting(shape: Shape, bounded: bool) -> Any:
            found = update(shape, bounded)
            parts, name = (
                ("parts_of_bounded_totals", "add_wrapping")
                if bounded
                else ("parts_of_totals", "add_wide")
            )
            module = found.__globals__[parts].__wrapped__.__globals__
            if bounded not in patched:
                patched.add(bounded)
                module[name] = counted_add(module, name)
            return found

        counted.totals_update = counting  # type: ignore[assignment]
        table = pa.table({"type": ["A"] * count + ["B"]})
        rows = one.match_table(table).to_pylist()
    return rows, steps


def test_more_matches_than_64_bits_count() -> None:
    assert _rows("COUNT(*)", 60)[0] == [{"end_pos": 60, "n": Decimal(2**60 - 1)}]
    assert _rows("COUNT(*)", 120)[0] == [{"end_pos": 120, "n": Decimal(2**120 - 1)}]
    (row,) = _rows("COUNT(A)", 100)[0]
    assert row["n"] == 100 * 2**99  # each A is in half of all sets


def test_more_matches_than_38_digits_are_an_error() -> None:
    with pytest.raises(TotalError, match=r"position 130.*APPROX_COUNT"):
        _rows("COUNT(*)", 130)
    (row,) = _rows("APPROX_COUNT(*)", 130)[0]
    assert row["n"] == pytest.approx(2.0**130, rel=1e-12)
    (row,) = _rows("APPROX_COUNT(*)", 5000)[0]
    assert row["n"] == float("inf")


_KEYED = """CREATE STREAM S { EVENT A { id: LONG, n: LONG, v: DOUBLE }, EVENT B { id: LONG } }
SELECT TOTAL COUNT(*) AS n, COUNT(x) AS readings, SUM(x.n) AS s, AVG(x.v) AS mean, MIN(x.n) AS least
FROM S WHERE ((A AS x)+ ; B AS y) FILTER x.id = y.id"""


def test_keys_are_counted_by_nodes() -> None:
    """Two keys, and 2¹⁰⁰ − 1 matches of each, in which each event is as often."""
    with interpreted():
        one = only_query(celc.compile(_KEYED))
        assert one.program.listing == United(weighs=True)
        table = pa.table(
            {
                "type": ["A"] * 200 + ["B"],
                "id": [1, 2] * 100 + [2],
                "n": [7, -3] * 100 + [None],
                "v": [1e300, 0.1] * 100 + [None],
            }
        )
        (row,) = one.match_table(table).to_pylist()
    each = 100 * 2**99
    assert (row["n"], row["readings"]) == (2**100 - 1, each)
    assert (row["s"], row["least"]) == (-3 * each, -3)
    assert row["mean"] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("clauses", ["", " WITHIN 2000 EVENTS", " WITHIN 20 EVENTS"])
def test_work_is_linear(clauses: str) -> None:
    """Whatever the window and the number of matches, of which there are up to 2⁸⁰⁰."""
    short, long = (_rows("APPROX_COUNT(*)", count, clauses)[1] for count in (200, 800))
    assert short >= 200
    assert long <= 4.5 * short


def test_the_kernel_has_room_for_long_windows() -> None:
    """The ring doubles until all events of the window have room."""
    assert kernel.WINDOW_FULL
    rows, _ = _rows("APPROX_COUNT(*)", 300, " WITHIN 1000 EVENTS")
    assert len(rows) == 1
