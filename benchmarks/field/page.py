"""The page of results, of the newest record: RESULTS.md, and the tables of docs/comparison.md.

python benchmarks/field/page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))

from data_sets import SETS  # noqa: E402
from tasks import tasks  # noqa: E402

RECORDS = HERE / "records"
PAGE = HERE / "RESULTS.md"
SUMMARY = HERE.parent.parent / "docs" / "comparison.md"
BEGIN, END = "<!-- made by benchmarks/field/page.py -->", "<!-- end of what is made -->"

Figure = dict[str, Any]


class Results:
    """The records of one day, later ones over earlier ones.

    of: the figure of a task and an engine. engines, in the order of the page; rows: of each data
    set.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.records = records
        self.of: dict[tuple[str, str], Figure] = {}
        self.engines: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, int] = {}
        self.loads: dict[str, dict[str, Figure]] = {}
        sets = {task.name: task.data.name for task in tasks()}
        for record in records:
            for name, engine in record["engines"].items():
                if engine["lacking"] is None or name not in self.engines:
                    self.engines[name] = engine
            for figure in record["figures"]:
                if figure["task"] in sets:
                    self.of[figure["task"], figure["engine"]] = figure
                    self.rows[sets[figure["task"]]] = figure["rows"]
            for name, loads in record["loads"].items():
                self.loads.setdefault(name, {}).update(loads)
        self.tasks = [task for task in tasks() if any(task.name == name for name, _ in self.of)]

    def steady(self, task: str, engine: str) -> float | None:
        """The CPU seconds of the steady state; None where there are none."""
        figure = self.of.get((task, engine), {})
        return figure["steady"]["cpu"] if "steady" in figure else None


def newest(folder: Path = RECORDS) -> Results:
    """The records of the newest day with as many rows as its last one."""
    lines = max(folder.glob("field-*.jsonl")).read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return Results([one for one in records if one["rows"] == records[-1]["rows"]])


# --- cells ----------------------------------------------------------------------------------------


def number(seconds: float) -> str:
    """Seconds in milliseconds, with three digits."""
    milliseconds = 1000 * seconds
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


MARKS = {"cannot": "–", "other": "≠", "stopped": "×", "failed": "×"}


def cell(results: Results, task: str, engine: str) -> str:
    """The steady CPU time of an engine, bold where it is the least; or what is there in its
    place."""
    mine = results.steady(task, engine)
    if mine is None:
        return MARKS.get(results.of.get((task, engine), {}).get("state", ""), "")
    every = [results.steady(task, name) for name in results.engines]
    least = min(seconds for seconds in every if seconds is not None)
    return f"**{number(mine)}**" if mine <= least else number(mine)


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def head(*names: str, left: int = 1) -> Iterator[str]:
    yield row(*names)
    yield f"|{' --- |' * left}{' ---: |' * (len(names) - left)}"


# --- tables ---------------------------------------------------------------------------------------


def run_engines(results: Results) -> list[str]:
    """The engines that have a figure."""
    return [name for name in results.engines if any(engine == name for _, engine in results.of)]


def conditions(results: Results) -> Iterator[str]:
    """When and where the records were made."""
    last = results.records[-1]
    runs = "A run" if len(results.records) == 1 else f"{len(results.records)} runs"
    yield (
        f"{runs} of {last['date']}, on {last['cores']} cores of {last['machine']}, "
        f"Python {last['python']}, "
        f"at a load of {', '.join(str(record['load']) for record in results.records)} before, in "
        f"{sum(record['seconds'] for record in results.records):,.0f} seconds for everything."
    )


def matrix(results: Results) -> Iterator[str]:
    """A line for each task, a column for each engine."""
    names = run_engines(results)
    yield from head("task", "matches", *(results.engines[name]["title"] for name in names))
    for task in results.tasks:
        yield row(
            task.name,
            f"{_matches(results, task.name):,}",
            *(cell(results, task.name, name) for name in names),
        )


def _matches(results: Results, task: str) -> int:
    found = [one for (name, _), one in results.of.items() if name == task]
    return next((one["matches"] for one in found if one["state"] == "same"), 0)


def engines(results: Results) -> Iterator[str]:
    """What each engine is, how it is asked, and how many tasks it answers."""
    yield from head("engine", "version", "how it is asked", "tasks", left=3)
    for name, engine in results.engines.items():
        mine = [one for (_, of), one in results.of.items() if of == name]
        if engine["lacking"] is not None and not mine:
            yield row(engine["title"], "–", f"**not run here**: {engine['lacking']}", "–")
            continue
        answered = sum(one["state"] == "same" for one in mine)
        yield row(engine["title"], engine["version"], engine["how"], f"{answered} of {len(mine)}")


def sets(results: Results) -> Iterator[str]:
    """The data sets, with what loading them took."""
    yield from head("data", "rows", "what", "from", left=4)
    absent = results.records[-1]["absent"]
    for name, data in SETS.items():
        rows = f"{results.rows[name]:,}" if name in results.rows else "–"
        words = f"**not here**: {absent[name]}" if name in absent else data.words
        yield row(name, rows, f"{words} Time: {data.unit}.", data.source)


def loads(results: Results) -> Iterator[str]:
    """The time on the clock to take each set into the form of each engine."""
    names = [name for name in results.engines if results.loads.get(name)]
    there = [name for name in SETS if name in results.rows]
    yield from head("data", *(results.engines[name]["title"] for name in names))
    for data in there:
        times = (results.loads[name].get(data) for name in names)
        yield row(data, *(number(one["clock"]) if one else "" for one in times))


def of_task(results: Results, task: str) -> Iterator[str]:
    """A line for each engine: what it took, or why it has no figure."""
    yield from head(
        "engine", "matches", "CPU", "clock", "first CPU", "first clock", "memory", "× celc"
    )
    own = results.steady(task, "celc")
    for name in run_engines(results):
        figure = results.of.get((task, name))
        if figure is None:
            continue
        title = results.engines[name]["title"]
        if "steady" not in figure:
            yield row(title, f"{figure['state']}: {figure['reason']}", *[""] * 6)
            continue
        times = [figure["steady"]["cpu"], figure["steady"]["clock"]]
        times += [figure["first"]["cpu"], figure["first"]["clock"]]
        share = f"{figure['steady']['cpu'] / own:.2f}" if own else ""
        memory = f"{figure['steady_peak']:,}"
        yield row(title, f"{figure['matches']:,}", *map(number, times), memory, share)


def disagreements(results: Results) -> Iterator[str]:
    """Who has answered otherwise, and who is right by whose documents."""
    others = [one for one in results.of.values() if one["state"] == "other"]
    if not others:
        yield "None: each engine that answers a task finds the same rows as the others."
    for one in others:
        difference, title = one["difference"], results.engines[one["engine"]]["title"]
        yield (
            f"- **{one['task']}, {title}**: {difference['more']:,} rows that the others have not, "
            f"and {difference['fewer']:,} fewer. {one['reason']}"
        )


def slower(results: Results) -> Iterator[str]:
    """The tasks in which celc takes more CPU time than another engine."""
    yield from head("task", "engine", "its CPU time", "celc's", "celc is", left=2)
    for task in results.tasks:
        own = results.steady(task.name, "celc")
        for name in run_engines(results):
            other = results.steady(task.name, name)
            if own is not None and other is not None and other < own:
                title = results.engines[name]["title"]
                yield row(
                    task.name, title, number(other), number(own), f"{own / other:.1f} × slower"
                )


# --- pages ----------------------------------------------------------------------------------------

_LEGEND = (
    "CPU milliseconds of the steady state, the least in bold. – the engine cannot say the task; ≠ "
    "its answer is another one; × it gave none; empty: it was not asked."
)


def text(results: Results) -> str:
    """RESULTS.md."""
    parts = [
        "# Results",
        "Made by page.py out of the records of the newest day; [README.md](README.md) tells ",
    ]
    parts[-1] += "what is measured and how. All times are milliseconds, memory is in megabytes."
    parts += ["\n".join(conditions(results)), "## Engines", "\n".join(engines(results))]
    parts += ["## Data", "\n".join(sets(results)), "What loading took on the clock:"]
    parts += ["\n".join(loads(results)), "## All tasks", _LEGEND, "\n".join(matrix(results))]
    parts += ["## Disagreements", "\n".join(disagreements(results)), "## Each task"]
    for task in results.tasks:
        parts += [f"### {task.name}", f"Over {task.data.name}. {task.words}"]
        parts += ["\n".join(of_task(results, task.name))]
    return "\n\n".join(parts) + "\n"


def summary(results: Results) -> str:
    """What stands between the marks of docs/comparison.md."""
    parts = [
        BEGIN,
        "\n".join(conditions(results)),
        "\n".join(engines(results)),
        "## All tasks",
        _LEGEND,
    ]
    parts += ["\n".join(matrix(results)), "## Where celc is slower", "\n".join(slower(results))]
    return "\n\n".join([*parts, "## Disagreements", "\n".join(disagreements(results)), END])


def with_summary(page: str, made: str) -> str:
    """A page with what is made between its marks."""
    return page[: page.index(BEGIN)] + made + page[page.index(END) + len(END) :]


def write() -> None:
    """Write both pages anew."""
    results = newest()
    PAGE.write_text(text(results), "utf-8")
    if SUMMARY.exists():
        page = SUMMARY.read_text("utf-8")
        SUMMARY.write_text(with_summary(page, summary(results)), "utf-8")


if __name__ == "__main__":
    write()
