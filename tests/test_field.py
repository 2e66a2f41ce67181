"""The benchmark of the field: engines agree on every task, who does not is not timed, the pages
show the record.

Flink's own jobs and Spark run where the mark `long` is asked for, and where they are installed.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from engines import interpreted
from places import ROOT

sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "field")]

import page
import row_streams
import run
from adapters import in_flink, in_pycer, pycer_side
from adapters.adapter import Adapter
from adapters.every import NAMES, adapter, keys
from answers import compared, in_order, in_words
from child import Child
from data_sets import SETS, DataSet
from tasks import NOT_WRITTEN, Task, reasons, tasks

pytest.importorskip("duckdb")
pytest.importorskip("pandas")

_ROWS = 3_000


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> list[Adapter]:
    names = ["celc", "duckdb", "pandas", "polars"]
    made = [adapter(name) for name in names if adapter(name).lacking() is None]
    return [kind(tmp_path_factory.mktemp(kind.name)) for kind in made]


@pytest.fixture(scope="module")
def small() -> dict[str, pa.Table]:
    return {name: data.small(_ROWS) for name, data in SETS.items()}


def _answer(engine: Adapter, task: Task, table: pa.Table) -> pa.Table:
    engine.load(task.data, table)
    text = engine.text(task)
    assert text is not None
    rows = engine.run(task, text)
    answer = in_order(engine.answer(task))
    assert len(answer) == rows
    assert answer.column_names == list(task.answer)
    return answer


@pytest.mark.each(2)
@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.name)
def test_engines_agree_on_every_task(
    engines: list[Adapter], small: dict[str, pa.Table], task: Task
) -> None:
    asked = [one for one in engines if one.text(task) is not None]
    assert len(asked) > 1, "a task needs texts for two of the engines that are installed here"
    with interpreted():
        answers = {one.name: _answer(one, task, small[task.data.name]) for one in asked}
    for name, answer in answers.items():
        assert len(answer) > 1, f"{name} finds no two rows in the small set"
    verdict = compared(answers)
    assert verdict.same == tuple(answers), verdict.differences


@pytest.mark.long
@pytest.mark.parametrize("name", ["flink_cep", "flink_sql", "spark_sql", "celc_spark", "epigrep"])
def test_other_engines_agree_or_are_explained(
    engines: list[Adapter], small: dict[str, pa.Table], name: str, tmp_path: Path
) -> None:
    lacking = adapter(name).lacking()
    if lacking is not None:
        pytest.skip(lacking)
    engine = adapter(name)(tmp_path)
    asked = [task for task in tasks() if engine.text(task) is not None]
    assert len(asked) > 5
    for task in asked:
        table = small[task.data.name]
        same = _answer(engine, task, table).equals(_answer(engines[0], task, table))
        assert same != (name in task.differs), task.name
    engine.close()


def test_the_field_is_wide_enough() -> None:
    assert len(tasks()) >= 20
    assert len({task.data.name for task in tasks()}) >= 4
    assert len(NAMES) >= 8


def test_reasons_and_texts_are_of_engines_that_are_there() -> None:
    for task in tasks():
        assert set(task.texts) <= keys(), task.name
        assert set(task.cannot) | set(task.differs) <= set(NAMES), task.name
        for name, reason in task.cannot.items():
            assert adapter(name).text(task) is None, f"{task.name}: {name} has a text and a reason"
            assert reason in reasons()[name] or reason.count(" ") > 4, f"{task.name}: {reason}"


def test_each_reason_is_given() -> None:
    given = {each for task in tasks() for each in (*task.cannot.items(), *task.differs.items())}
    assert given >= {(name, reason) for name, of in reasons().items() for reason in of}


def test_a_task_with_two_texts_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "events.toml").write_text(
        '[one]\nwords = "An A."\nanswer = ["a"]\nsql = "…"', "utf-8"
    )
    monkeypatch.setattr("tasks.FOLDER", tmp_path)
    tasks.cache_clear()
    (task,) = tasks()
    tasks.cache_clear()
    assert (task.name, task.data.name, task.text("duckdb", "sql")) == ("one", "events", "…")
    assert task.why_not("celc") == NOT_WRITTEN


def test_the_example_of_the_readme_is_a_task() -> None:
    text = (ROOT / "benchmarks" / "field" / "README.md").read_text("utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (name,) = tomllib.loads(shown)
    assert shown.count("\n") <= 11
    there = (ROOT / "benchmarks" / "field" / "tasks" / "events.toml").read_text("utf-8")
    for line in shown.strip().splitlines()[:-1]:
        assert line in there, line
    assert name in [task.name for task in tasks()]


def test_the_readme_shows_the_sets_and_all_keys() -> None:
    text = (ROOT / "benchmarks" / "field" / "README.md").read_text("utf-8")
    for name, data in SETS.items():
        columns = ", ".join(f"`{column}` {kind}" for column, kind in data.columns.items())
        key = f"`{data.key}`" if data.key else "–"
        kinds = ", ".join(data.types)
        assert f"| `{name}` | {kinds} | {columns} | {key} | {data.unit} |" in text
    for key in keys():
        assert f"`{key}`" in text or f"`{key} =" in text, key


@pytest.mark.parametrize("name", SETS)
def test_sets_have_their_columns_in_the_order_of_time(name: str) -> None:
    _check(SETS[name], SETS[name].small(500))


@pytest.mark.long
@pytest.mark.parametrize("name", SETS)
def test_sets_of_packages_have_them_too(name: str) -> None:
    data = SETS[name]
    if (lacking := data.lacking()) is not None:
        pytest.skip(lacking)
    _check(data, data.table(500))


def _check(data: DataSet, table: pa.Table) -> None:
    assert table.column_names == list(data.fields())
    assert table["id"].to_pylist() == list(range(len(table)))
    times = table["ts"].to_pylist()
    assert times == sorted(times)
    assert set(table["type"].to_pylist()) <= set(data.types)
    assert sum(column.null_count for column in table.columns) == 0


def test_a_set_that_is_absent_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("data_sets.NPM_FOLDER", Path("/nowhere"))
    with pytest.raises(RuntimeError, match="prices: npm install --prefix /nowhere vega-datasets@"):
        SETS["prices"].table(10)


# --- answers and runs ----------------------------------------------------------------------------


def test_an_answer_is_its_rows_in_any_order() -> None:
    one = pa.table({"a": [1, 2, 2], "b": [4, 3, 3]})
    other = pa.table({"a": pa.array([2, 1, 2], pa.int32()), "b": pa.array([3, 4, 3], pa.int32())})
    once = pa.table({"a": [1, 2], "b": [4, 3]})
    found = compared({"x": once, "y": one, "z": other})
    assert found.same == ("y", "z")
    assert found.differences["x"] == {"more": 0, "fewer": 0, "often": -1, "rows": [], "without": []}
    found = compared({"x": pa.table({"a": [1, 9], "b": [4, 9]}), "y": once, "z": once})
    assert found.differences["x"]["rows"] == [(9, 9)]
    assert found.differences["x"]["without"] == [(2, 3)]


def test_who_answers_otherwise_is_shown_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    (task,) = (task for task in tasks() if task.name == "burst")
    texts = task.texts | {"pandas": task.texts["pandas"].replace("300_000", "200_000")}
    monkeypatch.setitem(task.texts, "pandas", texts["pandas"])
    # The workers read the files themselves: a text that is wrong there is wrong in the file.
    engines = {one: adapter(one)(Path()) for one in ("duckdb", "pandas", "polars")}
    answers = {name: _answer(one, task, task.data.small(_ROWS)) for name, one in engines.items()}
    verdict = compared(answers)
    assert verdict.same == ("duckdb", "polars")
    judged = run._judged(task, "pandas", verdict)
    assert (judged["state"], judged["reason"]) == ("other", "nobody has explained it")
    assert judged["difference"]["more"] == 0 < judged["difference"]["fewer"]


def test_a_difference_is_told_with_a_row_of_each_kind() -> None:
    right, wrong = pa.table({"a": [1, 2], "b": [4, 3]}), pa.table({"a": [1, 9], "b": [4, 9]})
    found = compared({"x": wrong, "y": right, "z": right}).differences["x"]
    told = "1 row more than the others, as (9, 9), and 1 row fewer than the others, as (2, 3)"
    assert in_words(found) == told
    once = pa.concat_tables([right, right.slice(0, 1)])
    found = compared({"x": once, "y": right, "z": right}).differences["x"]
    assert in_words(found) == "the same rows as the others, but some more or less often: +1"
    figure = {"task": "burst", "engine": "duckdb", "state": "other", "reason": "why"}
    assert run._told(figure | {"difference": found}).endswith(f" other    {in_words(found)}: why")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[burst]\nwords = 1 2", "tasks/events.toml: Expected newline"),
        ('[burst]\nwords = "An A."', "burst: it has no answer"),
        (
            '[burst]\nwords = "A."\nanswer = ["a"]\npolar = "…"',
            "burst: no engine has the key polar; ",
        ),
        ('[other]\nwords = "A."\nanswer = ["a"]', "--tasks: no task has 'burst' in its name"),
    ],
)
def test_a_task_that_is_wrong_is_told_without_a_trace(
    text: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "events.toml").write_text(text, "utf-8")
    monkeypatch.setattr("tasks.FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["run.py", "--tasks", "burst", "--only", "duckdb"])
    tasks.cache_clear()
    with pytest.raises(SystemExit):
        run.main()
    tasks.cache_clear()
    assert f"run.py: error: {told}" in capsys.readouterr().err


def test_a_set_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--data", "event"])
    with pytest.raises(SystemExit):
        run.main()
    assert "--data: no such set: event; there are events, quotes," in capsys.readouterr().err


def test_what_a_process_says_is_told_without_what_it_was_asked(tmp_path: Path) -> None:
    engine = run.Engine("duckdb", tmp_path, 60)
    engine._start()
    with pytest.raises(RuntimeError, match=r"^StopIteration"):
        engine._ask(do="run", task="no-such-task")
    engine.close()


def test_a_run_measures_engines_in_processes_of_their_own() -> None:
    chosen, _ = run.chosen_of("burst", "events")
    found = list(run.measure(chosen, ["duckdb", "epigrep"], 2_000, 1, 60))
    measured, cannot, loads, _ = found
    assert (measured["state"], measured["turns"], measured["rows"]) == ("same", 1, 2_000)
    assert measured["matches"] > 0
    for times in (measured["first"], measured["steady"]):
        assert times["cpu"] > 0 < times["clock"]
    assert measured["steady_peak"] > 10
    assert cannot["state"] == "cannot"
    assert "windows" in cannot["reason"]
    assert loads["loads"]["events"]["held"] > 10


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_an_answer_that_takes_too_long_is_stopped(
    answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer, its rows, or that of a later turn."""
    ask, waits = run.Child.ask, [60.0] * answered

    def in_time(child: object, line: str, most: float | None = None) -> str:
        return ask(child, line, most if most is None else (waits.pop() if waits else most))

    monkeypatch.setattr(run.Child, "ask", in_time)
    chosen, _ = run.chosen_of("burst", "events")
    figure, _ = run.measure(chosen, ["duckdb"], 2_000, 1, 0.0)
    assert (figure["state"], figure["reason"]) == ("stopped", "no answer in 0 seconds")


# --- the pages -----------------------------------------------------------------------------------


def _record(*figures: dict[str, object], **more: object) -> dict[str, object]:
    engine = {"title": "DuckDB", "how": "by SQL", "version": "1", "lacking": None}
    lacking = {"title": "CORE", "how": "", "version": None, "lacking": "no Python has it"}
    head = {
        "date": "2026-01-02",
        "cores": 2,
        "machine": "M",
        "python": "3.11",
        "load": 0.1,
        "rows": 10,
    }
    head |= {"seconds": 10, "absent": {"prices": "npm install it"}, "loads": {}}
    made = {"engines": {"celc": engine | {"title": "celc"}, "duckdb": engine, "pycer": lacking}}
    return {**head, **made, "figures": list(figures), **more}


def _figure(task: str, engine: str, cpu: float) -> dict[str, object]:
    times = {"cpu": cpu, "clock": cpu}
    told = {"state": "same", "matches": 7, "rows": 10, "first": times, "steady": times}
    return {"task": task, "engine": engine, **told, "steady_peak": 99, "turns": 5}


def test_a_later_run_of_a_day_replaces_figures(tmp_path: Path) -> None:
    first = _record(_figure("burst", "duckdb", 1.0), _figure("absence", "duckdb", 2.0))
    later = _record(_figure("burst", "duckdb", 3.0), _figure("burst", "celc", 4.5))
    fewer = _record(_figure("burst", "duckdb", 9.0), rows=5)
    lines = "".join(json.dumps(one) + "\n" for one in (fewer, first, later))
    (tmp_path / "field-2026-01-02.jsonl").write_text(lines, "utf-8")
    (tmp_path / "field-2026-01-01.jsonl").write_text(json.dumps(_record()) + "\n", "utf-8")
    results = page.newest(tmp_path)
    assert results.steady("burst", "duckdb") == 3.0
    assert results.steady("absence", "duckdb") == 2.0
    assert list(page.matrix(results)) == [
        "| task | matches | celc | DuckDB |",
        "| --- | ---: | ---: | ---: |",
        "| absence | 7 |  | **2,000** |",
        "| burst | 7 | 4,500 | **3,000** |",
    ]
    assert "| burst | DuckDB | 3,000 | 4,500 | 1.5 × slower |" in list(page.slower(results))


def test_the_page_says_who_did_not_run_and_who_differs() -> None:
    other = {"task": "burst", "engine": "duckdb", "state": "other", "rows": 10, "matches": 6}
    other |= {"reason": "DuckDB is right by its manual.", "difference": {"more": 0, "fewer": 1}}
    results = page.Results([_record(other, _figure("burst", "celc", 0.25))])
    text = page.text(results)
    assert "| CORE | – | **not run here**: no Python has it | – |" in text
    assert "**not here**: npm install it" in text
    assert (
        "- **burst, DuckDB**: 0 rows that the others have not, and 1 fewer. DuckDB is right" in text
    )
    assert "| burst | 7 | **250** | ≠ |" in text
    assert "| DuckDB | other: DuckDB is right by its manual. |" in text


def test_the_pages_show_the_newest_record() -> None:
    results = page.newest()
    made = (page.text(results), page.summary(results))
    shown = (page.PAGE.read_text("utf-8"), page.SUMMARY.read_text("utf-8"))
    assert shown[0] == made[0], "run benchmarks/field/page.py"
    assert made[1] in shown[1], "run benchmarks/field/page.py"


# --- Flink, CORE, and processes that answer -------------------------------------------------------


def test_the_class_of_a_set_has_its_patterns_and_keys() -> None:
    text = in_flink.class_of(SETS["flights"])
    mine = [task for task in tasks() if task.data.name == "flights" and "flink_cep" in task.texts]
    for task in mine:
        assert f'case "{task.name}": return {task.texts["flink_cep"]};' in text
    assert "public String tailnum;" in text
    assert "e.delay = Integer.parseInt(fields[7]);" in text
    assert 'case "other-carrier": return events.keyBy((KeySelector<Event, String>)' in text
    assert "default: return events.keyBy((KeySelector<Event, String>) e -> e.tailnum);" in text
    assert "default: return events;" in in_flink.class_of(SETS["alarms"])
    assert "$" not in text


def test_what_flink_lacks_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = in_flink.InFlinkCep
    monkeypatch.setattr(in_flink, "without", lambda name: f"not installed: pip install {name}")
    assert kind.lacking() == "not installed: pip install apache-flink-libraries"
    monkeypatch.setattr(in_flink, "without", lambda name: None)
    monkeypatch.setattr(in_flink, "jars", lambda names: [Path("flink-dist-1.jar")])
    monkeypatch.setattr(in_flink, "jdk", lambda: None)
    assert "no javac" in str(kind.lacking())


def test_rows_that_core_prints_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    row = "[0,3], ((id: 0 attributes: [17 1700 4 250 ]) (id: 1 attributes: [20 2000 4 9 ]) )"
    printed = f"Event 1\n{row}\n"
    assert pycer_side.rows_of(printed) == ["17,20"]
    declared = in_pycer.declared(SETS["weather"])
    assert declared.startswith("CREATE STREAM weather { EVENT T { id:int, ts:int, airport:string, ")
    monkeypatch.setenv("FIELD_PYCER", "/nowhere/python")
    assert "CPython 3.13" in str(in_pycer.InPycer.lacking())


_ECHO = """
import sys, time
print("ready 1.2", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "end":
        sys.exit(3)
    if word == "sleep":
        time.sleep(60)
    print("error: no such word" if word == "bad" else word.upper(), flush=True)
"""


def test_a_child_answers_each_line_and_its_errors_are_raised() -> None:
    child = Child([sys.executable, "-c", _ECHO])
    assert child.greeting == "ready 1.2"
    assert child.ask("match a") == "MATCH A"
    with pytest.raises(RuntimeError, match="bad: error: no such word"):
        child.ask("bad")
    assert child.ask("match b") == "MATCH B"
    with pytest.raises(RuntimeError, match="end: the process ended with code 3"):
        child.ask("end")
    with pytest.raises(RuntimeError, match="late: the process ended with code 3"):
        child.ask("late")
    child.close()


def test_a_child_that_takes_too_long_is_ended() -> None:
    child = Child([sys.executable, "-c", _ECHO])
    with pytest.raises(TimeoutError, match=r"sleep: no answer in 0\.1 seconds"):
        child.ask("sleep", 0.1)
    with pytest.raises(RuntimeError, match="the process ended with code -9"):
        child.ask("match")


def test_a_child_that_does_not_start_says_so() -> None:
    with pytest.raises(RuntimeError, match="the process ended with code 7"):
        Child([sys.executable, "-c", "raise SystemExit(7)"])


def test_what_flink_sql_lacks_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(row_streams.missing.__globals__, "jars", lambda names: [])
    assert row_streams.missing() == 'Flink SQL is not installed: pip install ".[flink]"'


@pytest.mark.skipif(row_streams.missing() is not None, reason=str(row_streams.missing()))
def test_flink_sql_finds_as_many_rows(tmp_path: Path) -> None:
    row_streams.check_flink(tmp_path)
