"""What `explain_plan` says of each plan, in golden files.

`pytest --update-golden` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from celc_runtime import CompiledQuery
from celc_runtime.spark import facts
from celc_runtime.spark.input.probe import Size
from engines import interpreted, only_query
from golden_files import compare
from places import TESTS

import celc

_FOLDER = TESTS / "spark_plans"
_ROWS = 3000

_DECLARATION = "CREATE STREAM S {{ {} }} ".format(
    ", ".join(f"EVENT {name} {{ id: LONG, value: DOUBLE, ts: LONG }}" for name in "ABC")
)
_IN_ORDER = "SELECT a[value], b FROM S WHERE (A AS a ; B AS b) FILTER a.value > 3"
_BY_KEY = f"{_IN_ORDER} PARTITION BY id WITHIN 30 [ts]"
_SET = "PARAMETERS rule { id: LONG, low: LONG, high: LONG } "
_RULES = {"rule": pa.table({"id": [3, 4], "low": [5, 9], "high": [90, 70]})}
_BETWEEN = (
    f"{_SET}SELECT a, b FROM S FOR EACH rule WHERE (A AS a ; B AS b) FILTER a.ts >= rule.low AND "
    "b.ts < rule.high PARTITION BY id WITHIN 30 [ts]"
)
_NEIGHBOURS = (
    f"{_SET}SELECT a, b FROM S FOR EACH rule WHERE (A AS a : B AS b) FILTER a.id = rule.id "
    "PARTITION BY id WITHIN 30 [ts]"
)


def _query(text: str, **options: Any) -> CompiledQuery:
    with interpreted():
        return only_query(
            celc.compile(_DECLARATION + text, order_by="ts", tiebreak="row")
        ).with_options(**options)


@pytest.fixture(scope="module")
def frame(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Events in the order of their times, three fifths of one key."""
    rng = np.random.default_rng(21)
    table = pa.table(
        {
            "type": rng.choice(["A", "B", "C"], _ROWS),
            "id": np.where(rng.random(_ROWS) < 0.6, 3, rng.integers(0, 7, _ROWS)),
            "value": rng.random(_ROWS) * 5,
            "ts": np.arange(_ROWS),
            "row": np.arange(_ROWS),
            "note": ["unread"] * _ROWS,
        }
    )
    folder = tmp_path_factory.mktemp("events")
    pq.write_table(table, folder / "events.parquet", row_group_size=500)
    return spark.read.parquet(str(folder))


def _spread(frame: Any) -> Any:
    return frame.repartition(3, "id").sortWithinPartitions("id", "ts", "row")


def _of_two_parts(frame: Any) -> Any:
    return frame.where("id = 3").unionAll(frame.where("id = 4"))


def _in_one(frame: Any) -> Any:
    return frame.coalesce(1)


def _in_small_row_groups(frame: Any) -> Any:
    (path,) = frame.inputFiles()
    written = Path(path.removeprefix("file:")).parent.with_name("small_row_groups")
    if not written.exists():
        written.mkdir()
        table = pq.read_table(path.removeprefix("file:"))
        pq.write_table(table, written / "events.parquet", row_group_size=50)
    return frame.sparkSession.read.parquet(str(written))


def _as_it_is(frame: Any) -> Any:
    return frame


def _plan(
    text: str,
    options: dict[str, Any] | None = None,
    made: Callable[[Any], Any] = _as_it_is,
    **asked: Any,
) -> Callable[[Any], str]:
    return lambda frame: _query(text, **(options or {})).explain_plan(made(frame), **asked)


_POSITIONS = {"positions": True}
_PLANS: dict[str, Callable[[Any], str]] = {
    "one_task": _plan(_IN_ORDER),
    "one_task_of_all_rows": _plan("SELECT * FROM S WHERE NXT(A ; B) WITHIN 30 [ts]"),
    "one_task_of_neighbours": _plan("SELECT * FROM S WHERE A : B WITHIN 30 [ts]"),
    "one_task_with_positions": _plan(_IN_ORDER, _POSITIONS),
    "one_task_presorted": _plan(_IN_ORDER, made=_in_one, presorted=True),
    "one_task_consuming": _plan(f"{_BY_KEY} CONSUME BY ANY"),
    "small_data": _plan(f"{_IN_ORDER} WITHIN 30 [ts]"),
    "time_ranges": _plan(f"{_IN_ORDER} WITHIN 30 [ts]", ranges=4),
    "time_ranges_with_positions": _plan(f"{_IN_ORDER} WITHIN 30 [ts]", _POSITIONS, ranges=4),
    "time_ranges_at_row_groups": _plan(
        f"{_IN_ORDER} WITHIN 30 EVENTS", made=_in_small_row_groups, ranges=4
    ),
    "time_ranges_of_events": _plan(f"{_IN_ORDER} WITHIN 30 EVENTS", ranges=4),
    "time_ranges_with_a_deadline": _plan(
        "SELECT * FROM S WHERE A ; B ; !C FOR 20 [ts] WITHIN 30 [ts]", ranges=4
    ),
    "time_ranges_of_single_events": _plan("SELECT * FROM S WHERE !B FOR 20 [ts] ; A", ranges=4),
    "by_key": _plan(_BY_KEY, ranges=1),
    "by_key_of_few_rows": _plan(_BY_KEY),
    "by_key_of_few_rows_with_positions": _plan(_BY_KEY, _POSITIONS),
    "by_key_of_all_rows": _plan("SELECT * FROM S WHERE NXT(A ; B) PARTITION BY id", ranges=1),
    "by_key_of_neighbours": _plan("SELECT * FROM S WHERE A : B PARTITION BY id", ranges=1),
    "by_key_with_positions": _plan(_BY_KEY, _POSITIONS, ranges=1),
    "by_key_sorted_by_spark": _plan(_BY_KEY, {"tiebreak": "value", **_POSITIONS}, ranges=1),
    "by_key_presorted": _plan(_BY_KEY, made=_spread, presorted=True),
    "by_key_presorted_unknown": _plan(_BY_KEY, made=_of_two_parts, presorted=True),
    "rules_with_bounds": _plan(_BETWEEN, ranges=1, **_RULES),
    "rules_of_partitions": _plan(_NEIGHBOURS, ranges=1, **_RULES),
    "hot_key": _plan(_BY_KEY, ranges=4),
    "hot_key_with_positions": _plan(_BY_KEY, _POSITIONS, ranges=4),
}


@pytest.mark.each(2)
@pytest.mark.parametrize("name", _PLANS)
def test_golden_plan(name: str, frame: Any, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # What Spark expects depends on the writer of the file.
    monkeypatch.setattr(facts, "size_of", lambda _: Size(5_000, True))
    monkeypatch.setattr(facts, "told_rows", lambda _: "perhaps 5,000")
    # The line about Arrow is of the session.
    lines = [line for line in _PLANS[name](frame).splitlines() if not line.startswith("arrow: ")]
    compare(_FOLDER / f"{name}.txt", "\n".join(lines) + "\n", update)


def test_every_golden_plan_is_compared() -> None:
    assert {path.stem for path in _FOLDER.glob("*.txt")} == {*_PLANS}


def test_every_job_of_a_plan_is_told() -> None:
    """`asked` runs the jobs that choose a plan; two more answers come without one in a classic
    session: Spark's EXPLAIN and the question for a class."""
    folder = Path(facts.__file__).parent
    found = {path.name: path.read_text().count(".collect()") for path in folder.rglob("*.py")}
    assert {name: count for name, count in found.items() if count} == {"probe.py": 3}
