"""A plan is chosen by facts alone: no Spark is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from celc_runtime.plan.errors import EventError
from celc_runtime.run.ranges import Sample, TimeRange
from celc_runtime.spark.choose import Chosen, Request, choose
from celc_runtime.spark.file_statistics import FilesTell
from celc_runtime.spark.hot_keys import HotKey
from celc_runtime.spark.input.order_column import OrderColumn, ValueColumn
from celc_runtime.spark.input.probe import Size
from celc_runtime.spark.input.pushdown import why_not_filtered
from celc_runtime.spark.numbering import why_not_numbered
from celc_runtime.spark.steps import told
from celc_runtime.spark.worker.task_columns import TaskColumns
from engines import interpreted, only_query

import celc

_DECLARATION = (
    "CREATE STREAM S { EVENT A { id: LONG, ts: LONG }, EVENT B { id: LONG, ts: LONG }, "
    "EVENT C { id: LONG, ts: LONG } } "
    "SELECT * FROM S WHERE A ; B "
)
_TYPES = {"type": "string", "id": "bigint", "ts": "bigint", "row": "bigint"}
_MANY = 1 << 30
_GRID = tuple(range(0, 1000, 4))


class _Told:
    """Facts that somebody tells; a question for any other fails. `asked`: how often each was."""

    def __init__(self, clauses: str, *, positions: bool = False, **facts: Any) -> None:
        with interpreted():
            query = only_query(celc.compile(_DECLARATION + clauses, order_by="ts", tiebreak="row"))
        self.program = query.with_options(positions=positions).program
        self.plan = plan = self.program.plan
        self.is_filtered = not why_not_filtered(plan)
        self.is_numbered = bool(why_not_filtered(plan)) and not why_not_numbered(plan)
        self.by_key = bool(plan.source.partition_by) and not plan.interleaves
        self.types = _TYPES
        self.keys = [ValueColumn(name, "LONG", "bigint") for name in plan.source.key_columns]
        self.order = OrderColumn("ts", "LONG", "bigint")
        self.counted_by_files = self.sampled = None
        self.asked: Counter[str] = Counter()
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return self._facts[name]


def _chosen(
    facts: Any, *, ranges: int | None = None, presorted: bool = False
) -> tuple[list[str], list[tuple[TaskColumns, Sequence[TimeRange]]], Chosen]:
    """The lines of a plan, its tasks, and the plan."""
    tasks = []

    def task(columns: TaskColumns, parts: Sequence[TimeRange]) -> Any:
        tasks.append((columns, parts))
        return told("task")

    chosen = choose(facts, Request(ranges, presorted, task))
    return [step.line for step in chosen.steps if step.line], tasks, chosen


def test_keys_of_few_rows_are_not_looked_at() -> None:
    facts = _Told("PARTITION BY id WITHIN 9 [ts]", size=Size(5000, True), are_few=False)
    lines, ((columns, parts),), chosen = _chosen(facts)
    assert [line.split(":")[0] for line in lines] == ["plan", "hot keys", "sort", "task"]
    assert "hardly more than 5,000 events" in lines[1]
    assert columns.unsorted is not None
    assert (parts, chosen.warning) == ((), "")
    assert set(facts.asked) == {"are_few", "size"}


def test_one_task_reads_all_keys_of_few_rows() -> None:
    facts = _Told("PARTITION BY id WITHIN 9 [ts]", size=Size(5000, True), are_few=True)
    lines, ((columns, _),), _ = _chosen(facts)
    assert lines[0].startswith("plan: one task reads all keys one after another, because by its si")
    assert lines[1].startswith("sort: by the task,")
    assert columns.unsorted is not None
    # Whoever asks for ranges wants the keys spread.
    asked = _Told("PARTITION BY id", size=Size(5000, True))
    assert _chosen(asked, ranges=2)[0][0].startswith("plan: a shuffle by id")


def test_a_query_that_cannot_be_cut_asks_nothing_about_cuts() -> None:
    facts = _Told(
        "PARTITION BY id",
        size=Size(_MANY, True),
        are_few=False,
        why_not_read_twice="its plan has 'rand'",
    )
    lines, ((columns, _),), _ = _chosen(facts)
    assert "hot keys: none is cut into time ranges, because the query has no window" in lines[1]
    assert lines[2].startswith("sort: by Spark, because its plan has 'rand', and it is not known")
    assert columns == TaskColumns()
    assert "key_sample" not in facts.asked


def test_a_stream_in_one_task_is_warned_of() -> None:
    lines, _, chosen = _chosen(_Told("", size=Size(None, True), are_few=False))
    assert lines[1] == "sort: by Spark, because it is not known how many events there are"
    assert chosen.warning.endswith("PARTITION BY would spread it")


@pytest.mark.parametrize("positions", [False, True])
def test_a_stream_is_cut_by_a_sample(positions: bool) -> None:
    counts = [100 * 1000] * 7
    facts = _Told(
        "WITHIN 9 [ts]",
        positions=positions,
        files=lambda ranges: FilesTell(Sample(0, ()), "there are no files"),
        sample=lambda whole: Sample(700_000, _GRID) if whole else None,
        counted=lambda borders: counts[: len(borders) + 1],
        told_rows="perhaps 700,000",
    )
    lines, tasks, chosen = _chosen(facts, ranges=4)
    assert lines[0] == "cuts: by a sample, because there are no files"
    assert lines[1].startswith("plan: 4 time ranges, which read 42.9% of the events twice; each")
    assert [len(parts) for _, parts in tasks] == [1] * 4
    assert [bool(columns.number) for columns, _ in tasks] == [positions] * 4
    assert chosen.by_spark == positions
    numbers = chosen.numbers(facts)
    assert numbers.to_python == "those that can matter, 42.9% of them twice"
    assert all(count == 1 for name, count in facts.asked.items())


def test_ranges_of_hot_keys_have_numbers() -> None:
    parts = TimeRange(None, None, 5, 0, 50), TimeRange(3, 5, None, 40, 60)
    keys = [HotKey((3,), parts), HotKey((4,), parts)]
    facts = _Told("PARTITION BY id WITHIN 9 [ts]", hot_keys=lambda tasks, asked_for: keys)
    lines, ((columns, ranges),), chosen = _chosen(facts, ranges=2)
    assert lines[1:3] == [
        f"hot key: id={key} is cut into 2 time ranges, which read 10.0% of the events twice"
        for key in (3, 4)
    ]
    assert columns.range
    assert list(ranges) == [*parts, *parts]
    assert chosen.read_twice == pytest.approx(0.1)


def test_rows_that_lie_otherwise_than_they_are_said_to_are_refused() -> None:
    known = _Told("PARTITION BY id", knows_spread=True)
    assert "keys: Spark knows" in _chosen(known, presorted=True)[0][1]
    read = _Told("PARTITION BY id", knows_spread=False, key_in_parts=None)
    assert "they were read once to see it" in _chosen(read, presorted=True)[0][1]
    torn = _Told("PARTITION BY id", knows_spread=False, key_in_parts=(3, 2))
    with pytest.raises(EventError, match="the partition id=3 lies in 2 Spark partitions"):
        _chosen(torn, presorted=True)
